//! A live run: events on, cells drained per epoch, processes followed, until it ends.

use std::{
    ffi::OsString,
    ops::Range,
    path::Path,
    process::ExitStatus,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use precise_common::{
    cell::{Cell, Class},
    config::{Config, field, key},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use super::{
    assemble::{Assembler, AssemblerOptions},
    child::{Held, Running},
    model::{Capture, Dimension, Epoch, EventInfo, Fields, Meta, SCHEMA_VERSION, Verdict},
    naming::Naming,
    verdict,
};
use crate::{
    capture::Precision,
    error::{Class as FailureClass, Failure},
    filter::Compiled,
    kernel::{
        event::{Encoding, Event, Rate, Request, Scope, Wanted},
        explain,
        program::{ProgramOptions, ReadPath},
        sampler::Sampler,
        sideband::Sideband,
    },
    machine::{MachineInfo, Root, Sysctls},
    pmu::{self, EventRequest, workflow::Candidate},
    symbols::{
        Processes, SymbolOptions, Symbolizer,
        cgroup::{Cgroups, Hierarchy, PerfEventOn},
        process::Limits,
    },
};

/// How often the sideband is read between epochs, so that a burst of starting processes finds room.
const SIDEBAND_INTERVAL: Duration = Duration::from_millis(50);

/// Whom to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything.
    All,
    /// Processes, with all their threads and what they start.
    Processes(Vec<u32>),
    /// Threads, and what they start.
    Threads(Vec<u32>),
    /// A command, from its exec to its end, with its children.
    Command(Vec<OsString>),
}

/// Everything about a run, validated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The events, at least one.
    pub events: Vec<PlannedEvent>,
    /// Whom to sample.
    pub target: Target,
    /// CPUs to sample on.
    pub cpus: Vec<u32>,
    /// How much precision is asked for.
    pub precision: Precision,
    /// What to group by.
    pub dimensions: Vec<Dimension>,
    /// Data addresses are grouped by this many bytes, a power of two.
    pub address_granule: u64,
    /// The filter as the user wrote it.
    pub filter_text: String,
    /// Interval between two reads of the table.
    pub epoch: Duration,
    /// Length of the run; `None`: until the command ends or somebody interrupts.
    pub duration: Option<Duration>,
    /// Cells per CPU and half.
    pub table_cells: usize,
    /// The command line, for the capture.
    pub command_line: Vec<String>,
    /// Forces a read path; for tests.
    pub read_path: Option<ReadPath>,
}

/// One event of a plan.
#[derive(Clone, Debug)]
pub struct PlannedEvent {
    /// What it is.
    pub request: EventRequest,
    /// How often.
    pub rate: Rate,
    /// The filter, compiled for this event.
    pub filter: Compiled,
}

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Sampling has begun.
    Started {
        /// Kernel memory of the tables, bytes; constant during the run.
        table_bytes: usize,
        /// What was granted, one sentence per step down.
        findings: Vec<String>,
    },
    /// An epoch has ended.
    Epoch {
        /// Its number, from 0.
        number: usize,
        /// Samples that the program has seen up to now.
        seen: u64,
        /// Since the start.
        elapsed: Duration,
    },
}

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// What was seen.
    pub capture: Capture,
    /// How the command ended, where one was run and ended by itself.
    pub command: Option<ExitStatus>,
}

/// One event while it is sampled.
struct Sampled {
    planned: PlannedEvent,
    sampler: Sampler,
    granted: u8,
    findings: Vec<String>,
}

/// Runs a plan to its end.
///
/// # Errors
///
/// When nothing can be sampled. What is lost after the start is counted, and ends no run.
pub async fn run(plan: &Plan, mut progress: impl FnMut(Progress)) -> Result<Finished, Failure> {
    // From here on, whoever interrupts gets what was seen: also between the first sample and the loop.
    let mut signals = Signals {
        interrupt: on_signal(SignalKind::interrupt())?,
        terminate: on_signal(SignalKind::terminate())?,
    };
    let machine = MachineInfo::read(&Root::default());
    let mut sideband = Sideband::open(&machine.online, plan.dimensions.contains(&Dimension::Address))?;
    let mut notes = machine.problems.clone();
    let cgroups = Cgroups::open(Path::new("/")).map_err(|error| {
        Failure::new(FailureClass::Failed, format!("the cgroups cannot be found: {error}"))
    })?;
    // PERF_SAMPLE_CGROUP is cheaper than the helper, but its ids are the perf_event controller's: the same as the
    // unified hierarchy's only where that controller is on it.
    let cgroup_from_sample = matches!(cgroups.report().perf_event, PerfEventOn::V2);
    let symbolizer = Symbolizer::spawn(SymbolOptions::default()).map_err(|error| {
        Failure::new(FailureClass::Failed, format!("the symbolizer cannot be started: {error:#}"))
    })?;

    let held = match &plan.target {
        Target::Command(command) => Some(Held::start(command)?),
        _ => None,
    };
    let scopes = scopes(plan, held.as_ref().map(|held| held.pid))?;
    let mut running = Vec::new();
    for planned in &plan.events {
        running.push(open(plan, planned, &scopes, cgroup_from_sample)?);
    }
    let table_bytes = running.iter().map(|event| event.sampler.program().table.memory()).sum();
    let findings = running.iter().flat_map(|event| event.findings.clone()).collect();

    let assembler = Assembler::new(
        AssemblerOptions {
            dimensions: plan.dimensions.clone(),
            address_granule: plan.address_granule,
            hierarchy: Hierarchy::V2,
        },
        symbolizer,
        cgroups,
    );
    let naming = Naming::start(assembler, Processes::new(Limits::default()), monotonic_ns())?;
    let mut run = Run { plan, naming, epochs: Vec::new(), start_clock: 0, epoch_begin: 0 };
    let start_unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let mut command = None;
    // A command's events start by themselves at its exec.
    if held.is_none() {
        running.iter().try_for_each(|event| event.sampler.enable())?;
    }
    run.start_clock = monotonic_ns();
    run.epoch_begin = run.start_clock;
    progress(Progress::Started { table_bytes, findings });
    let mut child = held.map(Held::release).transpose()?;
    let ended = run.until_end(&mut running, &mut sideband, &mut child, &mut signals, &mut progress).await?;
    running.iter().try_for_each(|event| event.sampler.disable())?;
    if let Some(child) = &mut child {
        match ended {
            End::Command(status) => command = Some(status),
            End::Time | End::Signal => {
                // Whoever asked for a shorter run than the command takes does not want the command to go on for ever.
                child.end().map_err(|error| {
                    Failure::new(FailureClass::Failed, format!("the command could not be ended: {error}"))
                })?;
            }
        }
    }
    run.end_epoch(&mut running, &mut sideband)?;

    let mut meta = Meta {
        schema: SCHEMA_VERSION,
        producer: format!("precise {}", env!("CARGO_PKG_VERSION")),
        command: plan.command_line.clone(),
        machine: machine.machine.clone(),
        start_unix_ns,
        epochs: run.epochs.clone(),
        dimensions: plan.dimensions.clone(),
        address_granule: plan.address_granule,
        filter: plan.filter_text.clone(),
        target: plan.target.words(),
        ..Meta::default()
    };
    let sysctls_after = Sysctls::read(&Root::default(), &mut Vec::new());
    for event in &mut running {
        meta.events.push(event.finish(plan, &machine, &sysctls_after)?);
    }
    if sideband.lost() > 0 {
        notes.push(format!(
            "{} records of starting processes and mappings were lost: some samples may lack names",
            sideband.lost()
        ));
    }
    let named = run.naming.finish()?;
    notes.extend(named.notes);
    meta.notes = notes;
    Ok(Finished { capture: Capture { meta, ..named.capture }, command })
}

/// What ends a run early.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Why a run ended.
enum End {
    Time,
    Signal,
    Command(ExitStatus),
}

/// The state of a run that is going on.
struct Run<'a> {
    plan: &'a Plan,
    naming: Naming,
    epochs: Vec<Epoch>,
    start_clock: u64,
    epoch_begin: u64,
}

impl Run<'_> {
    async fn until_end(
        &mut self,
        running: &mut [Sampled],
        sideband: &mut Sideband,
        child: &mut Option<Running>,
        signals: &mut Signals,
        progress: &mut impl FnMut(Progress),
    ) -> Result<End, Failure> {
        let begin = Instant::now();
        let mut epochs = interval(self.plan.epoch);
        epochs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval comes at once.
        epochs.tick().await;
        let mut housekeeping = interval(SIDEBAND_INTERVAL);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let far = begin + Duration::from_secs(86_400 * 365);
        let end = self.plan.duration.map_or(far, |duration| begin + duration);
        loop {
            tokio::select! {
                // In this order: an epoch that ends with the run is ended once.
                biased;
                () = sleep_until(end) => return Ok(End::Time),
                _ = signals.interrupt.recv() => return Ok(End::Signal),
                _ = signals.terminate.recv() => return Ok(End::Signal),
                _ = epochs.tick() => {
                    self.end_epoch(running, sideband)?;
                    progress(Progress::Epoch {
                        number: self.epochs.len() - 1,
                        seen: running.iter().map(|event| event.sampler.seen()).sum(),
                        elapsed: begin.elapsed(),
                    });
                }
                _ = housekeeping.tick() => {
                    self.naming.sideband(sideband.take());
                    if let Some(running) = child
                        && let Some(status) = running.ended().map_err(|error| {
                            Failure::new(FailureClass::Failed, format!("the command cannot be waited for: {error}"))
                        })?
                    {
                        return Ok(End::Command(status));
                    }
                }
            }
        }
    }

    /// Reads the table of each event, then the sideband: whatever a sample needs to be named was recorded before it.
    fn end_epoch(&mut self, running: &mut [Sampled], sideband: &mut Sideband) -> Result<(), Failure> {
        let mut taken: Vec<Vec<(usize, Cell)>> = Vec::new();
        for event in running.iter_mut() {
            let mut cells = Vec::new();
            event.sampler.drain(|cpu, cell| cells.push((cpu, *cell)))?;
            taken.push(cells);
        }
        let now = monotonic_ns();
        self.naming.sideband(sideband.take());
        let window: Range<u64> = self.epoch_begin..now;
        let epoch = self.epochs.len() as u32;
        self.epochs.push(Epoch {
            start_ns: self.epoch_begin.saturating_sub(self.start_clock),
            end_ns: now.saturating_sub(self.start_clock),
        });
        self.naming.epoch(epoch, window, taken);
        self.epoch_begin = now;
        Ok(())
    }
}

impl Sampled {
    fn finish(&mut self, plan: &Plan, machine: &MachineInfo, after: &Sysctls) -> Result<EventInfo, Failure> {
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
fn open(
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

fn try_open(
    request: &Request,
    leader: Option<&Request>,
    scope: Scope,
) -> Result<(), crate::error::SyscallError> {
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

fn scopes(plan: &Plan, command: Option<u32>) -> Result<Vec<Scope>, Failure> {
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

impl Target {
    /// In words, for reports.
    pub fn words(&self) -> String {
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::All => "all processes".into(),
            Self::Processes(pids) if pids.len() == 1 => format!("process {}", list(pids)),
            Self::Processes(pids) => format!("processes {}", list(pids)),
            Self::Threads(tids) if tids.len() == 1 => format!("thread {}", list(tids)),
            Self::Threads(tids) => format!("threads {}", list(tids)),
            Self::Command(command) => {
                let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
                format!("command `{}` and its children", words.join(" "))
            }
        }
    }
}

fn on_signal(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind)
        .map_err(|error| Failure::new(FailureClass::Failed, format!("signals cannot be received: {error}")))
}

/// The sideband's clock.
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
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
