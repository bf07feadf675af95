//! A live run: events on, cells drained per epoch, processes followed, until it ends.

use std::{
    ops::Range,
    path::Path,
    process::ExitStatus,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use precise_common::cell::Cell;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use super::{
    assemble::{Assembler, AssemblerOptions},
    child::{Held, Running},
    model::{Capture, Dimension, Epoch, Meta, SCHEMA_VERSION},
    naming::Naming,
    opening::{self, Sampled},
    plan::{Plan, Target},
};
use crate::{
    error::{Class as FailureClass, Failure},
    kernel::sideband::Sideband,
    machine::{MachineInfo, Root, Sysctls},
    symbols::{
        Processes, SymbolOptions, Symbolizer,
        cgroup::{Cgroups, Hierarchy, PerfEventOn},
        process::Limits,
    },
};

/// How often the sideband is read between epochs, so that a burst of starting processes finds room.
const SIDEBAND_INTERVAL: Duration = Duration::from_millis(50);

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

/// Runs a plan to its end.
///
/// # Errors
///
/// When nothing can be sampled. What is lost after the start is counted, and ends no run.
pub async fn run(plan: &Plan, mut progress: impl FnMut(Progress)) -> Result<Finished, Failure> {
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
    let scopes = opening::scopes(plan, held.as_ref().map(|held| held.pid))?;
    let mut running = Vec::new();
    for planned in &plan.events {
        running.push(opening::open(plan, planned, &scopes, cgroup_from_sample)?);
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
    // Before the first sample: from then on, who ends the run early gets what was seen.
    let stop = [on_signal(SignalKind::interrupt())?, on_signal(SignalKind::terminate())?];
    // A command's events start by themselves at its exec.
    if held.is_none() {
        running.iter().try_for_each(|event| event.sampler.enable())?;
    }
    run.start_clock = monotonic_ns();
    run.epoch_begin = run.start_clock;
    progress(Progress::Started { table_bytes, findings });
    let mut child = held.map(Held::release).transpose()?;
    let ended = run.until_end(&mut running, &mut sideband, &mut child, &mut progress, stop).await?;
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
        progress: &mut impl FnMut(Progress),
        stop: [Signal; 2],
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
        let [mut interrupted, mut terminated] = stop;
        loop {
            tokio::select! {
                // In this order: an epoch that ends with the run is ended once.
                biased;
                () = sleep_until(end) => return Ok(End::Time),
                _ = interrupted.recv() => return Ok(End::Signal),
                _ = terminated.recv() => return Ok(End::Signal),
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
