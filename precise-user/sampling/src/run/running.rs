//! The loop of a live run that aggregates samples: enables the events, drains the cells at the end
//! of each epoch, follows the processes, and stops. A sink takes the rows.

use std::{
    ops::Range,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::alarm::{after, following};
use super::allocator;
use super::allowance::Allowance;
use super::assemble::{Assembler, AssemblerOptions};
use super::filling::{Filling, fills_in};
use super::naming::{Drained, Naming, NamingResult, RowSink};
use crate::error::SamplingError;
use crate::kernel::clock::monotonic_ns;
use crate::kernel::event::Trigger;
use crate::kernel::sampler::Sampler;
use crate::kernel::sideband::Mappings;
use crate::machine::Root;
use crate::run::budget::NamesBudget;
use crate::run::cost::Cost;
use crate::run::naming_thread::NamedFirst;
use crate::run::opening::SampledEvent;
use crate::run::plan::{CallGraph, Plan, PlannedEvent};
use crate::run::session::{RunEnd, Session, Whereabouts};
use crate::symbols::cgroup::Hierarchy;
use crate::symbols::container::Owners;
use crate::unwind::{Fallback, UnwindReport, Unwinder};
use precise_model::{Dimension, Epoch, EventInfo, Machine};

/// How often the sideband is read and the run looked after within an epoch: what a process maps
/// must be opened while it is there, and a new cgroup of the filter be found soon.
const OFTEN: Duration = Duration::from_millis(50);
/// The same while no process starts, if timers take the samples, which do not come in bursts, and
/// the filter looks for no cgroups. A timer that is throttled in each of 250 ticks a second still
/// does not fill its ring in that time.
const SELDOM: Duration = Duration::from_millis(100);

/// The least time that the end of an epoch may be late before samples are dropped, for short
/// epochs. A machine at its limit delays user space, and its samples are the ones that matter.
const LEAST_LEASE: Duration = Duration::from_secs(1);

/// A run with everything open, before sampling.
pub(crate) struct Opened {
    session: Session,
    whereabouts: Whereabouts,
}

/// The state of a run that is sampling.
pub(crate) struct Running<S> {
    pub session: Session,
    pub cost: Cost,
    /// Number of epochs that have ended.
    pub epochs: usize,
    /// When sampling began, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    naming: Naming<S>,
    /// Publishes unwind tables; `None` if the run does not unwind by tables.
    unwinder: Option<Unwinder>,
    begun: Instant,
    start_clock: u64,
    epoch_begin: u64,
    /// The records until this time had been published as unwind tables when the epoch began.
    published: u64,
    /// Of each event: how fast its table fills, and what was read of it since the epoch began.
    early: Vec<(Filling, Drained)>,
}

impl Opened {
    /// Opens the events of the plan. Call it before anything else is created for the run, so that a
    /// refusal leaves nothing behind.
    pub fn open(plan: &Plan) -> Result<Self, SamplingError> {
        allocator::keep_little();
        let asks = |dimension| plan.dimensions.contains(&dimension);
        let mappings = match (asks(Dimension::Address), asks(Dimension::Ip)) {
            (true, _) => Mappings::All,
            (false, true) => Mappings::Code,
            (false, false) => Mappings::None,
        };
        let (session, whereabouts) = Session::open(plan, mappings)?;
        Ok(Self { session, whereabouts })
    }

    /// Returns the memory of the tables in the kernel, in bytes; constant during the run.
    pub fn table_bytes(&self) -> usize {
        let programs = || self.session.events.iter().map(|event| event.sampler.program());
        let tables = programs().map(|program| program.table.memory()).sum::<usize>();
        // All programs share them.
        let unwind = programs().find_map(|program| program.unwind.as_ref());
        tables + unwind.map_or(0, |memory| memory.sizes().bytes())
    }

    /// Returns the memory of the rings, in bytes; constant during the run.
    pub fn ring_bytes(&self) -> usize {
        self.session.ring_memory()
    }

    /// Returns one sentence for each step down in precision.
    pub fn findings(&self) -> Vec<String> {
        self.session.findings()
    }

    /// Returns the other notes that are already known, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.session.early_notes()
    }

    /// Returns what is known of the machine and the events before sampling.
    pub fn drafts(&self, plan: &Plan) -> (Machine, Vec<EventInfo>) {
        let machine = &self.session.machine;
        let events = self.session.events.iter().map(|event| event.draft(plan, machine));
        (machine.machine.clone(), events.collect())
    }

    /// Starts sampling. A command waits until it is released.
    pub fn start<S: RowSink>(self, plan: &Plan, sink: S) -> Result<Running<S>, SamplingError> {
        let Self { mut session, whereabouts: Whereabouts { symbolizer, cgroups, processes } } = self;
        let files = symbolizer.code_files();
        let options = AssemblerOptions {
            dimensions: plan.dimensions.clone(),
            address_granule: plan.address_granule,
            hierarchy: Hierarchy::V2,
            host: session.machine.machine.host.clone(),
            slots: plan.slots(),
        };
        // Rows need only the name of their event; the rest is known at the end.
        let named =
            |event: &PlannedEvent| EventInfo { name: event.request.name.clone(), ..EventInfo::default() };
        let events = plan.events.iter().map(named).collect();
        let mut assembler = Assembler::new(options, symbolizer, cgroups, Owners::new(Root::default()));
        assembler.end_by(session.deadline());
        let mut early = Vec::new();
        let around = NamedFirst::of(plan, plan.dimensions.contains(&Dimension::Thread));
        let followed = session.unwind_target(plan);
        let allowance = plan.budget.map(|budget| Allowance::new(budget, plan.cpus.len()));
        let mut naming = Naming::start(assembler, processes, sink, events, allowance, around, || {
            early.append(&mut session.sideband());
            !session.must_end()
        })?;
        let memory = session.events.iter().find_map(|event| event.sampler.program().unwind.clone());
        let fallback = Fallback { frame_pointers: plan.call_graph == CallGraph::Auto };
        let mut unwinder = None;
        if let Some(memory) = memory {
            let started = Unwinder::start(memory, files, fallback, followed, || {
                early.append(&mut session.sideband());
                !session.must_end()
            })?;
            unwinder.insert(started).follow(&early, 0);
        }
        naming.sideband(early);
        let start_unix_ns = unix_ns();
        naming.begun(start_unix_ns);
        let lease = plan.epoch.saturating_add(plan.epoch.max(LEAST_LEASE));
        session.events.iter_mut().for_each(|event| event.sampler.set_lease(lease));
        let published = unwinder.as_ref().map_or(u64::MAX, Unwinder::published);
        session.enable()?;
        let now = monotonic_ns();
        let cost = Cost::new(plan, &session.events);
        // With call chains, records of new programs must be read soon as well.
        let filling = |event: &SampledEvent| {
            let cells = event.sampler.program().table.least_samples();
            let fills_in = fills_in(event.trigger, event.rate, event.inherited, cells);
            Filling::new(fills_in.filter(|_| unwinder.is_none()))
        };
        let early = session.events.iter().map(|event| (filling(event), Drained::default())).collect();
        Ok(Running {
            session,
            cost,
            epochs: 0,
            start_unix_ns,
            naming,
            unwinder,
            begun: Instant::now(),
            start_clock: now,
            epoch_begin: now,
            published,
            early,
        })
    }
}

/// Ends the epoch of these events, and returns what is in the table of each.
fn drained(mut events: Vec<&mut SampledEvent>) -> Result<Vec<Drained>, SamplingError> {
    Sampler::end_epoch(events.iter_mut().map(|event| &mut event.sampler))?;
    let taken = events.into_iter().map(|event| {
        let mut cells = Vec::new();
        let chains = event.sampler.take(|cpu, cell| cells.push((cpu, *cell)));
        Drained { cells, chains }
    });
    Ok(taken.collect())
}

pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl<S: RowSink> Running<S> {
    /// Returns the time since sampling began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the number of samples of each event that were dropped because naming was behind.
    pub fn dropped(&self) -> &[u64] {
        self.naming.dropped()
    }

    /// Returns the number of sideband records that naming did not get: lost by the kernel, or
    /// dropped because naming was behind.
    pub fn sideband_lost(&self) -> u64 {
        self.session.sideband_lost().saturating_add(self.naming.sideband_dropped())
    }

    /// Runs the loop until something ends the run. Calls `each` after each epoch.
    pub async fn until_end(
        &mut self,
        epoch: Duration,
        mut each: impl FnMut(&mut Self) -> Result<(), SamplingError>,
    ) -> Result<RunEnd, SamplingError> {
        let begin = Instant::now();
        let (mut epoch_ends, mut next_care, mut next_look) = (after(begin, epoch), begin + OFTEN, begin);
        let timers = self.session.events.iter().all(|event| event.trigger == Trigger::Timer);
        let may_be_seldom = timers && !self.session.finds_cgroups();
        loop {
            // An epoch that ends together with the run is ended only once.
            if let Some(end) = self.session.wait(epoch_ends.min(next_care).min(next_look)).await? {
                return Ok(end);
            }
            if epoch_ends <= Instant::now() {
                self.end_epoch()?;
                each(self)?;
                epoch_ends = following(epoch_ends, epoch);
            }
            if next_look <= Instant::now() {
                if self.unwinder.is_some() {
                    // The sooner a new program is known, the more of its chains are whole.
                    self.take_sideband();
                }
                // No sample is lost, and the time axis stays true.
                if self.read_early()? > NamesBudget::of_this_machine().early {
                    self.end_epoch()?;
                    each(self)?;
                }
                let pauses = self.early.iter().map(|(filling, _)| filling.pause(self.elapsed()));
                next_look = after(Instant::now(), pauses.min().unwrap_or(epoch));
            }
            if next_care <= Instant::now() {
                let quiet = self.take_sideband() == 0;
                if self.naming.is_finished() {
                    return Ok(RunEnd::Enough);
                }
                self.cost.look(&mut self.session.events);
                if let Some(end) = self.session.look_after()? {
                    return Ok(end);
                }
                next_care = following(next_care, if quiet && may_be_seldom { SELDOM } else { OFTEN });
            }
        }
    }

    /// Hands the records of the sideband to those that follow processes. Returns their number.
    fn take_sideband(&mut self) -> usize {
        let until = monotonic_ns();
        let entries = self.session.sideband();
        let number = entries.len();
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.follow(&entries, until);
        }
        self.naming.sideband(entries);
        number
    }

    /// Ends the publishing of unwind tables. Returns what it did; `None` if there was none.
    pub fn end_unwinding(&mut self) -> Option<UnwindReport> {
        self.unwinder.take().map(Unwinder::finish)
    }

    /// Reads the tables that are about to be full. Their cells belong to the epoch that has not
    /// ended yet. Returns the memory in bytes that the cells of these tables take.
    fn read_early(&mut self) -> Result<usize, SamplingError> {
        let (mut events, mut states) = (Vec::new(), Vec::new());
        for (event, state) in self.session.events.iter_mut().zip(&mut self.early) {
            if state.0.must_be_read(event.sampler.fill()) {
                events.push(event);
                states.push(state);
            }
        }
        let mut bytes = 0;
        for (taken, (filling, early)) in drained(events)?.into_iter().zip(states) {
            early.add(taken);
            filling.was_read();
            if early.bytes() > NamesBudget::of_this_machine().early {
                early.join();
            }
            bytes += early.bytes();
        }
        Ok(bytes)
    }

    /// Reads the table of each event, then the sideband: the records that are needed to name a
    /// sample were written before the sample.
    pub fn end_epoch(&mut self) -> Result<(), SamplingError> {
        // The epoch ends when the program is told to use the other half of the table; the grace
        // period after that belongs to the next epoch.
        let now = monotonic_ns();
        let published = self.unwinder.as_ref().map_or(now, Unwinder::published);
        let mut taken = drained(self.session.events.iter_mut().collect())?;
        for (taken, (filling, early)) in taken.iter_mut().zip(&mut self.early) {
            let later = std::mem::replace(taken, std::mem::take(early));
            taken.add(later);
            filling.was_read();
        }
        // The last samples of the epoch came while its tables were read.
        let window: Range<u64> = self.epoch_begin..monotonic_ns();
        self.take_sideband();
        let epoch = Epoch {
            start_ns: self.epoch_begin.saturating_sub(self.start_clock),
            end_ns: now.saturating_sub(self.start_clock),
        };
        self.epochs += 1;
        let unwound_since = self.published.min(self.epoch_begin);
        self.naming.epoch(epoch, window, unwound_since, taken);
        self.epoch_begin = now;
        self.published = published;
        self.cost.end_epoch(&mut self.session.events);
        Ok(())
    }

    /// Waits until all samples are named, or until the run must have ended. Returns the session and
    /// everything that was named.
    pub fn name_the_rest(self) -> Result<(Session, NamingResult<S>), SamplingError> {
        let Self { session, naming, .. } = self;
        let named = naming.finish(|| session.gives_up())?;
        Ok((session, named))
    }
}
