//! Opens the events of a plan: finds the highest precision that the kernel grants, and the
//! constants of the eBPF program.

use precise_common::{
    config::{Config, field, key, mode, promote, source},
    ibs::OutcomeBits,
};

use super::plan::{CallGraph, Plan, PlannedEvent, Target};
use crate::error::{ErrorClass, Remedy, SamplingError, SyscallError};
use crate::kernel::clock::monotonic_ns;
use crate::kernel::event::{Encoding, Event, OpenRequest, Rate, Scope, Trigger, WantedFields};
use crate::kernel::explain;
use crate::kernel::program::{Prepared, ProgramOptions};
use crate::kernel::sampler::Sampler;
use crate::kernel::unwind::UnwindSizes;
use crate::machine::{MachineInfo, Sysctls};
use crate::pmu;
use crate::pmu::identity;
use crate::pmu::preset::Candidate;
use crate::pmu::{EventRequest, TaggedFields};
use crate::run::own;
use crate::run::pace::{Pace, most_per_second};
use crate::run::scopes::exists_in;
use crate::run::{each_fault, verdict, wanted};
use precise_model::Runaway;
use precise_model::digits::thousands;
use precise_model::{Dimension, EventInfo, Fields, Ledger, Precision, RateChange, TaggedOf, Verdict};

/// One event during a run.
pub(crate) struct SampledEvent {
    /// The planned event, with the rate that the kernel actually uses.
    pub planned: PlannedEvent,
    /// The rate in force.
    pub rate: Rate,
    pub sampler: Sampler,
    pub trigger: Trigger,
    pub granted: u8,
    pub findings: Vec<String>,
    /// Whether tasks inherit the event.
    pub inherited: bool,
    pace: Pace,
    /// Why the event was stopped before the run ended; `None` if it was not.
    runaway: Option<Runaway>,
}

impl SampledEvent {
    /// Changes the sample period or frequency.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel rejects the rate.
    pub fn set_rate(&mut self, rate: Rate) -> Result<(), SamplingError> {
        self.sampler.set_rate(rate)?;
        self.rate = rate;
        self.pace.change(most_per_second(rate, self.trigger, self.inherited), monotonic_ns());
        Ok(())
    }

    /// Restarts the event if it was throttled, as [`Sampler::look_after`] does, and stops it if it
    /// takes far more samples than requested. Returns the reason when it stops the event.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel cannot stop or start the event.
    pub fn look_after(&mut self) -> Result<Option<Runaway>, SamplingError> {
        self.sampler.look_after()?;
        if self.sampler.has_ended() {
            return Ok(None);
        }
        self.runaway = self.pace.look(monotonic_ns(), self.sampler.seen_by_cpu());
        if self.runaway.is_some() {
            self.sampler.disable()?;
        }
        Ok(self.runaway)
    }

    /// Returns the ledger of the event up to now. `period` is the sample period, if it is fixed.
    ///
    /// # Errors
    ///
    /// Returns an error if the event cannot be read.
    pub fn ledger(&mut self, period: Option<u64>) -> Result<Ledger, SamplingError> {
        let ledger = self.sampler.ledger(&self.planned.filter.clauses, period)?;
        Ok(Ledger { runaway: self.runaway, ..ledger })
    }

    /// Returns the result of the event. Call it after the event is disabled. `idle_ns` says how
    /// long the CPUs of the run were idle, if that is known.
    pub fn finish(
        &mut self,
        plan: &Plan,
        machine: &MachineInfo,
        after: &Sysctls,
        changes: Vec<RateChange>,
        idle_ns: Option<u64>,
    ) -> Result<EventInfo, SamplingError> {
        let draft = self.draft(plan, machine);
        let EventInfo { period, frequency, .. } = draft;
        let mut rates = changes;
        if !rates.is_empty() {
            rates.insert(0, RateChange { at_ns: 0, period, frequency });
        }
        let period = period.filter(|_| rates.is_empty());
        let idle_ns = idle_ns.filter(|_| self.trigger == Trigger::Timer);
        let ledger = Ledger { idle_ns, ..self.ledger(period)? };
        let mut info = EventInfo { period, rates, ledger, ..draft };
        verdict::judge(&mut info, &self.planned.request, machine, after);
        Ok(info)
    }

    /// Returns what is known of the event when its sampling begins: everything but the ledger and
    /// the findings of the run.
    pub fn draft(&self, plan: &Plan, machine: &MachineInfo) -> EventInfo {
        let (period, frequency) = match self.planned.rate {
            Rate::Period(period) => (Some(period), None),
            Rate::Frequency(frequency) => (None, Some(frequency)),
            Rate::Count => (None, None),
        };
        let request = &self.planned.request;
        let verdict = Verdict {
            requested: plan.precision,
            granted: self.granted,
            precise: request.exact_at(self.granted),
            findings: self.findings.clone(),
        };
        let pmu = identity::kind(&request.pmu, request.type_, request.config, machine.cpu.vendor);
        EventInfo {
            name: request.name.clone(),
            encoding: request.encoding.clone(),
            hardware_filter: identity::hardware_filter(&pmu, request.config, request.config1),
            pmu,
            unit: request.unit.clone(),
            period,
            frequency,
            rates: Vec::new(),
            fields: request.fields_at(self.granted),
            marks_exact: marks_exact(request),
            tagged: request.tagged.map(|tagged| tagged.of).filter(|_| request.fields.outcome),
            ledger: Ledger::default(),
            verdict,
            idle: None,
        }
    }
}

/// Opens one event at the highest precision that the kernel grants. `first` is the first event of
/// the run; `None` if this is the first. `ids`: the program must read the ids of tasks from the
/// sample.
pub(crate) fn open(
    plan: &Plan,
    planned: &PlannedEvent,
    scopes: &[Scope],
    ids: bool,
    machine: &MachineInfo,
    first: Option<&Sampler>,
) -> Result<SampledEvent, SamplingError> {
    let granted = decide(plan, planned, scopes, ids, machine, &mut try_open)?;
    let Granted { planned, request, leader, scopes, findings } = granted;
    let options = ProgramOptions {
        config: config(plan, &planned, planned.request.fields_at(request.precise), machine),
        slots: plan.table_cells,
        stacks: if plan.slot(&planned.request).has_chain() { plan.stacks } else { 0 },
        prepared: Prepared { ids, time: request.wanted.time },
        read_path: plan.read_path,
        unwind: plan
            .unwinds()
            .then(|| UnwindSizes::within(usize::try_from(plan.unwind_bytes).unwrap_or(usize::MAX))),
        other: None,
    };
    let leader = leader.as_ref();
    let later: Vec<u32> =
        plan.later.iter().copied().filter(|cpu| exists_in(&planned.request, Scope::Cpu(*cpu))).collect();
    let points = each_fault::tracepoints(plan, &request, ids, machine);
    let sampler = match plan.stream {
        None if let Some(points) = points => {
            Sampler::open_at(points, &request, &scopes, &options, &later, first)?
        }
        None => Sampler::open_beside(&request, leader, &scopes, &options, &later, first)?,
        Some(stream) => {
            Sampler::open_streaming(&request, leader, &scopes, &options, &later, stream.ring_pages)?
        }
    };
    let trigger = request.encoding.trigger();
    let inherited = plan.target != Target::All;
    let asked = most_per_second(planned.rate, trigger, inherited);
    let rate = trigger.in_force(planned.rate);
    Ok(SampledEvent {
        planned: PlannedEvent { rate, ..planned },
        rate,
        sampler,
        trigger,
        granted: request.precise,
        findings,
        inherited,
        pace: Pace::new(asked, monotonic_ns()),
        runaway: None,
    })
}

/// Tries to open an event with its group leader in one scope.
type TryOpen<'a> = dyn FnMut(&OpenRequest, Option<&OpenRequest>, Scope) -> Result<(), SyscallError> + 'a;

/// An event at the precision that the kernel grants.
#[derive(Debug)]
struct Granted {
    /// The event, with its fields adapted to the dimensions of the run.
    planned: PlannedEvent,
    /// The request for the event.
    request: OpenRequest,
    /// The request for its group leader, if it has one.
    leader: Option<OpenRequest>,
    /// The scopes to open it in.
    scopes: Vec<Scope>,
    /// One sentence for each step down in precision.
    findings: Vec<String>,
}

/// Finds the highest precision that the kernel grants in the first scope. Returns an error if it
/// grants none.
fn decide(
    plan: &Plan,
    planned: &PlannedEvent,
    scopes: &[Scope],
    ids: bool,
    machine: &MachineInfo,
    try_open: &mut TryOpen<'_>,
) -> Result<Granted, SamplingError> {
    let planned = &grouped(plan, planned, machine);
    let request = &planned.request;
    wanted::looked_up_in_time(plan, planned, machine)?;
    chains_are_taken(plan, machine)?;
    let trigger = encoding(request).trigger();
    let ladder = pmu::ladder(request, plan.precision);
    let mut findings = ladder.findings.clone();
    let refused = |findings: &[String]| {
        SamplingError::new(
            ErrorClass::Unmet,
            format!("{} cannot be sampled precisely here: {}", request.name, findings.join("; ")),
        )
        .remedy(Remedy::AnyPrecision)
    };
    let scopes: Vec<Scope> = scopes.iter().copied().filter(|scope| exists_in(request, *scope)).collect();
    let Some(probe) = scopes.first() else {
        return Err(SamplingError::new(
            ErrorClass::Unsupported,
            format!("{} exists on none of the selected CPUs", request.name),
        ));
    };
    for (step, level) in ladder.levels.iter().enumerate() {
        let wanted = wanted::at(plan, planned, *level, ids, machine);
        let sampled =
            OpenRequest { encoding: encoding(request), rate: planned.rate, precise: *level, wanted };
        let leader = request.leader.as_deref().map(|leader| OpenRequest {
            encoding: encoding(leader),
            rate: Rate::Count,
            precise: 0,
            wanted: WantedFields { monotonic: wanted.monotonic, ..WantedFields::default() },
        });
        if let Err(error) = try_open(&sampled, leader.as_ref(), *probe) {
            // Finds out by trying, not from the kernel version, whether the kernel refuses the
            // event only for tasks.
            if let (pmu::Exactness::Ibs, Scope::Task { cpu, .. }, libc::EINVAL) =
                (&request.exactness, probe, error.errno())
                && try_open(&sampled, None, Scope::Cpu(*cpu)).is_ok()
            {
                return Err(explain::whole_cpus_only(&request.name));
            }
            let last = step + 1 == ladder.levels.len();
            if pmu::ladder::may_step_down(error.errno()) && (!last || plan.precision == Precision::Require) {
                findings.push(pmu::ladder::refused(request, *level, error.errno()));
                if last {
                    return Err(refused(&findings));
                }
                continue;
            }
            return Err(explain::open(&error, &sampled, *probe));
        }
        // The ladder's own findings already describe the level that was granted.
        if ladder.findings.is_empty() && plan.precision != Precision::Off {
            findings.extend(pmu::ladder::granted(request, *level));
        }
        findings.extend(verdict::before(request, *level, machine));
        findings.extend(raised(planned.rate, trigger));
        findings.extend(request.notes.iter().cloned());
        findings.dedup();
        return Ok(Granted { planned: planned.clone(), request: sampled, leader, scopes, findings });
    }
    Err(refused(&findings))
}

/// Returns a finding if the kernel samples less often than requested.
fn raised(asked: Rate, trigger: Trigger) -> Option<String> {
    let (period, in_force) = match (asked, trigger.in_force(asked)) {
        (Rate::Period(period), Rate::Period(in_force)) => (period, in_force),
        (Rate::Frequency(hertz), Rate::Period(in_force)) => (1_000_000_000 / hertz.max(1), in_force),
        _ => return None,
    };
    (period < in_force).then(|| {
        format!(
            "the period is {} ns and not {}: the kernel sets no timer for less",
            thousands(in_force),
            thousands(period)
        )
    })
}

/// Adapts the fields of an event to the dimensions of the run. An IBS op sample has both a data
/// source and an outcome, but a cell has room for only one of them. The outcome is kept if the run
/// groups by outcome and not by data source; otherwise the data source is kept.
fn grouped(plan: &Plan, planned: &PlannedEvent, machine: &MachineInfo) -> PlannedEvent {
    let mut planned = planned.clone();
    let request = &mut planned.request;
    let by = |dimension| plan.dimensions.contains(&dimension);
    if !(request.fields.outcome && request.fields.data_source) {
        return planned;
    }
    request.fields.outcome = by(Dimension::Outcome) && !by(Dimension::Source);
    if request.fields.outcome {
        request.fields.data_source = false;
        request.tagged = Some(TaggedFields { of: TaggedOf::Op, zen3_errata: machine.cpu.ibs_zen3_errata() });
    }
    planned
}

/// Refuses call chains on kernels where the program cannot tell whether a sample has a call chain.
fn chains_are_taken(plan: &Plan, machine: &MachineInfo) -> Result<(), SamplingError> {
    match machine.kernel {
        Some(version) if !version.at_least(6, 1) && plan.dimensions.contains(&Dimension::Stack) => {
            Err(explain::no_chains())
        }
        _ => Ok(()),
    }
}

fn try_open(request: &OpenRequest, leader: Option<&OpenRequest>, scope: Scope) -> Result<(), SyscallError> {
    let leader = leader.map(|leader| Event::open(leader, scope, None)).transpose()?;
    Event::open(request, scope, leader.as_ref()).map(drop)
}

fn encoding(request: &EventRequest) -> Encoding {
    Encoding {
        pmu: request.type_,
        config: request.config,
        config1: request.config1,
        config2: request.config2,
        config3: request.config3,
        exclude_user: request.exclude_user,
        exclude_kernel: request.exclude_kernel,
        exclude_guest: request.is_of_core(),
    }
}

/// Returns whether the hardware marks the samples with an exact IP.
fn marks_exact(request: &EventRequest) -> bool {
    matches!(request.exactness, pmu::Exactness::PreciseIp { .. } | pmu::Exactness::Ibs)
}

/// Returns the constants of the program: map key, fields and filter.
fn config(plan: &Plan, planned: &PlannedEvent, fields: Fields, machine: &MachineInfo) -> Config {
    let mut config =
        Config { address_mask: !(plan.address_granule - 1), stack_depth: plan.depth, ..Config::EMPTY };
    let slot = plan.slot(&planned.request);
    // Data source and outcome share their place in a cell, so the program must read only fields
    // that the event has.
    let has = |dimension: &&Dimension| match dimension {
        Dimension::Source => fields.data_source,
        Dimension::Outcome => fields.outcome,
        Dimension::PageSize => fields.address,
        Dimension::Address => slot.has_address(),
        Dimension::Stack => slot.has_chain(),
        _ => true,
    };
    for dimension in plan.dimensions.iter().filter(has) {
        config.key |= match dimension {
            // Names of functions and variables depend on the process.
            Dimension::Ip => key::IP | key::PID,
            Dimension::Address => key::ADDRESS | key::PID,
            Dimension::Cgroup => key::CGROUP,
            Dimension::Process => key::PID,
            Dimension::Thread => key::PID | key::TID,
            Dimension::Source => key::DATA_SRC,
            Dimension::Latency => key::LATENCY,
            Dimension::Outcome => key::OUTCOME,
            // The leaf of the chain is the instruction, and the names of its callers depend on the
            // process.
            Dimension::Stack => key::STACK | key::IP | key::PID,
            Dimension::PageSize => key::PAGE_SIZE,
            // Each CPU already has its own partition of the table.
            Dimension::Cpu => 0,
        };
    }
    for (has, bit) in [
        (fields.address, field::ADDRESS),
        (fields.latency, field::LATENCY),
        (fields.data_source, field::DATA_SRC),
        (marks_exact(&planned.request), field::EXACT),
    ] {
        if has {
            config.fields |= bit;
        }
    }
    if plan.stream.is_some() {
        config.mode = mode::STREAM;
    }
    if let Some(TaggedFields { of, zen3_errata }) = planned.request.tagged {
        (config.source, config.data_src_mask) = match of {
            TaggedOf::Branch => (source::OF_BRANCH, OutcomeBits::OF_BRANCH),
            TaggedOf::Fetch => (source::IBS_FETCH, OutcomeBits::OF_FETCH),
            // Only the filter reads these registers; the run groups by the data source.
            TaggedOf::Access => (0, config.data_src_mask),
            TaggedOf::Op => (0, OutcomeBits::OF_OP),
        };
        if zen3_errata {
            config.source |= source::ZEN3_ERRATA;
        }
    }
    if planned.request.stores {
        config.source |= source::STORES;
    }
    if plan.call_graph == CallGraph::Auto {
        config.source |= source::FRAME_POINTERS;
    }
    if encoding(&planned.request).trigger() == Trigger::Timer {
        config.source |= source::PERIOD_FROM_EVENT;
    }
    if machine.can_run_guests {
        config.source |= source::GUESTS;
    }
    if let Some(lines) = plan.promoted_lines {
        config.promote = promote::ON;
        if wanted::by_physical(plan, &planned.request, machine) && fields.address {
            config.promote |= promote::BY_PHYSICAL;
        }
        config.line_mask = lines.next_power_of_two() - 1;
        let tagged_access = planned.request.tagged.is_some_and(|tagged| tagged.of == TaggedOf::Access);
        if tagged_access && config.key & key::PAGE_SIZE == 0 {
            config.key |= key::WIDTH;
        }
    }
    planned.filter.install(&mut config);
    own::leave_out(&mut config, plan, machine);
    config
}

/// Returns the events of the first candidate that this machine and user can open. The notes of its
/// first event say why the candidates before it were rejected.
///
/// # Errors
///
/// Returns a missing permission at once; otherwise the error of the last candidate.
pub fn choose(
    candidates: Vec<Candidate>,
    cpu: u32,
    precision: Precision,
) -> Result<Vec<EventRequest>, SamplingError> {
    first_granted(candidates, cpu, precision, &mut try_open)
}

fn first_granted(
    candidates: Vec<Candidate>,
    cpu: u32,
    precision: Precision,
    try_open: &mut TryOpen<'_>,
) -> Result<Vec<EventRequest>, SamplingError> {
    let mut notes: Vec<String> = Vec::new();
    let mut refusal = SamplingError::new(ErrorClass::Unsupported, "this machine has nothing to sample");
    for candidate in candidates {
        notes.extend(candidate.findings);
        let mut events = candidate.events;
        match events.iter().try_for_each(|event| openable(event, cpu, precision, try_open)) {
            Ok(()) => {
                if let Some(first) = events.first_mut() {
                    notes.append(&mut first.notes);
                    notes.dedup();
                    first.notes = notes;
                }
                return Ok(events);
            }
            Err(failure) if failure.class() == ErrorClass::Permission => return Err(failure),
            Err(failure) => {
                notes.push(failure.with_causes());
                refusal = failure;
            }
        }
    }
    Err(refusal)
}

fn openable(
    event: &EventRequest,
    cpu: u32,
    precision: Precision,
    try_open: &mut TryOpen<'_>,
) -> Result<(), SamplingError> {
    let scope = Scope::Cpu(event.cpus.as_ref().and_then(|cpus| cpus.first().copied()).unwrap_or(cpu));
    let mut refusal = None;
    for level in pmu::ladder(event, precision).levels {
        let rate = Rate::Period(event.default_period);
        let request =
            OpenRequest { encoding: encoding(event), rate, precise: level, wanted: WantedFields::default() };
        match try_open(&request, None, scope) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = Some(explain::open(&error, &request, scope)),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        SamplingError::new(ErrorClass::Unmet, format!("{} cannot be precise here", event.name))
    }))
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
