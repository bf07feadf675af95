//! A live run: events on, cells drained per epoch, processes followed, until it ends.

use std::{
    ops::Range,
    path::Path,
    process::ExitStatus,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    allocator,
    assemble::{Assembler, AssemblerOptions},
    keeping::{Keeping, Kept},
    model::{Dimension, Epoch, EventInfo, Meta, SCHEMA_VERSION},
    naming::{Drained, Naming},
    write::WriteError,
};
use crate::{
    error::{Class, Failure},
    kernel::clock::monotonic_ns,
    live::{
        cost::Cost,
        plan::{Plan, PlannedEvent},
        session::{End, Session, Whereabouts},
    },
    machine::Root,
    symbols::{cgroup::Hierarchy, container::Owners},
};

/// How often sideband and rings are read between epochs, so that a burst of starting processes, or of throttling, finds room.
const SIDEBAND_INTERVAL: Duration = Duration::from_millis(50);

/// How late the end of an epoch may be before samples are dropped, where epochs are short: a machine at its limit lets user space
/// wait, and its samples are the ones that matter.
const LEAST_LEASE: Duration = Duration::from_secs(1);

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Sampling has begun.
    Started {
        /// Kernel memory of the tables, bytes; constant during the run.
        table_bytes: usize,
        /// Memory of the rings, bytes; as well.
        ring_bytes: usize,
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
    /// What is known of the run.
    pub meta: Meta,
    /// What was seen.
    pub kept: Kept,
    /// How the command ended, where one was run and ended by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run, where it did.
    pub stopped: Option<String>,
}

/// Runs a plan to its end. The capture goes to `output`, epoch by epoch, and is there when this returns; without one, it is only
/// handed out.
///
/// # Errors
///
/// When nothing can be sampled. What is lost after the start is counted, and ends no run.
pub async fn run(
    plan: &Plan,
    output: Option<&Path>,
    mut progress: impl FnMut(Progress),
) -> Result<Finished, Failure> {
    allocator::keep_little();
    let (mut session, whereabouts) = Session::open(plan, plan.dimensions.contains(&Dimension::Address))?;
    let table_bytes = session.events.iter().map(|event| event.sampler.program().table.memory()).sum();
    let ring_bytes = session.ring_memory();
    let findings = session.findings();
    let Whereabouts { symbolizer, cgroups, processes } = whereabouts;
    let options = AssemblerOptions {
        dimensions: plan.dimensions.clone(),
        address_granule: plan.address_granule,
        hierarchy: Hierarchy::V2,
    };
    let unwritten = |error: WriteError| Failure::new(Class::Failed, error.to_string());
    let (keeping, writer) = Keeping::start(output).map_err(unwritten)?;
    // What rows say of their event; the rest is known at the end.
    let named = |event: &PlannedEvent| EventInfo { name: event.request.name.clone(), ..EventInfo::default() };
    let events = plan.events.iter().map(named).collect();
    let assembler = Assembler::new(options, symbolizer, cgroups, Owners::new(Root::default()));
    let mut early = Vec::new();
    let mut naming = Naming::start(assembler, processes, writer, events, monotonic_ns(), || {
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
    let mut run = Run { session, naming, cost, epochs: 0, start_clock: now, epoch_begin: now };
    progress(Progress::Started { table_bytes, ring_bytes, findings });
    run.session.release(plan.duration)?;
    let end = run.until_end(plan.epoch, &mut progress).await?;
    let command = run.session.stop(end)?;
    run.end_epoch()?;
    let (overhead, changes, of_cost) = run.cost.finish(&run.session.events);

    let mut meta = Meta {
        schema: SCHEMA_VERSION,
        producer: format!("precise {}", env!("CARGO_PKG_VERSION")),
        command: plan.command_line.clone(),
        machine: run.session.machine.machine.clone(),
        start_unix_ns,
        dimensions: plan.dimensions.clone(),
        address_granule: plan.address_granule,
        promoted_lines: plan.promoted_lines.map(u64::from),
        filter: plan.filter_text.clone(),
        target: plan.target.words(),
        events: run.session.finish(plan, changes)?,
        overhead: Some(overhead),
        ..Meta::default()
    };
    let named = run.naming.finish()?;
    let writer = named.writer.map_err(unwritten)?;
    for (event, dropped) in meta.events.iter_mut().zip(named.dropped) {
        if dropped > 0 {
            event.ledger.discarded.insert("naming was behind".to_owned(), dropped);
        }
    }
    meta.owners = named.owners;
    meta.epochs = named.epochs;
    meta.notes = run.session.notes().into_iter().chain(of_cost).chain(named.notes).collect();
    if plan.promoted_lines.is_some() {
        meta.notes.push(
            "data addresses were kept only of cache lines that a load found modified in another core's cache (c2c)"
                .to_owned(),
        );
    }
    let stopped = run.session.stopped().map(str::to_owned);
    let kept = keeping.finish(writer, &meta)?;
    Ok(Finished { meta, kept, command, stopped })
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The state of a run that is going on.
struct Run {
    session: Session,
    naming: Naming,
    cost: Cost,
    /// How many have ended.
    epochs: usize,
    start_clock: u64,
    epoch_begin: u64,
}

impl Run {
    async fn until_end(
        &mut self,
        epoch: Duration,
        progress: &mut impl FnMut(Progress),
    ) -> Result<End, Failure> {
        let begin = Instant::now();
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
                    progress(Progress::Epoch {
                        number: self.epochs - 1,
                        seen: self.session.events.iter().map(|event| event.sampler.seen()).sum(),
                        elapsed: begin.elapsed(),
                    });
                }
                _ = housekeeping.tick() => {
                    self.naming.sideband(self.session.sideband());
                    if self.naming.is_finished() {
                        return Ok(End::Enough);
                    }
                    self.cost.look(&self.session.events);
                    if let Some(end) = self.session.look_after()? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Reads the table of each event, then the sideband: whatever a sample needs to be named was recorded before it.
    fn end_epoch(&mut self) -> Result<(), Failure> {
        // The epoch ends when the other half is announced; the grace period after it belongs to the next one.
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
        self.cost.end_epoch(&self.session.events);
        Ok(())
    }
}
