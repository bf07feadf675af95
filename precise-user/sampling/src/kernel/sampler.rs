//! One event, sampled: its program, the event on each CPU or task, and its rings.

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

/// Pages of an event's own ring: it only takes throttle and lost records, a few dozen bytes each.
const RING_PAGES: usize = 1;

/// A sample as it came out of a ring: undecoded, so that whoever reads the rings is back at them
/// soon.
#[derive(Clone, Debug)]
pub struct Taken {
    /// `header.misc`.
    pub misc: u16,
    /// What follows the header; [`Sampler::sample_type`] says what it is made of.
    pub body: Bytes,
}

/// What became of the samples that the program of a streaming run left to the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Delivery {
    /// Samples that the program let pass.
    pub streamed: u64,
    /// Samples that came out of the rings.
    pub read: u64,
    /// Records that found no room, as the kernel counts them. Among them may be records that are no
    /// samples.
    pub lost: u64,
}

/// An event being sampled.
///
/// Fields are dropped in this order: links before events before the program.
#[derive(Debug)]
pub struct Sampler {
    links: Vec<Link>,
    rings: Vec<Ring>,
    members: Vec<Event>,
    leaders: Vec<Event>,
    program: Program,
    layout: Layout,
    ring_pages: usize,
    /// In a streaming run, the events of all tasks write to one ring per CPU. By CPU: the member
    /// that owns the ring.
    owners: Option<FxHashMap<u32, usize>>,
    /// Sampling was stopped, and has not been started since.
    ended: bool,
    samples: Vec<Taken>,
    read: u64,
    /// Whether the last that was heard of a member's throttling is that it is throttled, and since
    /// how many looks.
    stopped: Vec<Option<u32>>,
    throttled: u64,
    /// Samples that the hardware or the driver dropped.
    dropped: u64,
    /// Records that found no room, by the records that say so.
    lost: u64,
    malformed: u64,
}

impl Sampler {
    /// Loads the program and opens the event in each scope, disabled. `leader` is opened before it
    /// as its group's leader.
    ///
    /// # Errors
    ///
    /// The first refusal, as a sentence.
    pub fn open(
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
        options: &ProgramOptions,
    ) -> Result<Self, SamplingError> {
        Self::open_beside(request, leader, scopes, options, None)
    }

    /// The same for one more event of a run, whose program shares promoted lines with that of
    /// `first`.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
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

    /// The same for a streaming run: with one ring of so many pages, a power of two, for each CPU.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
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
            // A thread that ended between the look at /proc and here has nothing left to sample.
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

    /// A ring of its own for an event that is about to become the next member, or another member's.
    fn give_ring(&mut self, event: &Event) -> Result<(), SamplingError> {
        let (Scope::Cpu(cpu) | Scope::Task { cpu, .. }) = event.scope;
        if let Some(owners) = &mut self.owners {
            // A ring for each of a thousand threads on each CPU would take gigabytes.
            if let Some(owner) = owners.get(&cpu).and_then(|owner| self.members.get(*owner)) {
                return event.redirect(owner).map_err(|error| explain::ring(&error));
            }
            owners.insert(cpu, self.members.len());
        }
        let ring = Ring::map(event.as_fd(), self.ring_pages).map_err(|error| explain::ring(&error))?;
        self.rings.push(ring);
        Ok(())
    }

    /// The program keeps nothing later than so long after the last [`Self::drain`]: see
    /// [`super::table::Table::set_lease`].
    pub fn set_lease(&mut self, lease: Duration) {
        self.program.table.set_lease(lease);
    }

    /// Starts sampling everywhere.
    ///
    /// # Errors
    ///
    /// When the kernel does not start an event.
    pub fn enable(&mut self) -> Result<(), SamplingError> {
        self.ended = false;
        self.leaders
            .iter()
            .chain(&self.members)
            .try_for_each(Event::enable)
            .map_err(|error| explain::control(&error))
    }

    /// Changes how often it samples, everywhere. A rate of another kind than the event has makes no
    /// sense: see [`event::Trigger::in_force`].
    ///
    /// # Errors
    ///
    /// When the kernel does not take the rate.
    pub fn set_rate(&self, rate: Rate) -> Result<(), SamplingError> {
        // A change may come to enabling the events again.
        if self.ended {
            return Ok(());
        }
        self.members
            .iter()
            .try_for_each(|event| event.set_rate(rate))
            .map_err(|error| explain::control(&error))
    }

    /// Whether sampling was stopped, and has not been started since.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Stops sampling everywhere. After it, the ledger is exact.
    ///
    /// # Errors
    ///
    /// When the kernel does not stop an event.
    pub fn disable(&mut self) -> Result<(), SamplingError> {
        self.ended = true;
        self.members
            .iter()
            .chain(&self.leaders)
            .try_for_each(Event::disable)
            .map_err(|error| explain::control(&error))
    }

    /// Ends the epoch and hands out its cells as `(cpu, cell)`; returns the call chains that they
    /// refer to.
    ///
    /// # Errors
    ///
    /// When the grace period could not be waited for.
    pub fn drain(&mut self, take: impl FnMut(usize, &Cell)) -> Result<Chains, SamplingError> {
        self.drain_rings();
        self.program.table.flip(take).map_err(|error| explain::control(&error))
    }

    /// The samples of a streaming run that have arrived since the last call: those of one CPU in
    /// the order in which they were taken.
    pub fn take_samples(&mut self) -> Vec<Taken> {
        self.drain_rings();
        std::mem::take(&mut self.samples)
    }

    /// Looks after the events: takes what the kernel says of throttling and loss, and starts again
    /// what it forgot to start. To be called every few ticks of the kernel: a ring has room for 32
    /// throttlings.
    ///
    /// A throttled event is to be started at the next tick. Linux 6.12 (seen in the lab; 6.16
    /// changed the matter) does so for leaders of groups only: a load event behind its auxiliary
    /// event would never sample again, without another word. Enabled anew, it does.
    ///
    /// # Errors
    ///
    /// When the kernel does not stop or start an event.
    pub fn look_after(&mut self) -> Result<(), SamplingError> {
        self.drain_rings();
        if self.leaders.is_empty() || self.ended {
            return Ok(());
        }
        for (event, stopped) in self.members.iter().zip(&mut self.stopped) {
            match stopped {
                // The tick may be just about to come.
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
                    // Otherwise the program keeps samples out of the ring: one that is there went
                    // past it, as the last of a PEBS buffer can that another event's end drains.
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

    /// What the bodies of [`Self::take_samples`] are made of.
    pub fn sample_type(&self) -> u64 {
        self.layout.sample_type
    }

    /// Bytes of memory that the rings take; constant during a run.
    pub fn ring_memory(&self) -> usize {
        self.rings.len() * (1 + self.ring_pages) * page_size()
    }

    /// Where the samples of a streaming run are. Exact once the events are disabled and the rings
    /// are empty.
    ///
    /// # Errors
    ///
    /// When an event cannot be read.
    pub fn delivery(&self) -> Result<Delivery, SamplingError> {
        Ok(Delivery {
            streamed: self.program.table.counter(Counter::Streamed),
            read: self.read,
            lost: self.lost_in_rings()?,
        })
    }

    /// Records that found no room. The events' own count (6.0 and later) is complete; records say
    /// so only when a later one found room.
    fn lost_in_rings(&self) -> Result<u64, SamplingError> {
        let counted = self.members.iter().try_fold(0, |sum, member| {
            member.read().map(|reading| sum + reading.lost).map_err(|error| explain::control(&error))
        })?;
        Ok(counted.max(self.lost))
    }

    /// Where the samples went up to now. `clauses` are the filter's clauses as text, in the order
    /// of their ids; `period` is the fixed period, if there is one.
    ///
    /// # Errors
    ///
    /// When an event cannot be read.
    pub fn ledger(&mut self, clauses: &[String], period: Option<u64>) -> Result<Ledger, SamplingError> {
        self.drain_rings();
        let table = &self.program.table;
        let mut total = Ledger {
            counters: Counter::ALL.iter().map(|counter| (*counter, table.counter(*counter))).collect(),
            rejected: clauses.iter().cloned().zip(table.rejected(clauses.len())).collect(),
            throttled: self.throttled,
            // A record that cannot be read may have been a sample, or have said how many were lost.
            lost: self.dropped.saturating_add(self.malformed),
            ..Ledger::default()
        };
        // The events of one task on each CPU are enabled together, and at most one of them counts
        // at a time.
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
        // The samples of a streaming run that found no room in a ring had reached the program:
        // `delivery` counts them.
        if self.owners.is_none() {
            // The program lets no sample into the ring: what did not fit are pairs of throttle and
            // unthrottle.
            total.throttled += self.lost_in_rings()?.div_ceil(2);
        }
        total.enabled_ns += enabled_by_task.values().sum::<u64>();
        Ok(total)
    }

    /// Samples that each CPU's program has seen up to now.
    pub fn seen_by_cpu(&self) -> Vec<u64> {
        self.program.table.by_cpu(Counter::Seen)
    }

    /// Samples that the program has seen up to now.
    pub fn seen(&self) -> u64 {
        self.program.table.counter(Counter::Seen)
    }

    /// The loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }
}
