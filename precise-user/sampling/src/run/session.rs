//! A live run's state, from the first look at the machine to the events' last words.

use std::{error::Error, path::Path, process::ExitStatus, time::Duration};

use caps::Capability;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until},
};

use super::{
    child::{self, Held, Running},
    kill_switch::KillSwitch,
    opening::{self, Sampled},
    plan::{Plan, Target},
    watch::Watch,
};
use crate::error::{ErrorClass, SamplingError};
use crate::kernel::sideband::{Mappings, Sideband};
use crate::machine::{MachineInfo, Root, Sysctls};
use crate::rights;
use crate::rights::Rights;
use crate::run::verdict;
use crate::symbols::cgroup::{Cgroups, PerfEventOn};
use crate::symbols::process::Limits;
use crate::symbols::{Processes, SymbolOptions, Symbolizer};
use precise_model::{Dimension, EventInfo, RateChange};
use precise_records::record::IdentifiedRecord;

/// Open events, and everything that ends with the run.
pub(crate) struct Session {
    pub machine: MachineInfo,
    pub events: Vec<Sampled>,
    sideband: Sideband,
    signals: Signals,
    held: Option<Held>,
    child: Option<Running>,
    /// `None`: the run has no end of its own.
    deadline: Option<Instant>,
    kill_switch: KillSwitch,
    /// Why the kill switch ended the run, where it did.
    stopped: Option<String>,
    /// What became of the command, unless it ended by itself or by SIGTERM.
    ending: Option<String>,
    /// What is said once of all events that PEBS serves.
    pebs: Option<String>,
    /// Where the filter waits for cgroups.
    watch: Option<Watch>,
    /// What has no name because of a capability that is missing.
    nameless: Option<String>,
    /// What a reader must know of the run while it goes on, and has not been told yet.
    news: Vec<String>,
}

/// What the naming thread takes along: who was where.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    pub symbolizer: Symbolizer,
    pub cgroups: Cgroups,
    pub processes: Processes,
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It took as long as it should.
    Time,
    Signal,
    /// Nobody wants more samples.
    Enough,
    /// The kill switch was thrown.
    Stopped,
    Command(ExitStatus),
}

impl Session {
    /// Opens the plan's events, disabled; a command is started and held back before its exec.
    /// `mappings`: those that addresses will be looked up in.
    pub fn open(plan: &Plan, mappings: Mappings) -> Result<(Self, Whereabouts), SamplingError> {
        plan.kill_switch.allow()?;
        // From here on, whoever interrupts gets what was seen: also between the first sample and
        // the loop.
        let signals = Signals::listen()?;
        let machine = MachineInfo::read(&Root::default());
        let cgroups =
            Cgroups::open(Path::new("/")).map_err(|error| failed("cannot list the cgroups", error))?;
        // PERF_SAMPLE_CGROUP is cheaper than the helper, but its ids are the perf_event
        // controller's: the same as the unified hierarchy's only where that controller is on it.
        let cgroup_from_sample = matches!(cgroups.report().perf_event, PerfEventOn::V2);

        let held = match &plan.target {
            Target::Command(command) => Some(Held::start(command)?),
            _ => None,
        };
        let scopes = opening::scopes(plan, held.as_ref().map(|held| held.pid))?;
        let mut events: Vec<Sampled> = Vec::new();
        for planned in &plan.events {
            let first = events.first().map(|event| &event.sampler);
            let opened = opening::open(plan, planned, &scopes, cgroup_from_sample, &machine, first)?;
            events.push(opened);
        }
        let pebs = events
            .iter()
            .find_map(|event| verdict::pebs_note(&event.planned.request, event.granted, &machine));
        // Not earlier: nobody reads it while events are opened and the program is loaded, and on a
        // machine that starts many processes its rings would be full before the first sample.
        let sideband = Sideband::open(&machine.online, mappings)?;
        // Nothing more is opened; what follows reads what processes and files say of themselves.
        // The command was forked before, and keeps its rights.
        if plan.gives_up_rights {
            rights::give_up().map_err(|error| failed("cannot drop privileges", error))?;
        }
        let sets = events.iter().filter_map(|event| event.sampler.program().watched.clone()).collect();
        let watch = match &plan.watch[..] {
            [] => None,
            patterns => Some(Watch::start(patterns.to_vec(), sets)?),
        };
        // Not earlier: its thread has the rights of the one that starts it.
        let symbolizer = Symbolizer::spawn(SymbolOptions::default())
            .map_err(|error| failed("cannot start the symbolizer", error))?;
        let whereabouts = Whereabouts { symbolizer, cgroups, processes: Processes::new(Limits::default()) };
        let nameless = nameless(plan);
        let session = Self {
            machine,
            events,
            sideband,
            signals,
            held,
            child: None,
            deadline: None,
            kill_switch: plan.kill_switch.clone(),
            stopped: None,
            ending: None,
            pebs,
            watch,
            nameless,
            news: Vec::new(),
        };
        Ok((session, whereabouts))
    }

    /// What was granted, one sentence per step down.
    pub fn findings(&self) -> Vec<String> {
        let mut said = Vec::new();
        for finding in self.events.iter().flat_map(|event| &event.findings).chain(&self.pebs) {
            if !said.contains(finding) {
                said.push(finding.clone());
            }
        }
        said
    }

    /// Bytes of all rings that the kernel writes to.
    pub fn ring_memory(&self) -> usize {
        self.events.iter().map(|event| event.sampler.ring_memory()).sum::<usize>() + self.sideband.memory()
    }

    /// What processes did since the last call.
    pub fn sideband(&mut self) -> Vec<IdentifiedRecord> {
        let entries = self.sideband.take();
        if let Some(watch) = &self.watch {
            watch.follow(&entries);
        }
        entries
    }

    /// Starts sampling. A command's events start by themselves at its exec.
    pub fn enable(&mut self) -> Result<(), SamplingError> {
        if self.held.is_some() {
            return Ok(());
        }
        self.events.iter_mut().try_for_each(|event| event.sampler.enable())
    }

    /// Lets the command go, and counts the run's duration from now on.
    pub fn release(&mut self, duration: Option<Duration>) -> Result<(), SamplingError> {
        self.child = self.held.take().map(Held::release).transpose()?;
        self.deadline = duration.map(|duration| Instant::now() + duration);
        Ok(())
    }

    /// Returns when the time is over, or somebody wants the run to end.
    pub async fn over(&mut self) -> End {
        let deadline = self.deadline;
        let time = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = time => End::Time,
            () = self.signals.any() => End::Signal,
        }
    }

    /// What has happened since the last call that a reader must know at once, one sentence each. It
    /// is in the events' ledgers too.
    pub fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Keeps throttled events alive, stops those that took far more samples than were asked for,
    /// and asks whether the command has ended or the kill switch was thrown. To be called every few
    /// ticks of the kernel.
    pub fn look_after(&mut self) -> Result<Option<End>, SamplingError> {
        for event in &mut self.events {
            if let Some(runaway) = event.look_after()? {
                self.news.push(format!("{}: {runaway}", event.planned.request.name));
            }
        }
        self.stopped = self.kill_switch.thrown();
        if self.stopped.is_some() {
            return Ok(Some(End::Stopped));
        }
        let Some(child) = &mut self.child else { return Ok(None) };
        let ended = child.ended().map_err(|error| {
            SamplingError::new(ErrorClass::Failed, "cannot wait for the command").because(error)
        })?;
        Ok(ended.map(End::Command))
    }

    /// Stops sampling. Returns how the command ended, if it ended by itself. Otherwise the command
    /// goes on until [`Self::end_command`].
    pub fn stop(&mut self, end: End) -> Result<Option<ExitStatus>, SamplingError> {
        self.events.iter_mut().try_for_each(|event| event.sampler.disable())?;
        match end {
            End::Command(status) => {
                self.child = None;
                return Ok(Some(status));
            }
            // The kill switch is about precise: the command goes on without it.
            End::Stopped => self.child = None,
            End::Time | End::Signal | End::Enough => {}
        }
        Ok(None)
    }

    /// Ends the command if it still runs: a run that is shorter than its command does not leave it
    /// behind. To be called after the last read of tables and rings, as a command that does not end
    /// at once takes seconds.
    pub fn end_command(&mut self) {
        let Some(child) = self.child.take() else { return };
        // An error is no reason to lose what was sampled.
        self.ending = match child.end(child::GRACE) {
            Ok(ending) => ending.note(),
            Err(error) => Some(format!("cannot stop the command: {error}")),
        };
    }

    /// What became of each event, now that they are stopped. `changes`: of each event's rate, where
    /// there were any.
    pub fn finish(
        &mut self,
        plan: &Plan,
        changes: Vec<Vec<RateChange>>,
    ) -> Result<Vec<EventInfo>, SamplingError> {
        let after = Sysctls::read(&Root::default(), &mut Vec::new());
        let changes = changes.into_iter().chain(std::iter::repeat(Vec::new()));
        self.events
            .iter_mut()
            .zip(changes)
            .map(|(event, changes)| event.finish(plan, &self.machine, &after, changes))
            .collect()
    }

    /// Why the kill switch ended the run, in words, where it did.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// What is known from the start and belongs to no single event, one sentence each.
    pub fn early_notes(&self) -> Vec<String> {
        self.machine.problems.iter().chain(&self.pebs).chain(&self.nameless).cloned().collect()
    }

    /// Records of what processes did that were lost up to now.
    pub fn sideband_lost(&self) -> u64 {
        self.sideband.lost()
    }

    /// What belongs to no single event, one sentence each.
    pub fn notes(&mut self) -> Vec<String> {
        let mut notes = self.early_notes();
        notes.extend(self.stopped.iter().map(|why| format!("stopped early: {why}")));
        notes.extend(self.ending.clone());
        notes.extend(self.watch.iter_mut().flat_map(Watch::finish));
        let lost = self.sideband.lost();
        if lost > 0 {
            notes.push(format!(
                "{lost} records of process starts and mappings were lost: some samples may lack names"
            ));
        }
        notes
    }
}

/// Whose code and data have no names where a run may not look at them.
fn nameless(plan: &Plan) -> Option<String> {
    let asks = |dimension| plan.dimensions.contains(&dimension);
    let named = plan.stream.is_some() || asks(Dimension::Ip) || asks(Dimension::Address);
    // Who names a process or runs a command has its own in mind.
    let others = named && matches!(plan.target, Target::All);
    let missing = Rights::read(&Root::default()).missing(&[Capability::CAP_SYS_PTRACE]);
    (others && !missing.is_empty()).then(|| {
        "CAP_SYS_PTRACE is missing, so files that other users' processes mapped before the run have no \
         names"
            .to_owned()
    })
}

/// What ends a run early.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on: an interrupt does not end the process any more.
    fn listen() -> Result<Self, SamplingError> {
        Ok(Self {
            interrupt: on_signal(SignalKind::interrupt())?,
            terminate: on_signal(SignalKind::terminate())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn on_signal(kind: SignalKind) -> Result<Signal, SamplingError> {
    signal(kind)
        .map_err(|error| SamplingError::new(ErrorClass::Failed, "cannot receive signals").because(error))
}

fn failed(what: &str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> SamplingError {
    SamplingError::new(ErrorClass::Failed, what).because(cause)
}
