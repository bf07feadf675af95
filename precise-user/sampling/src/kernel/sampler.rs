//! Samples one event: holds its program, the open event on each CPU or task, and its rings.

use std::{os::fd::AsFd as _, time::Duration};

use bytes::Bytes;
use precise_common::{cell::Cell, ledger::Counter};
use rustc_hash::FxHashMap;

use super::event::{Event, Rate, Reading, Request, Scope};
use super::link::Link;
use super::map_memory::page_size;
use super::program::{Program, ProgramOptions};
use super::ring::Ring;
use super::{LAYOUT, event, link};
use crate::error::SamplingError;
use crate::kernel::explain;
use precise_model::Ledger;
use precise_records::Chains;
use precise_records::record::{IdentifiedRecord, Layout, Record, records};

/// Pages of an event's own ring. The ring receives only throttle and lost records, which have a few
/// dozen bytes each.
const RING_PAGES: usize = 1;
/// Maximum number of reads of a running event's counters until they agree.
const READS: usize = 16;

/// A sample as read from a ring. It is not decoded yet, so that the reader returns to the rings
/// quickly.
#[derive(Clone, Debug)]
pub struct Taken {
    /// `header.misc`.
    pub misc: u16,
    /// The bytes after the header; [`Sampler::sample_type`] describes their fields.
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

/// An event that is being sampled.
///
/// Its fields are dropped in this order: links before events before the program.
#[derive(Debug)]
pub struct Sampler {
    links: Vec<Link>,
    rings: Vec<Ring>,
    members: Vec<Event>,
    leaders: Vec<Event>,
    program: Program,
    layout: Layout,
    ring_pages: usize,
    /// In a streaming run, the events of all tasks write to one ring per CPU. Maps each CPU to the
    /// index of the member that owns its ring. `None` if the run does not stream.
    owners: Option<FxHashMap<u32, usize>>,
    /// Whether sampling was stopped and not started again.
    ended: bool,
    samples: Vec<Taken>,
    read: u64,
    /// For each member, `None` unless its last record about throttling was a throttle; then the
    /// number of calls of [`Self::look_after`] since that record.
    stopped: Vec<Option<u32>>,
    throttled: u64,
    /// The number of samples that the hardware or the driver dropped.
    dropped: u64,
    /// The number of records that were lost because a ring was full, according to the lost records.
    lost: u64,
    malformed: u64,
}

impl Sampler {
    /// Loads the program and opens the event in each scope, in the disabled state. If there is a
    /// `leader`, it is opened first and leads the event's group.
    ///
    /// # Errors
    ///
    /// Returns the first refusal of the kernel, with an explanation.
    pub fn open(
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
        options: &ProgramOptions,
    ) -> Result<Self, SamplingError> {
        Self::open_beside(request, leader, scopes, options, None)
    }

    /// Opens one more event of a run. Its program shares promoted lines with the program of
    /// `first`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::open`].
    pub fn open_beside(
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
        options: &ProgramOptions,
        first: Option<&Self>,
    ) -> Result<Self, SamplingError> {
        let program = Program::load_beside(options, first.map(Self::program))?;
        let sampler = Self::new(program, request);
        sampler.open_all(request, leader, scopes)
    }

    /// Opens an event of a streaming run, with one ring per CPU. The number of pages of a ring must
    /// be a power of two.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::open`].
    pub fn open_streaming(
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
        options: &ProgramOptions,
        ring_pages: usize,
    ) -> Result<Self, SamplingError> {
        let mut sampler = Self::new(Program::load(options)?, request);
        sampler.ring_pages = ring_pages;
        sampler.owners = Some(FxHashMap::default());
        sampler.open_all(request, leader, scopes)
    }

    fn new(program: Program, request: &Request) -> Self {
        Self {
            links: Vec::new(),
            rings: Vec::new(),
            members: Vec::new(),
            leaders: Vec::new(),
            program,
            layout: Layout { sample_type: event::sample_type(request), ..LAYOUT },
            ring_pages: RING_PAGES,
            owners: None,
            ended: false,
            samples: Vec::new(),
            read: 0,
            stopped: Vec::new(),
            throttled: 0,
            dropped: 0,
            lost: 0,
            malformed: 0,
        }
    }

    fn open_all(
        mut self,
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
    ) -> Result<Self, SamplingError> {
        for scope in scopes {
            self.open_one(request, leader, *scope)?;
        }
        if self.members.is_empty() {
            return Err(explain::nothing_to_sample());
        }
        Ok(self)
    }

    fn open_one(
        &mut self,
        request: &Request,
        leader: Option<&Request>,
        scope: Scope,
    ) -> Result<(), SamplingError> {
        let opened = match leader {
            None => Event::open(request, scope, None),
            Some(leader) => Event::open(leader, scope, None).and_then(|leader| {
                let member = Event::open(request, scope, Some(&leader));
                self.leaders.push(leader);
                member
            }),
        };
        let event = match (opened, scope) {
            (Ok(event), _) => event,
            // The thread ended after /proc was read, so there is nothing left to sample.
            (Err(error), Scope::Task { .. }) if error.errno() == libc::ESRCH => return Ok(()),
            (Err(error), _) => return Err(explain::open(&error, request, scope)),
        };
        self.give_ring(&event)?;
        let link = link::attach(self.program.fd()?, &event).map_err(|error| explain::attach(&error))?;
        self.links.push(link);
        self.members.push(event);
        self.stopped.push(None);
        Ok(())
    }

    /// Gives an event that will become the next member a ring: its own, or that of another member.
    fn give_ring(&mut self, event: &Event) -> Result<(), SamplingError> {
        let (Scope::Cpu(cpu) | Scope::Task { cpu, .. }) = event.scope;
        if let Some(owners) = &mut self.owners {
            // One ring per thread and CPU would take gigabytes for a thousand threads.
            if let Some(owner) = owners.get(&cpu).and_then(|owner| self.members.get(*owner)) {
                return event.redirect(owner).map_err(|error| explain::ring(&error));
            }
            owners.insert(cpu, self.members.len());
        }
        let ring = Ring::map(event.as_fd(), self.ring_pages).map_err(|error| explain::ring(&error))?;
        self.rings.push(ring);
        Ok(())
    }

    /// Sets how long after the last [`Self::drain`] the program keeps samples: see
    /// [`super::table::Table::set_lease`].
    pub fn set_lease(&mut self, lease: Duration) {
        self.program.table.set_lease(lease);
    }

    /// Starts sampling in every scope.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not start an event.
    pub fn enable(&mut self) -> Result<(), SamplingError> {
        self.ended = false;
        self.leaders
            .iter()
            .chain(&self.members)
            .try_for_each(Event::enable)
            .map_err(|error| explain::control(&error))
    }

    /// Changes the sample rate in every scope. The rate must be of the same kind as the event's
    /// own: see [`event::Trigger::in_force`].
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not accept the rate.
    pub fn set_rate(&self, rate: Rate) -> Result<(), SamplingError> {
        // A change of the rate may enable the events again.
        if self.ended {
            return Ok(());
        }
        self.members
            .iter()
            .try_for_each(|event| event.set_rate(rate))
            .map_err(|error| explain::control(&error))
    }

    /// Returns whether sampling was stopped and not started again.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Stops sampling in every scope. Afterwards the ledger is exact.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not stop an event.
    pub fn disable(&mut self) -> Result<(), SamplingError> {
        self.ended = true;
        self.members
            .iter()
            .chain(&self.leaders)
            .try_for_each(Event::disable)
            .map_err(|error| explain::control(&error))
    }

    /// Ends the epoch and passes each of its cells to `take`, as `(cpu, cell)`. Returns the call
    /// chains that the cells refer to.
    ///
    /// # Errors
    ///
    /// Returns an error if waiting for the grace period failed.
    pub fn drain(&mut self, take: impl FnMut(usize, &Cell)) -> Result<Chains, SamplingError> {
        self.drain_rings();
        self.program.table.flip(take).map_err(|error| explain::control(&error))
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
        if self.leaders.is_empty() || self.ended {
            return Ok(());
        }
        for (event, stopped) in self.members.iter().zip(&mut self.stopped) {
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
        let streams = self.owners.is_some();
        // In a streaming run, members may share a ring.
        let own_rings = self.rings.len() == self.members.len();
        for (i, ring) in self.rings.iter_mut().enumerate() {
            for entry in records(ring.take(), self.layout) {
                match entry {
                    Ok(IdentifiedRecord { record: Record::Sample(body), misc, .. }) if streams => {
                        self.read += 1;
                        self.samples.push(Taken { misc, body });
                    }
                    // If the run does not stream, the program keeps samples out of the ring. A
                    // sample in the ring bypassed the program, as the last record of a PEBS buffer
                    // can if the end of another event drains the buffer.
                    Ok(IdentifiedRecord { record: Record::Sample(_), .. }) => self.dropped += 1,
                    Ok(IdentifiedRecord { record: Record::Throttle { .. }, .. }) => {
                        self.throttled += 1;
                        if own_rings {
                            self.stopped[i] = Some(0);
                        }
                    }
                    Ok(IdentifiedRecord { record: Record::Unthrottle { .. }, .. }) if own_rings => {
                        self.stopped[i] = None
                    }
                    Ok(IdentifiedRecord { record: Record::Lost { lost, .. }, .. }) => self.lost += lost,
                    Ok(IdentifiedRecord { record: Record::LostSamples { lost }, .. }) => self.dropped += lost,
                    Ok(_) => {}
                    Err(_) => self.malformed += 1,
                }
            }
        }
    }

    /// Returns the sample type that describes the bodies of [`Self::take_samples`].
    pub fn sample_type(&self) -> u64 {
        self.layout.sample_type
    }

    /// Returns the memory of the rings in bytes; constant during a run.
    pub fn ring_memory(&self) -> usize {
        self.rings.len() * (1 + self.ring_pages) * page_size()
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
        let counted = self.members.iter().try_fold(0, |sum, member| {
            member.read().map(|reading| sum + reading.lost).map_err(|error| explain::control(&error))
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
        // While the event is enabled, a sample may be in one counter and not yet in the other. Only
        // what every read finds is a discrepancy.
        let consistent = (0..READS).map(|_| read()).find(|ledger| ledger.unaccounted() == 0);
        let mut total = Ledger {
            throttled: self.throttled,
            // An unreadable record may have been a sample, or a record of the number of lost
            // samples.
            lost: self.dropped.saturating_add(self.malformed),
            ..consistent.unwrap_or_else(read)
        };
        // The per-CPU events of one task are enabled together, and at most one of them counts at a
        // time.
        let mut enabled_by_task: FxHashMap<i32, u64> = FxHashMap::default();
        for member in &self.members {
            let Reading { count, enabled_ns, running_ns, .. } =
                member.read().map_err(|error| explain::control(&error))?;
            total.event_count += count;
            match member.scope {
                Scope::Cpu(_) => total.enabled_ns += enabled_ns,
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
        if self.owners.is_none() {
            // The program lets no sample into the ring, so the lost records are pairs of throttle
            // and unthrottle.
            total.throttled += self.lost_in_rings()?.div_ceil(2);
        }
        total.enabled_ns += enabled_by_task.values().sum::<u64>();
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
