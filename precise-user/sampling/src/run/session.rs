//! The state of a live run, from reading the machine's facts to the final ledgers of its events.

use std::{
    path::Path,
    process::ExitStatus,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use caps::Capability;

use super::{
    alarm::{Alarm, after},
    cell_slot,
    child::{self, Held, RunningCommand},
    cpus::Cpus,
    deadline::Deadline,
    idle,
    kill_switch::KillSwitch,
    opening::{self, SampledEvent},
    own::{self, Helpers},
    plan::{Plan, Target},
    scopes,
    signals::Signals,
    watch::Watch,
};
use crate::error::SamplingError;
use crate::kernel::descriptors;
use crate::kernel::offsets::KernelTypes;
use crate::kernel::opener::Opener;
use crate::kernel::sideband::{Mappings, Sideband};
use crate::machine::{CpuState, MachineInfo, Root, Sysctls};
use crate::reader::Reader;
use crate::rights;
use crate::rights::Rights;
use crate::run::budget::NamesBudget;
use crate::run::verdict;
use crate::symbols::cgroup::Cgroups;
use crate::symbols::process::HistoryLimits;
use crate::symbols::{Processes, SymbolOptions, Symbolizer, table_cache};
use crate::unwind::UnwindTarget;
use precise_model::digits::counted;
use precise_model::{Dimension, EventInfo, RateChange};
use precise_records::record::IdentifiedRecord;

/// Maximum number of messages that wait to be taken.
const NEWS: usize = 100;

/// The open events of a run, and everything else that lasts as long as the run.
pub(crate) struct Session {
    pub machine: MachineInfo,
    pub events: Vec<SampledEvent>,
    sideband: Sideband,
    /// The CPUs that come and go.
    cpus: Cpus,
    signals: Signals,
    alarm: Alarm,
    held: Option<Held>,
    /// Whether the events start by themselves, at the exec of the command.
    starts_at_exec: bool,
    /// Whether the run ends when the tasks that it samples have ended.
    ends_with_tasks: bool,
    child: Option<RunningCommand>,
    /// When sampling ends; `None` if the run has no time limit.
    time_limit: Option<Instant>,
    /// By when the run must have ended.
    deadline: Deadline,
    kill_switch: KillSwitch,
    /// Why the kill switch ended the run; `None` if it did not.
    stopped: Option<String>,
    /// A note on how the command ended; `None` if it ended by itself or by SIGTERM.
    ending: Option<String>,
    /// Notes on how samples are taken: on the cost of PEBS, and on tracepoints.
    how_sampled: Vec<String>,
    /// The thread that finds new cgroups of the filter; `None` if the filter has no patterns.
    watch: Option<Watch>,
    /// A note on names that a missing capability makes unavailable.
    nameless: Option<String>,
    /// The helpers whose samples are left out; `None` if the run keeps its own samples.
    helpers: Option<Helpers>,
    /// A note if the run cannot leave out its own samples.
    with_own: Option<String>,
    /// A note on events without call chains.
    without_chains: Option<String>,
    /// A note on a table that is smaller than usual.
    fewer_cells: Option<String>,
    /// How long the CPUs of the run have been idle: until it began, and while it sampled. `None` if
    /// it samples tasks, or if the kernel does not say.
    idle_before: Option<u64>,
    /// The CPUs of [`Self::idle`]; empty if the run samples tasks.
    idle_of: Vec<u32>,
    idle_ns: Option<u64>,
    /// A note on CPUs that the machine did not have when the run began.
    came_online: Option<String>,
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
pub(crate) enum RunEnd {
    /// The run reached its time limit.
    Time,
    Signal,
    /// The consumer of the samples wants no more.
    Enough,
    /// A kill switch file exists.
    Stopped,
    Command(ExitStatus),
    /// The sampled tasks, and all that they started, have ended.
    Tasks,
}

impl Session {
    /// Opens the events of the plan, disabled. A command is forked, but waits before its exec.
    /// `mappings` says which mappings the sideband records.
    pub fn open(plan: &Plan, mappings: Mappings) -> Result<(Self, Whereabouts), SamplingError> {
        plan.kill_switch.allow()?;
        // From here on, an interrupt keeps the samples taken so far, even if it comes between the
        // first sample and the run loop.
        let signals = Signals::listen()?;
        let alarm = Alarm::new().map_err(|error| SamplingError::failed("cannot set an alarm", error))?;
        let machine = MachineInfo::read(&Root::default());
        // Before the command is forked, which gets the old limit back.
        let limits = descriptors::raise()
            .map_err(|error| SamplingError::failed("the limit of open files cannot be raised", error))?;
        let cgroups = Cgroups::open(Path::new("/"))
            .map_err(|error| SamplingError::failed("cannot list the cgroups", error))?;
        // For each sample the kernel would search the namespace. The program finds the ids at once,
        // but those in the initial namespace only.
        let ids = !Root::default().has_initial_pids();

        let held = plan.command().map(|command| Held::start(command, plan.output_apart)).transpose()?;
        let pid = held.as_ref().map(|held| held.pid);
        let (plan, scopes) = scopes::affordable(plan, pid, machine.online.len(), limits)?;
        let plan = &*plan;
        // Not earlier: no other thread may run while the command is forked.
        let types = KernelTypes::read_ahead();
        let mut events: Vec<SampledEvent> = Vec::new();
        for planned in &plan.events {
            let first = events.first().map(|event| &event.sampler);
            let opened = opening::open(plan, planned, &scopes, ids, &machine, first)?;
            events.push(opened);
        }
        // The thread has inherited the privileges that this one may give up below.
        let _read = types.map(JoinHandle::join);
        let pebs = events
            .iter()
            .find_map(|event| verdict::pebs_note(&event.planned.request, event.granted, &machine));
        let at_tracepoints = events.iter().any(|event| event.sampler.program().is_for_tracepoints());
        let how_sampled = pebs.into_iter().chain(verdict::tracepoints_note(at_tracepoints)).collect();
        // Not earlier: nobody reads the sideband while events are opened and the program is loaded.
        // On a machine that starts many processes its rings would be full before the first sample.
        let sideband = Sideband::open(&machine.online, mappings)?;
        // It keeps the privileges that opening events needs.
        let opener = Opener::start(events.iter().map(|event| &event.sampler), mappings)?;
        let cpus = Cpus::watch(opener, &sideband);
        // Its process gives up privileges too, and can give up more while it has them.
        let mut reader = Reader::start()?;
        let mut helpers = Helpers::of(plan, &mut reader);
        helpers.iter_mut().for_each(|helpers| helpers.announce(&events));
        // Nothing more is opened that needs privileges; the rest only reads data about processes
        // and files. The command was forked before and keeps its privileges.
        if plan.gives_up_rights {
            rights::give_up().map_err(|error| SamplingError::failed("cannot drop privileges", error))?;
        }
        let sets = events.iter().filter_map(|event| event.sampler.program().watched.clone()).collect();
        let watch = match &plan.watch[..] {
            [] => None,
            patterns => Some(Watch::start(patterns.to_vec(), sets)?),
        };
        // Not earlier: the new thread inherits the privileges of the thread that starts it.
        let symbols = SymbolOptions { caches: table_cache::folder(), ..SymbolOptions::default() };
        let symbolizer = Symbolizer::spawn(symbols, reader)
            .map_err(|error| SamplingError::failed("cannot start the symbolizer", error))?;
        let whereabouts = Whereabouts {
            symbolizer,
            cgroups,
            processes: Processes::new(HistoryLimits { bytes: NamesBudget::of_this_machine().processes }),
        };
        let nameless = nameless(plan);
        let with_own = own::note(plan, &machine);
        let without_chains = cell_slot::note(plan);
        let session = Self {
            machine,
            events,
            sideband,
            cpus,
            signals,
            alarm,
            held,
            starts_at_exec: matches!(plan.target, Target::Command(_)),
            ends_with_tasks: matches!(plan.target, Target::Processes(_) | Target::Threads(_)),
            child: None,
            time_limit: None,
            deadline: Deadline::default(),
            kill_switch: plan.kill_switch.clone(),
            stopped: None,
            ending: None,
            how_sampled,
            watch,
            nameless,
            helpers,
            with_own,
            without_chains,
            fewer_cells: plan.fewer_cells.clone(),
            idle_before: None,
            idle_of: if plan.target == Target::All { plan.cpus.clone() } else { Vec::new() },
            idle_ns: None,
            came_online: None,
            news: Vec::new(),
        };
        Ok((session, whereabouts))
    }

    /// Returns one sentence for each step down in precision, without duplicates.
    pub fn findings(&self) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        for finding in self.events.iter().flat_map(|event| &event.findings) {
            if !said.contains(finding) {
                said.push(finding.clone());
            }
        }
        said
    }

    /// Returns the notes on how samples are taken, one sentence each.
    pub fn how_sampled(&self) -> &[String] {
        &self.how_sampled
    }

    /// Returns the size in bytes of all rings that the kernel writes to.
    pub fn ring_memory(&self) -> usize {
        self.events.iter().map(|event| event.sampler.ring_memory()).sum::<usize>() + self.sideband.memory()
    }

    /// Returns the process id of the command, as long as it waits for its release.
    pub fn waiting_command(&self) -> Option<u32> {
        self.held.as_ref().map(|held| held.pid)
    }

    /// Returns whose code is unwound. To be called before the command is released.
    pub fn unwind_target(&self, plan: &Plan) -> UnwindTarget {
        match (&plan.target, self.waiting_command()) {
            (_, Some(id)) => UnwindTarget::Command(id),
            (Target::Processes(ids) | Target::Threads(ids), _) => UnwindTarget::These(ids.clone()),
            (Target::All | Target::Command(_), None) => UnwindTarget::All,
        }
    }

    /// Returns whether the sideband tells of new cgroups that the filter must know.
    pub fn finds_cgroups(&self) -> bool {
        self.watch.is_some()
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
        if self.starts_at_exec {
            return Ok(());
        }
        self.idle_before = self.idle();
        self.events.iter_mut().try_for_each(|event| event.sampler.enable())
    }

    /// Returns how long the CPUs that this run samples have been idle, if it samples CPUs.
    fn idle(&self) -> Option<u64> {
        if self.idle_of.is_empty() { None } else { idle::since_boot(&Root::default(), &self.idle_of) }
    }

    /// Lets the command exec, and starts the clock for `duration`.
    pub fn release(&mut self, duration: Option<Duration>) -> Result<(), SamplingError> {
        self.child = self.held.take().map(Held::release).transpose()?;
        self.time_limit = duration.map(|duration| after(Instant::now(), duration));
        Ok(())
    }

    /// Waits until `time`. Returns why the run ends, if it does before: the time limit is reached,
    /// a signal asks for it, or the command has ended.
    pub async fn wait(&mut self, time: Instant) -> Result<Option<RunEnd>, SamplingError> {
        let Self { signals, alarm, child, time_limit, sideband, .. } = self;
        let command_ends = async {
            match child {
                Some(child) => child.ends().await,
                None => std::future::pending().await,
            }
        };
        let status = tokio::select! {
            biased;
            () = signals.any() => return Ok(Some(RunEnd::Signal)),
            status = command_ends => Some(
                status.map_err(|error| SamplingError::failed("cannot wait for the command", error))?,
            ),
            error = sideband.read_before_full() => return Err(error),
            rung = alarm.at(time_limit.map_or(time, |limit| limit.min(time))) => {
                rung.map_err(|error| SamplingError::failed("cannot wait for an alarm", error))?;
                None
            }
        };
        let is_over = time_limit.is_some_and(|limit| limit <= Instant::now());
        Ok(status.map(RunEnd::Command).or(is_over.then_some(RunEnd::Time)))
    }

    /// Returns the messages since the last call that a reader must see at once, one sentence each.
    /// The ledgers of the events contain the same facts.
    pub fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Samples CPUs that came online, restarts throttled events, stops events that take far more
    /// samples than requested, and checks whether the sampled tasks have ended or a kill switch
    /// file exists. Call it every few ticks of the kernel.
    pub fn look_after(&mut self) -> Result<Option<RunEnd>, SamplingError> {
        let news = self.cpus.look(&mut self.events, &mut self.sideband);
        // Only `serve` takes them, and CPUs may come and go for days.
        self.news.extend(news.into_iter().take(NEWS.saturating_sub(self.news.len())));
        for event in &mut self.events {
            if let Some(runaway) = event.look_after()? {
                self.news.push(format!("{}: {runaway}", event.planned.request.name));
            }
        }
        if let Some(helpers) = &mut self.helpers {
            helpers.announce(&self.events);
        }
        self.stopped = self.kill_switch.thrown();
        if self.stopped.is_some() {
            return Ok(Some(RunEnd::Stopped));
        }
        let first = self.events.first_mut().filter(|_| self.ends_with_tasks);
        Ok(first.is_some_and(|event| event.sampler.tasks_have_ended()).then_some(RunEnd::Tasks))
    }

    /// Returns the time by which the run must have ended. It is set when the run ends.
    pub fn deadline(&self) -> Deadline {
        self.deadline.clone()
    }

    /// Returns whether a signal or a kill switch asks the run to end, for code that cannot wait.
    pub fn must_end(&self) -> bool {
        self.signals.came() || self.kill_switch.thrown().is_some()
    }

    /// Returns whether a run that has stopped sampling no longer waits for names. If it ended by
    /// itself, it waits until a signal or a kill switch asks it to end.
    pub fn gives_up(&self) -> bool {
        if self.must_end() {
            self.deadline.begin();
        }
        self.deadline.is_over()
    }

    /// Stops sampling. Returns the exit status of the command if it ended by itself; otherwise the
    /// command continues until [`Self::end_command`].
    pub fn stop(&mut self, end: RunEnd) -> Result<Option<ExitStatus>, SamplingError> {
        if matches!(end, RunEnd::Time | RunEnd::Signal | RunEnd::Stopped) {
            self.deadline.begin();
        }
        self.events.iter_mut().try_for_each(|event| event.sampler.disable())?;
        self.idle_ns = self.idle().zip(self.idle_before).map(|(now, before)| now.saturating_sub(before));
        match end {
            RunEnd::Command(status) => {
                self.child = None;
                return Ok(Some(status));
            }
            // The kill switch stops only precise; the command continues without it.
            RunEnd::Stopped => self.child = None,
            RunEnd::Time | RunEnd::Signal | RunEnd::Enough | RunEnd::Tasks => {}
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
        // With chosen CPUs, nobody expects others to be sampled.
        if plan.cpus == self.machine.online {
            let known: Vec<u32> = plan.cpus.iter().chain(&plan.later).copied().collect();
            self.came_online = match Root::default().cpus(CpuState::Online) {
                Ok(now) => came_online(&known, &now),
                Err(why) => Some(format!("{why}: it is not known whether CPUs were added during the run")),
            };
        }
        let changes = changes.into_iter().chain(std::iter::repeat(Vec::new()));
        self.events
            .iter_mut()
            .zip(changes)
            .map(|(event, changes)| event.finish(plan, &self.machine, &after, changes, self.idle_ns))
            .collect()
    }

    /// Returns each event with its ledger up to now, for a run that goes on. `changes` holds those
    /// changes of each event's rate that still matter.
    pub fn so_far(
        &mut self,
        plan: &Plan,
        changes: &[Vec<RateChange>],
    ) -> Result<Vec<EventInfo>, SamplingError> {
        let now = Sysctls::read(&Root::default(), &mut Vec::new());
        let idle_ns = self.idle().zip(self.idle_before).map(|(now, before)| now.saturating_sub(before));
        let Self { events, machine, .. } = self;
        let with = |(event, changes): (&mut SampledEvent, &Vec<RateChange>)| {
            event.finish(plan, machine, &now, changes.clone(), idle_ns)
        };
        events.iter_mut().zip(changes).map(with).collect()
    }

    /// Returns why the kill switch ended the run, in words; `None` if it did not.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Returns the notes that are known from the start and concern no single event, one sentence
    /// each.
    pub fn early_notes(&self) -> Vec<String> {
        self.machine
            .problems
            .iter()
            .chain(&self.how_sampled)
            .chain(&self.nameless)
            .chain(&self.with_own)
            .chain(&self.without_chains)
            .chain(&self.fewer_cells)
            .cloned()
            .collect()
    }

    /// Returns the number of sideband records that the kernel has lost so far.
    pub fn sideband_lost(&self) -> u64 {
        self.sideband.lost()
    }

    /// Returns the notes that concern no single event, one sentence each. `busiest` is the process
    /// name that most sideband records are about, with its share of them.
    pub fn notes(&mut self, busiest: Option<(String, f64)>) -> Vec<String> {
        let mut notes = self.early_notes();
        notes.extend(self.stopped.iter().map(|why| format!("stopped early: {why}")));
        notes.extend(self.ending.clone());
        notes.extend(self.came_online.clone());
        notes.extend(self.cpus.take_notes());
        notes.extend(self.watch.iter_mut().flat_map(Watch::finish));
        let lost = self.sideband.lost();
        if lost > 0 {
            notes.push(format!(
                "the kernel lost {} of process starts and mappings: some samples may lack names",
                counted(lost, "record")
            ));
            notes.extend(busiest.map(|(name, share)| {
                format!(
                    "{:.0}% of the records that were not lost are about processes named {name}",
                    100.0 * share
                )
            }));
        }
        notes
    }
}

/// Returns a note on the CPUs that are online `now` and that the machine did not have `then`.
fn came_online(then: &[u32], now: &[u32]) -> Option<String> {
    let new: Vec<String> = now.iter().filter(|cpu| !then.contains(cpu)).map(u32::to_string).collect();
    match &new[..] {
        [] => None,
        [cpu] => Some(format!("CPU {cpu} was added during the run and was not sampled")),
        _ => Some(format!("CPUs {} were added during the run and were not sampled", new.join(", "))),
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
        "CAP_SYS_PTRACE is missing, so files that other users' processes mapped before the run have no names"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::came_online;

    #[test]
    fn cpus_that_came_online_are_named() {
        assert_eq!(came_online(&[0, 1, 2], &[0, 2]), None);
        let one = came_online(&[0, 1], &[0, 1, 7]).unwrap();
        assert_eq!(one, "CPU 7 was added during the run and was not sampled");
        assert!(came_online(&[0], &[0, 2, 3]).unwrap().starts_with("CPUs 2, 3 were added"));
    }
}
