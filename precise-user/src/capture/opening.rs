//! From a plan to open events: the ladder of precision, the program's constants, whom to sample.

use precise_common::{
    cell::Class,
    config::{Config, field, key},
};

use super::{
    model::{Dimension, EventInfo, Fields, Precision, Verdict},
    plan::{Plan, PlannedEvent, Target},
    verdict,
};
use crate::{
    error::{Class as FailureClass, Failure, SyscallError},
    kernel::{
        event::{Encoding, Event, Rate, Request, Scope, Wanted},
        explain,
        program::ProgramOptions,
        sampler::Sampler,
    },
    machine::{MachineInfo, Sysctls},
    pmu::{self, EventRequest, workflow::Candidate},
};

/// One event while it is sampled.
pub(super) struct Sampled {
    pub planned: PlannedEvent,
    pub sampler: Sampler,
    pub granted: u8,
    pub findings: Vec<String>,
}

impl Sampled {
    /// What became of the event, now that it is disabled.
    pub fn finish(
        &mut self,
        plan: &Plan,
        machine: &MachineInfo,
        after: &Sysctls,
    ) -> Result<EventInfo, Failure> {
        let request = &self.planned.request;
        let (period, frequency) = match self.planned.rate {
            Rate::Period(period) => (Some(period), None),
            Rate::Frequency(frequency) => (None, Some(frequency)),
            Rate::Count => (None, None),
        };
        let ledger = self.sampler.ledger(&self.planned.filter.clauses, period)?;
        let mut verdict = Verdict {
            requested: plan.precision,
            granted: self.granted,
            precise: request.exact_at(self.granted),
            findings: std::mem::take(&mut self.findings),
        };
        verdict::judge(&mut verdict, request, marks_exact(request), &ledger, machine, after);
        Ok(EventInfo {
            name: request.name.clone(),
            encoding: request.encoding.clone(),
            unit: request.unit.clone(),
            period,
            frequency,
            fields: request.fields_at(self.granted),
            marks_exact: marks_exact(request),
            ledger,
            verdict,
        })
    }
}

/// Opens one event at the highest precision that is granted.
pub(super) fn open(
    plan: &Plan,
    planned: &PlannedEvent,
    scopes: &[Scope],
    cgroup_from_sample: bool,
) -> Result<Sampled, Failure> {
    let request = &planned.request;
    let ladder = pmu::ladder(request, plan.precision);
    let mut findings = ladder.findings.clone();
    let refused = |findings: &[String]| {
        Failure::new(
            FailureClass::Unmet,
            format!("{} cannot be sampled precisely here: {}", request.name, findings.join("; ")),
        )
        .advise("Use --precise auto to take what there is, or `precise list` to see what can be precise.")
    };
    // Software events go to any CPU; an event of one PMU of a hybrid CPU only to its own.
    let scopes: Vec<Scope> = scopes
        .iter()
        .copied()
        .filter(|scope| match (&request.cpus, scope) {
            (Some(cpus), Scope::Cpu(cpu) | Scope::Task { cpu, .. }) => cpus.contains(cpu),
            (None, _) => true,
        })
        .collect();
    let Some(first) = scopes.first() else {
        return Err(Failure::new(
            FailureClass::Unsupported,
            format!("{} exists on none of the CPUs that were asked for", request.name),
        ));
    };
    for (step, level) in ladder.levels.iter().enumerate() {
        let fields = request.fields_at(*level);
        let wanted = Wanted {
            address: fields.address,
            data_source: fields.data_source,
            latency: fields.latency,
            phys_address: planned.filter.needs.phys_address,
            page_size: planned.filter.needs.page_size,
            cgroup: cgroup_from_sample,
        };
        let sampled = Request { encoding: encoding(request), rate: planned.rate, precise: *level, wanted };
        let leader = request.leader.as_deref().map(|leader| Request {
            encoding: encoding(leader),
            rate: Rate::Count,
            precise: 0,
            wanted: Wanted::default(),
        });
        if let Err(error) = try_open(&sampled, leader.as_ref(), *first) {
            // Asked of the kernel, not of its version: is it the task that it refuses?
            if let (pmu::Exactness::Ibs, Scope::Task { cpu, .. }, libc::EINVAL) =
                (&request.exactness, first, error.errno())
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
            return Err(explain::open(&error, &sampled, *first));
        }
        // What the ladder knew before it tried says the same as the level that was granted.
        if ladder.findings.is_empty() && plan.precision != Precision::Off {
            findings.extend(pmu::ladder::granted(request, *level));
        }
        findings.extend(request.notes.iter().cloned());
        findings.dedup();
        let options = ProgramOptions {
            config: config(plan, planned, fields),
            slots: plan.table_cells,
            cgroup_from_sample,
            read_path: plan.read_path,
            other: None,
        };
        let sampler = Sampler::open(&sampled, leader.as_ref(), &scopes, &options)?;
        return Ok(Sampled { planned: planned.clone(), sampler, granted: *level, findings });
    }
    Err(refused(&findings))
}

fn try_open(request: &Request, leader: Option<&Request>, scope: Scope) -> Result<(), SyscallError> {
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
    }
}

/// Whether the hardware marks the samples of an event whose IP is exact.
fn marks_exact(request: &EventRequest) -> bool {
    matches!(request.exactness, pmu::Exactness::PreciseIp { .. } | pmu::Exactness::Ibs)
}

/// The program's constants: key, fields and filter.
fn config(plan: &Plan, planned: &PlannedEvent, fields: Fields) -> Config {
    let mut config = Config { address_mask: !(plan.address_granule - 1), ..Config::EMPTY };
    for dimension in &plan.dimensions {
        config.key |= match dimension {
            // Names of functions and variables need the process.
            Dimension::Ip => key::IP | key::PID,
            Dimension::Address => key::ADDRESS | key::PID,
            Dimension::Cgroup => key::CGROUP,
            Dimension::Process => key::PID,
            Dimension::Thread => key::PID | key::TID,
            Dimension::Source => key::DATA_SRC,
            Dimension::Latency => key::LATENCY,
            // Each CPU has its own partition of the table.
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
    config.data_src_mask = Class::DATA_SRC_MASK;
    planned.filter.install(&mut config);
    config
}

/// Whom to sample, on which CPU. `command` is the process id of a held command.
pub(super) fn scopes(plan: &Plan, command: Option<u32>) -> Result<Vec<Scope>, Failure> {
    let on_every_cpu = |tids: Vec<u32>, on_exec: bool| {
        tids.into_iter()
            .flat_map(|tid| {
                plan.cpus.iter().map(move |cpu| Scope::Task { tid: tid as i32, cpu: *cpu, on_exec })
            })
            .collect::<Vec<_>>()
    };
    match (&plan.target, command) {
        (Target::All, _) => Ok(plan.cpus.iter().copied().map(Scope::Cpu).collect()),
        (Target::Command(_), Some(pid)) => Ok(on_every_cpu(vec![pid], true)),
        (Target::Command(_), None) => Ok(Vec::new()),
        (Target::Threads(tids), _) => Ok(on_every_cpu(tids.clone(), false)),
        (Target::Processes(pids), _) => {
            let mut tids = Vec::new();
            for pid in pids {
                let directory = format!("/proc/{pid}/task");
                let entries = std::fs::read_dir(&directory).map_err(|_| {
                    Failure::new(FailureClass::Failed, format!("there is no process {pid}"))
                        .advise("Check the id with `ps`.")
                })?;
                tids.extend(
                    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()),
                );
            }
            Ok(on_every_cpu(tids, false))
        }
    }
}

/// The first candidate whose events this machine and user can open, with what it says about the ones before it as notes
/// of its first event.
///
/// # Errors
///
/// A missing permission at once; otherwise the last candidate's refusal.
pub fn choose(
    candidates: Vec<Candidate>,
    cpu: u32,
    precision: Precision,
) -> Result<Vec<EventRequest>, Failure> {
    let mut notes: Vec<String> = Vec::new();
    let mut refusal = Failure::new(FailureClass::Unsupported, "this machine has nothing to sample");
    for candidate in candidates {
        notes.extend(candidate.findings);
        let mut events = candidate.events;
        match events.iter().try_for_each(|event| openable(event, cpu, precision)) {
            Ok(()) => {
                if let Some(first) = events.first_mut() {
                    notes.append(&mut first.notes);
                    notes.dedup();
                    first.notes = notes;
                }
                return Ok(events);
            }
            Err(failure) if failure.class == FailureClass::Permission => return Err(failure),
            Err(failure) => {
                notes.push(failure.what.clone());
                refusal = failure;
            }
        }
    }
    Err(refusal)
}

fn openable(event: &EventRequest, cpu: u32, precision: Precision) -> Result<(), Failure> {
    let scope = Scope::Cpu(event.cpus.as_ref().and_then(|cpus| cpus.first().copied()).unwrap_or(cpu));
    let mut refusal = None;
    for level in pmu::ladder(event, precision).levels {
        let rate = Rate::Period(event.default_period);
        let request = Request { encoding: encoding(event), rate, precise: level, wanted: Wanted::default() };
        match try_open(&request, None, scope) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = Some(explain::open(&error, &request, scope)),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        Failure::new(FailureClass::Unmet, format!("{} cannot be precise here", event.name))
    }))
}
