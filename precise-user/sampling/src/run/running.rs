//! The loop of a live run that adds samples up: events on, cells drained per epoch, processes
//! followed, until it ends. What becomes of the rows is their sink's.

use std::{
    ops::Range,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::allocator;
use super::assemble::{Assembler, AssemblerOptions};
use super::naming::{Drained, Named, Naming, RowSink};
use crate::error::SamplingError;
use crate::kernel::clock::monotonic_ns;
use crate::kernel::sideband::Mappings;
use crate::machine::Root;
use crate::run::cost::Cost;
use crate::run::plan::{Plan, PlannedEvent};
use crate::run::session::{End, Session, Whereabouts};
use crate::symbols::cgroup::Hierarchy;
use crate::symbols::container::Owners;
use precise_model::{Dimension, Epoch, EventInfo};

/// How often sideband and rings are read between epochs, so that a burst of starting processes, or
/// of throttling, finds room.
const SIDEBAND_INTERVAL: Duration = Duration::from_millis(50);

/// How late the end of an epoch may be before samples are dropped, where epochs are short: a
/// machine at its limit lets user space wait, and its samples are the ones that matter.
const LEAST_LEASE: Duration = Duration::from_secs(1);

/// Everything is open, and nothing is sampled yet.
pub(crate) struct Opened {
    session: Session,
    whereabouts: Whereabouts,
}

/// The state of a run that is going on.
pub(crate) struct Running<S> {
    pub session: Session,
    pub cost: Cost,
    /// How many epochs have ended.
    pub epochs: usize,
    /// When sampling began, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    naming: Naming<S>,
    begun: Instant,
    start_clock: u64,
    epoch_begin: u64,
}

impl Opened {
    /// Opens the plan's events. What is made for a run is made after this, so that a refusal leaves
    /// nothing behind.
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

    /// Kernel memory of the tables, bytes; constant during the run.
    pub fn table_bytes(&self) -> usize {
        self.session.events.iter().map(|event| event.sampler.program().table.memory()).sum()
    }

    /// Memory of the rings, bytes; as well.
    pub fn ring_bytes(&self) -> usize {
        self.session.ring_memory()
    }

    /// What was granted, one sentence per step down.
    pub fn findings(&self) -> Vec<String> {
        self.session.findings()
    }

    /// What else is known already, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.session.early_notes()
    }

    /// Starts sampling. A command waits until it is released.
    pub fn start<S: RowSink>(self, plan: &Plan, sink: S) -> Result<Running<S>, SamplingError> {
        let Self { mut session, whereabouts: Whereabouts { symbolizer, cgroups, processes } } = self;
        let options = AssemblerOptions {
            dimensions: plan.dimensions.clone(),
            address_granule: plan.address_granule,
            hierarchy: Hierarchy::V2,
        };
        // What rows say of their event; the rest is known at the end.
        let named =
            |event: &PlannedEvent| EventInfo { name: event.request.name.clone(), ..EventInfo::default() };
        let events = plan.events.iter().map(named).collect();
        let assembler = Assembler::new(options, symbolizer, cgroups, Owners::new(Root::default()));
        let mut early = Vec::new();
        let mut naming = Naming::start(assembler, processes, sink, events, monotonic_ns(), || {
            early.append(&mut session.sideband());
        })?;
        naming.sideband(early);
        let start_unix_ns = unix_ns();
        naming.begun(start_unix_ns);
        let lease = plan.epoch.saturating_add(plan.epoch.max(LEAST_LEASE));
        session.events.iter_mut().for_each(|event| event.sampler.set_lease(lease));
        session.enable()?;
        let now = monotonic_ns();
        let cost = Cost::new(plan, &session.events);
        Ok(Running {
            session,
            cost,
            epochs: 0,
            start_unix_ns,
            naming,
            begun: Instant::now(),
            start_clock: now,
            epoch_begin: now,
        })
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl<S: RowSink> Running<S> {
    /// Since sampling began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Samples of each event that naming had no room for.
    pub fn dropped(&self) -> &[u64] {
        self.naming.dropped()
    }

    /// Records of what processes did that are not known to naming: lost by the kernel, or without
    /// room here.
    pub fn sideband_lost(&self) -> u64 {
        self.session.sideband_lost().saturating_add(self.naming.sideband_dropped())
    }

    /// Goes on until something ends the run; `each` is called after each epoch.
    pub async fn until_end(
        &mut self,
        epoch: Duration,
        mut each: impl FnMut(&mut Self) -> Result<(), SamplingError>,
    ) -> Result<End, SamplingError> {
        let mut epochs = interval(epoch);
        epochs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval comes at once.
        epochs.tick().await;
        let mut housekeeping = interval(SIDEBAND_INTERVAL);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // In this order: an epoch that ends with the run is ended once.
                biased;
                end = self.session.over() => return Ok(end),
                _ = epochs.tick() => {
                    self.end_epoch()?;
                    each(self)?;
                }
                _ = housekeeping.tick() => {
                    self.naming.sideband(self.session.sideband());
                    if self.naming.is_finished() {
                        return Ok(End::Enough);
                    }
                    self.cost.look(&mut self.session.events);
                    if let Some(end) = self.session.look_after()? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Reads the table of each event, then the sideband: whatever a sample needs to be named was
    /// recorded before it.
    pub fn end_epoch(&mut self) -> Result<(), SamplingError> {
        // The epoch ends when the other half is announced; the grace period after it belongs to the
        // next one.
        let now = monotonic_ns();
        let mut taken = Vec::new();
        for event in &mut self.session.events {
            let mut cells = Vec::new();
            let chains = event.sampler.drain(|cpu, cell| cells.push((cpu, *cell)))?;
            taken.push(Drained { cells, chains });
        }
        self.naming.sideband(self.session.sideband());
        let window: Range<u64> = self.epoch_begin..now;
        let epoch = Epoch {
            start_ns: self.epoch_begin.saturating_sub(self.start_clock),
            end_ns: now.saturating_sub(self.start_clock),
        };
        self.epochs += 1;
        self.naming.epoch(epoch, window, taken);
        self.epoch_begin = now;
        self.cost.end_epoch(&mut self.session.events);
        Ok(())
    }

    /// Waits until all is named. What is left of the run is what it was, and what it cost.
    pub fn name_the_rest(self) -> Result<(Session, Named<S>), SamplingError> {
        let named = self.naming.finish()?;
        Ok((self.session, named))
    }
}
