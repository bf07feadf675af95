//! Samples one event: holds its program, the open event on each CPU or task, and its rings.

use std::time::Duration;

use bytes::Bytes;
use precise_common::{cell::Cell, ledger::Counter};
use rustc_hash::FxHashMap;

use super::blueprint::OpenedEvent;
use super::clock::monotonic_ns;
use super::event::{self, Event, OpenRequest, Rate, Reading, Scope, Trigger};
use super::map_memory::page_size;
use super::program::Program;
use super::ring::Ring;
use super::table;
use super::tracepoints::{self, AtTracepoints};
use crate::error::{SamplingError, SyscallError};
use crate::kernel::explain;
use precise_model::Ledger;
use precise_records::Chains;
use precise_records::record::sample::SampleLayout;
use precise_records::record::{IdentifiedRecord, Record, RecordLayout, records};

mod gaps;
mod hotplug;
mod opening;
mod tasks;

use gaps::{Gaps, unnoticed};

/// Pages of a ring of a run that does not stream. The ring receives only throttle and lost records,
/// which have a few dozen bytes each.
const RING_PAGES: usize = 1;
/// Maximum number of reads of a running event's counters until they agree.
const READS: usize = 16;
/// The pause before each read of the second half of them, if the counters do not agree yet.
const SLOW_SAMPLE: Duration = Duration::from_millis(1);

/// A sample as read from a ring. It is not decoded yet, so that the reader returns to the rings
/// quickly.
#[derive(Clone, Debug)]
pub struct Taken {
    /// `header.misc`.
    pub misc: u16,
    /// The bytes after the header; [`Sampler::sample_layout`] describes their fields.
    pub body: Bytes,
}

/// Counts of the samples that the program of a streaming run passed on to the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Delivery {
    /// The number of samples that the program passed on.
    pub streamed: u64,
    /// The number of samples that were read from the rings.
    pub read: u64,
    /// The number of records that were lost because a ring was full, as counted by the kernel. Some
    /// of them may not be samples.
    pub lost: u64,
}

/// An event that is open in one scope.
///
/// Its fields are dropped in this order: the ring before the event, the event before its leader.
#[derive(Debug)]
struct Member {
    /// The ring; `None` if the records of the event go to the ring of another member.
    ring: Option<Ring>,
    event: Event,
    /// The leader of the event's group, if it has one.
    leader: Option<Event>,
    /// `None` unless the last record about throttling was a throttle; then the number of calls of
    /// [`Sampler::look_after`] since that record.
    stopped: Option<u32>,
    /// When the event was started, in nanoseconds of `CLOCK_MONOTONIC`; `None` before that.
    since_ns: Option<u64>,
    /// Whether the kernel detached the event, because its CPU went offline. The event can still be
    /// read, but must not be started: it would seem to count.
    detached: bool,
}

impl Member {
    fn new(OpenedEvent { event, leader, ring, .. }: OpenedEvent) -> Self {
        Self { ring: Some(ring), event, leader, stopped: None, since_ns: None, detached: false }
    }

    fn enable(&mut self) -> Result<(), SyscallError> {
        if self.detached {
            return Ok(());
        }
        self.since_ns.get_or_insert_with(monotonic_ns);
        self.leader.iter().chain([&self.event]).try_for_each(Event::enable)
    }

    fn disable(&self) -> Result<(), SyscallError> {
        if self.detached {
            return Ok(());
        }
        [&self.event].into_iter().chain(&self.leader).try_for_each(Event::disable)
    }
}

/// An event that is being sampled.
///
/// Its members are dropped before the program.
#[derive(Debug)]
pub struct Sampler {
    members: Vec<Member>,
    /// The events on one CPU write to one ring. Maps each CPU to the index of the member that owns
    /// the CPU's ring.
    owners: FxHashMap<u32, usize>,
    /// Maps the kernel's id of each event that has a leader to the index of the member.
    ids: FxHashMap<u64, usize>,
    program: Program,
    /// Where the program runs, if not at the samples of the events.
    tracepoints: Option<AtTracepoints>,
    request: OpenRequest,
    leader: Option<OpenRequest>,
    /// The CPUs on which the event may be opened again, or later.
    cpus: Vec<u32>,
    /// The sum of what the events counted that were replaced after their CPU had been offline.
    past: Reading,
    gaps: Gaps,
    layout: RecordLayout,
    ring_pages: usize,
    /// Whether the program passes samples on to the rings.
    streams: bool,
    /// When sampling was started, in nanoseconds of `CLOCK_MONOTONIC`; `None` before that.
    started_ns: Option<u64>,
    /// When sampling was stopped; `None` if it was not, or was started again.
    ended_ns: Option<u64>,
    /// Whether sampling was stopped and no run of the program is left.
    is_at_rest: bool,
    /// The number of members, from the first on, whose tasks are known to have ended.
    ended_tasks: usize,
    samples: Vec<Taken>,
    read: u64,
    throttled: u64,
    /// The number of samples that the hardware or the driver dropped.
    dropped: u64,
    /// The number of records that were lost because a ring was full, according to the lost records.
    lost: u64,
    malformed: u64,
}

impl Sampler {
    /// Sets how long after the last [`Self::drain`] the program keeps samples: see
    /// [`super::table::CellTable::set_lease`].
    pub fn set_lease(&mut self, lease: Duration) {
        self.program.table.set_lease(lease);
    }

    /// Starts sampling in every scope.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not start an event, or does not attach the program.
    pub fn enable(&mut self) -> Result<(), SamplingError> {
        self.started_ns.get_or_insert_with(monotonic_ns);
        self.ended_ns = None;
        self.is_at_rest = false;
        self.members.iter_mut().try_for_each(Member::enable).map_err(|error| explain::control(&error))?;
        self.tracepoints.iter_mut().try_for_each(|points| points.attach(&self.program))
    }

    /// Changes the sample rate in every scope. The rate must be of the same kind as the event's
    /// own: see [`event::Trigger::in_force`].
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not accept the rate.
    pub fn set_rate(&self, rate: Rate) -> Result<(), SamplingError> {
        // A change of the rate may enable the events again. At a tracepoint there is no rate.
        if self.has_ended() || self.tracepoints.is_some() {
            return Ok(());
        }
        self.members
            .iter()
            .filter(|member| !member.detached)
            .try_for_each(|member| member.event.set_rate(rate))
            .map_err(|error| explain::control(&error))
    }

    /// Returns whether sampling was stopped and not started again.
    pub fn has_ended(&self) -> bool {
        self.ended_ns.is_some()
    }

    /// Stops sampling in every scope. Afterwards the ledger is exact.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not stop an event.
    pub fn disable(&mut self) -> Result<(), SamplingError> {
        self.ended_ns.get_or_insert_with(monotonic_ns);
        self.tracepoints.iter_mut().for_each(AtTracepoints::detach);
        self.members.iter().try_for_each(Member::disable).map_err(|error| explain::control(&error))?;
        // The program of a timer or of a hardware event runs in an interrupt, and the kernel
        // disables the event by another interrupt of the same CPU (`event_function_call()`), which
        // does not begin before the first has ended. The program of another event runs with
        // interrupts enabled, in the task that the kernel works for, unless that has ended. So does
        // one at a tracepoint, in any task.
        self.is_at_rest = self.tracepoints.is_none()
            && (self.request.encoding.trigger() != Trigger::Kernel || self.tasks_have_ended());
        Ok(())
    }

    /// Ends an epoch of all these events. Then [`Self::take`] returns the cells of each.
    ///
    /// # Errors
    ///
    /// Returns an error if waiting for the programs failed. No cell is lost then.
    pub fn end_epoch<'a>(samplers: impl IntoIterator<Item = &'a mut Self>) -> Result<(), SamplingError> {
        let tables = samplers.into_iter().map(|sampler| {
            sampler.drain_rings();
            (&mut sampler.program.table, sampler.is_at_rest)
        });
        table::flip(tables).map_err(|error| explain::control(&error))
    }

    /// Passes each cell of the epoch that has ended to `take`, as `(cpu, cell)`. Returns the call
    /// chains that the cells refer to.
    pub fn take(&mut self, take: impl FnMut(usize, &Cell)) -> Chains {
        self.program.table.take(take)
    }

    /// Ends an epoch of this event alone, and takes its cells.
    ///
    /// # Errors
    ///
    /// As [`Self::end_epoch`].
    pub fn drain(&mut self, take: impl FnMut(usize, &Cell)) -> Result<Chains, SamplingError> {
        Self::end_epoch([&mut *self])?;
        Ok(self.take(take))
    }

    /// Estimates how full the table is: see [`super::table::CellTable::fill`].
    pub fn fill(&self) -> f64 {
        self.program.table.fill()
    }

    /// Returns the samples of a streaming run that arrived since the last call. The samples of one
    /// CPU are in the order in which they were taken.
    pub fn take_samples(&mut self) -> Vec<Taken> {
        self.drain_rings();
        std::mem::take(&mut self.samples)
    }

    /// Reads the throttle and lost records, and restarts events that the kernel left throttled.
    /// Call it every few kernel ticks: a ring has room for 32 throttle records.
    ///
    /// The kernel should restart a throttled event at the next tick. Linux 6.12 (seen in the lab;
    /// 6.16 changed this code) restarts group leaders only: a load event behind its auxiliary event
    /// would never sample again, and no record would report it. Disabling and enabling the event
    /// restarts it.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not stop or start an event.
    pub fn look_after(&mut self) -> Result<(), SamplingError> {
        self.drain_rings();
        if self.ids.is_empty() || self.has_ended() {
            return Ok(());
        }
        for Member { event, stopped, .. } in self.members.iter_mut().filter(|member| !member.detached) {
            match stopped {
                // The tick that restarts the event may still be pending.
                Some(looks) if *looks < 2 => *looks += 1,
                Some(_) => {
                    event
                        .disable()
                        .and_then(|()| event.enable())
                        .map_err(|error| explain::control(&error))?;
                    *stopped = None;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn drain_rings(&mut self) {
        for at in 0..self.members.len() {
            let Some(ring) = self.members.get_mut(at).and_then(|member| member.ring.as_mut()) else {
                continue;
            };
            let taken = ring.take();
            self.read_records(taken);
        }
    }

    /// Reads the records that came out of a ring.
    fn read_records(&mut self, taken: Bytes) {
        for entry in records(taken, self.layout) {
            match entry {
                Ok(IdentifiedRecord { record: Record::Sample(body), misc, .. }) if self.streams => {
                    self.read += 1;
                    self.samples.push(Taken { misc, body });
                }
                // If the run does not stream, the program keeps samples out of the ring. A sample
                // in the ring bypassed the program, as the last record of a PEBS buffer can if the
                // end of another event drains the buffer.
                Ok(IdentifiedRecord { record: Record::Sample(_), .. }) => self.dropped += 1,
                Ok(IdentifiedRecord { record: Record::Throttle { id }, .. }) => {
                    self.throttled += 1;
                    self.note_throttling(id, Some(0));
                }
                Ok(IdentifiedRecord { record: Record::Unthrottle { id }, .. }) => {
                    self.note_throttling(id, None);
                }
                Ok(IdentifiedRecord { record: Record::Lost { lost, .. }, .. }) => self.lost += lost,
                Ok(IdentifiedRecord { record: Record::LostSamples { lost }, .. }) => self.dropped += lost,
                Ok(_) => {}
                Err(_) => self.malformed += 1,
            }
        }
    }

    /// Notes that the kernel stopped or restarted the event with this id. An event without a leader
    /// has no id here: the kernel restarts it.
    fn note_throttling(&mut self, id: u64, stopped: Option<u32>) {
        if let Some(member) = self.ids.get(&id).and_then(|at| self.members.get_mut(*at)) {
            member.stopped = stopped;
        }
    }

    /// Returns the layout of the bodies of [`Self::take_samples`].
    pub fn sample_layout(&self) -> SampleLayout {
        let regs_user = event::registers(&self.request);
        SampleLayout { sample_type: self.layout.sample_type, regs_user, ..SampleLayout::default() }
    }

    /// Returns the memory of the rings in bytes; constant during a run.
    pub fn ring_memory(&self) -> usize {
        self.owners.len() * (1 + self.ring_pages) * page_size()
    }

    /// Returns how many samples of a streaming run were passed on, read and lost. Exact once the
    /// events are disabled and the rings are empty.
    ///
    /// # Errors
    ///
    /// Returns an error if an event cannot be read.
    pub fn delivery(&self) -> Result<Delivery, SamplingError> {
        Ok(Delivery {
            streamed: self.program.table.counter(Counter::Streamed),
            read: self.read,
            lost: self.lost_in_rings()?,
        })
    }

    /// Returns the number of records that were lost because a ring was full. The events' own count
    /// (6.0 and later) is complete. The lost records are not: the kernel writes one only when a
    /// later record fits.
    fn lost_in_rings(&self) -> Result<u64, SamplingError> {
        let counted = self.members.iter().try_fold(self.past.lost, |sum, member| {
            member.event.read().map(|reading| sum + reading.lost).map_err(|error| explain::control(&error))
        })?;
        Ok(counted.max(self.lost))
    }

    /// Returns the ledger: what happened to the samples so far. `clauses` are the filter's clauses
    /// as text, in the order of their ids; `period` is the fixed period, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if an event cannot be read.
    pub fn ledger(&mut self, clauses: &[String], period: Option<u64>) -> Result<Ledger, SamplingError> {
        self.drain_rings();
        let table = &self.program.table;
        let read = || Ledger {
            counters: Counter::ALL.iter().map(|counter| (*counter, table.counter(*counter))).collect(),
            rejected: clauses.iter().cloned().zip(table.rejected(clauses.len())).collect(),
            ..Ledger::default()
        };
        // While the event is enabled, a sample may be in one counter and not yet in the other, as
        // its period in the sum of periods. Only what every read finds is a discrepancy. A sample
        // every few microseconds leaves no time for two equal reads. In the middle of a sample, a
        // task may be preempted, and a hypervisor may stop a CPU, for longer than many reads take.
        let mut counted = read();
        for number in 1..READS {
            if number >= READS / 2 && counted.unaccounted() != 0 {
                std::thread::sleep(SLOW_SAMPLE);
            }
            let again = read();
            let settled = again == counted && again.unaccounted() == 0;
            if again.unaccounted() == 0 || counted.unaccounted() != 0 {
                counted = again;
            }
            if settled {
                break;
            }
        }
        let mut total = Ledger {
            throttled: self.throttled,
            // An unreadable record may have been a sample, or a record of the number of lost
            // samples.
            lost: self.dropped.saturating_add(self.malformed),
            ..counted
        };
        total.event_count += self.past.count;
        total.enabled_ns += self.past.enabled_ns;
        total.running_ns += self.past.running_ns;
        if let Some(period) = period {
            total.expected = Some(self.past.count / period.max(1));
        }
        // The per-CPU events of one task are enabled together, and at most one of them counts at a
        // time.
        let mut enabled_by_task: FxHashMap<i32, u64> = FxHashMap::default();
        let started = self.started_ns.unwrap_or(0);
        let now = self.ended_ns.unwrap_or_else(monotonic_ns).saturating_sub(started);
        total.gaps = self.gaps.until(now);
        for Member { event, since_ns, detached, .. } in &self.members {
            let Reading { count, enabled_ns, running_ns, .. } =
                event.read().map_err(|error| explain::control(&error))?;
            total.event_count += count;
            match event.scope {
                Scope::Cpu(cpu) => {
                    total.enabled_ns += enabled_ns;
                    let since_ns = since_ns.filter(|_| !detached).map(|since| since.saturating_sub(started));
                    total.gaps.extend(since_ns.and_then(|since| unnoticed(cpu, since, enabled_ns, now)));
                }
                Scope::Task { tid, .. } => {
                    let longest = enabled_by_task.entry(tid).or_default();
                    *longest = enabled_ns.max(*longest);
                }
            }
            total.running_ns += running_ns;
            if let Some(period) = period {
                *total.expected.get_or_insert(0) += count / period.max(1);
            }
        }
        // In a streaming run, a sample that was lost at a full ring had already reached the
        // program, and `delivery` counts it.
        if !self.streams {
            // The program lets no sample into the ring, so the lost records are pairs of throttle
            // and unthrottle.
            total.throttled += self.lost_in_rings()?.div_ceil(2);
        }
        total.enabled_ns += enabled_by_task.values().sum::<u64>();
        if self.tracepoints.is_some() {
            // Nobody counts but the program, and the kernel what the program missed.
            let missed = tracepoints::missed(&self.program).map_err(|error| {
                SamplingError::failed("the kernel does not say what the program missed", error)
            })?;
            total.lost += missed;
            total.event_count = total.counter(Counter::PeriodSeen) + missed;
            total.expected = Some(total.event_count);
            total.running_ns = total.enabled_ns;
        }
        Ok(total)
    }

    /// Returns the number of samples that the program has seen so far, per CPU.
    pub fn seen_by_cpu(&self) -> Vec<u64> {
        self.program.table.by_cpu(Counter::Seen)
    }

    /// Returns the number of samples that the program has seen so far.
    pub fn seen(&self) -> u64 {
        self.program.table.counter(Counter::Seen)
    }

    /// Returns the loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }
}
