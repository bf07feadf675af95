//! The state of a live run, from reading the machine's facts to the final ledgers of its events.

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

/// The open events of a run, and everything else that lasts as long as the run.
pub(crate) struct Session {
    pub machine: MachineInfo,
    pub events: Vec<Sampled>,
    sideband: Sideband,
    signals: Signals,
    held: Option<Held>,
    child: Option<Running>,
    /// When the run ends; `None` if the run has no time limit.
    deadline: Option<Instant>,
    kill_switch: KillSwitch,
    /// Why the kill switch ended the run; `None` if it did not.
    stopped: Option<String>,
    /// A note on how the command ended; `None` if it ended by itself or by SIGTERM.
    ending: Option<String>,
    /// A note on the cost of PEBS, the same for all PEBS events; `None` if no event uses PEBS.
    pebs: Option<String>,
    /// The thread that finds new cgroups of the filter; `None` if the filter has no patterns.
    watch: Option<Watch>,
    /// A note on names that a missing capability makes unavailable.
    nameless: Option<String>,
    /// Messages that the reader must see during the run and that were not taken yet.
    news: Vec<String>,
}

/// What the naming thread needs: the symbolizer, the cgroups, and the history of processes.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    pub symbolizer: Symbolizer,
    pub cgroups: Cgroups,
    pub processes: Processes,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The run reached its time limit.
    Time,
    Signal,
    /// The consumer of the samples wants no more.
    Enough,
    /// A kill switch file exists.
    Stopped,
    Command(ExitStatus),
}

impl Session {
    /// Opens the events of the plan, disabled. A command is forked, but waits before its exec.
    /// `mappings` says which mappings the sideband records.
    pub fn open(plan: &Plan, mappings: Mappings) -> Result<(Self, Whereabouts), SamplingError> {
        plan.kill_switch.allow()?;
        // From here on, an interrupt keeps the samples taken so far, even if it comes between the
        // first sample and the run loop.
        let signals = Signals::listen()?;
        let machine = MachineInfo::read(&Root::default());
        let cgroups =
            Cgroups::open(Path::new("/")).map_err(|error| failed("cannot list the cgroups", error))?;
        // PERF_SAMPLE_CGROUP is cheaper than the BPF helper, but its ids come from the hierarchy of
        // the perf_event controller. They equal the ids of the unified hierarchy only if that
        // controller is on it.
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
        // Not earlier: nobody reads the sideband while events are opened and the program is loaded.
        // On a machine that starts many processes its rings would be full before the first sample.
        let sideband = Sideband::open(&machine.online, mappings)?;
        // Nothing more is opened that needs privileges; the rest only reads data about processes
        // and files. The command was forked before and keeps its privileges.
        if plan.gives_up_rights {
            rights::give_up().map_err(|error| failed("cannot drop privileges", error))?;
        }
        let sets = events.iter().filter_map(|event| event.sampler.program().watched.clone()).collect();
        let watch = match &plan.watch[..] {
            [] => None,
            patterns => Some(Watch::start(patterns.to_vec(), sets)?),
        };
        // Not earlier: the new thread inherits the privileges of the thread that starts it.
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

    /// Returns one sentence for each step down in precision, and the note on PEBS, without
    /// duplicates.
    pub fn findings(&self) -> Vec<String> {
        let mut said = Vec::new();
        for finding in self.events.iter().flat_map(|event| &event.findings).chain(&self.pebs) {
            if !said.contains(finding) {
                said.push(finding.clone());
            }
        }
        said
    }

    /// Returns the size in bytes of all rings that the kernel writes to.
    pub fn ring_memory(&self) -> usize {
        self.events.iter().map(|event| event.sampler.ring_memory()).sum::<usize>() + self.sideband.memory()
    }

    /// Returns the sideband records since the last call.
    pub fn sideband(&mut self) -> Vec<IdentifiedRecord> {
        let entries = self.sideband.take();
        if let Some(watch) = &self.watch {
            watch.follow(&entries);
        }
        entries
    }

    /// Starts sampling. The events of a command start by themselves at its exec.
    pub fn enable(&mut self) -> Result<(), SamplingError> {
        if self.held.is_some() {
            return Ok(());
        }
        self.events.iter_mut().try_for_each(|event| event.sampler.enable())
    }

    /// Lets the command exec, and starts the clock for `duration`.
    pub fn release(&mut self, duration: Option<Duration>) -> Result<(), SamplingError> {
        self.child = self.held.take().map(Held::release).transpose()?;
        self.deadline = duration.map(|duration| Instant::now() + duration);
        Ok(())
    }

    /// Returns when the time limit is reached or a signal asks the run to end.
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

    /// Returns the messages since the last call that a reader must see at once, one sentence each.
    /// The ledgers of the events contain the same facts.
    pub fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Restarts throttled events, stops events that take far more samples than requested, and
    /// checks whether the command has ended or a kill switch file exists. Call it every few ticks
    /// of the kernel.
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

    /// Stops sampling. Returns the exit status of the command if it ended by itself; otherwise the
    /// command continues until [`Self::end_command`].
    pub fn stop(&mut self, end: End) -> Result<Option<ExitStatus>, SamplingError> {
        self.events.iter_mut().try_for_each(|event| event.sampler.disable())?;
        match end {
            End::Command(status) => {
                self.child = None;
                return Ok(Some(status));
            }
            // The kill switch stops only precise; the command continues without it.
            End::Stopped => self.child = None,
            End::Time | End::Signal | End::Enough => {}
        }
        Ok(None)
    }

    /// Ends the command if it still runs, so that a run that is shorter than its command leaves no
    /// process behind. Call it after the last read of tables and rings, because a command that does
    /// not end at once takes seconds.
    pub fn end_command(&mut self) {
        let Some(child) = self.child.take() else { return };
        // An error here must not discard the samples.
        self.ending = match child.end(child::GRACE) {
            Ok(ending) => ending.note(),
            Err(error) => Some(format!("cannot stop the command: {error}")),
        };
    }

    /// Returns the result of each event. Call it after the events are stopped. `changes` holds the
    /// changes of each event's rate; it may be empty.
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

    /// Returns why the kill switch ended the run, in words; `None` if it did not.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Returns the notes that are known from the start and concern no single event, one sentence
    /// each.
    pub fn early_notes(&self) -> Vec<String> {
        self.machine.problems.iter().chain(&self.pebs).chain(&self.nameless).cloned().collect()
    }

    /// Returns the number of sideband records that the kernel has lost so far.
    pub fn sideband_lost(&self) -> u64 {
        self.sideband.lost()
    }

    /// Returns the notes that concern no single event, one sentence each.
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

/// Returns a note if the run lacks the capability to name code and data of other users' processes.
fn nameless(plan: &Plan) -> Option<String> {
    let asks = |dimension| plan.dimensions.contains(&dimension);
    let named = plan.stream.is_some() || asks(Dimension::Ip) || asks(Dimension::Address);
    // With any other target, the user usually samples their own processes.
    let others = named && matches!(plan.target, Target::All);
    let missing = Rights::read(&Root::default()).missing(&[Capability::CAP_SYS_PTRACE]);
    (others && !missing.is_empty()).then(|| {
        "CAP_SYS_PTRACE is missing, so files that other users' processes mapped before the run have no \
         names"
            .to_owned()
    })
}

/// The signals that end a run early.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to receive the signals; from now on they do not end the process.
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
