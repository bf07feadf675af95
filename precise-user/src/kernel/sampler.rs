//! One event, sampled: its program, the event on each CPU or task, and its rings.

use precise_common::{
    cell::Cell,
    ledger::{self, CATALOGUE},
};
use rustc_hash::FxHashMap;

use super::{
    LAYOUT,
    event::{Event, Reading, Request, Scope},
    link::{self, Link},
    program::{Program, ProgramOptions},
    record::{Entry, Record, records},
    ring::Ring,
};
use crate::{capture::Ledger, error::Failure, kernel::explain};

/// Pages of an event's own ring: it only takes throttle and lost records, a few dozen bytes each.
const RING_PAGES: usize = 1;

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
    throttled: u64,
    lost: u64,
    malformed: u64,
}

impl Sampler {
    /// Loads the program and opens the event in each scope, disabled. `leader` is opened before it as its group's leader.
    ///
    /// # Errors
    ///
    /// The first refusal, as a sentence.
    pub fn open(
        request: &Request,
        leader: Option<&Request>,
        scopes: &[Scope],
        options: &ProgramOptions,
    ) -> Result<Self, Failure> {
        let program = Program::load(options)?;
        let mut sampler = Self {
            links: Vec::new(),
            rings: Vec::new(),
            members: Vec::new(),
            leaders: Vec::new(),
            program,
            throttled: 0,
            lost: 0,
            malformed: 0,
        };
        for scope in scopes {
            sampler.open_one(request, leader, *scope)?;
        }
        if sampler.members.is_empty() {
            return Err(explain::nothing_to_sample());
        }
        Ok(sampler)
    }

    fn open_one(&mut self, request: &Request, leader: Option<&Request>, scope: Scope) -> Result<(), Failure> {
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
        let ring =
            Ring::map(std::os::fd::AsFd::as_fd(&event), RING_PAGES).map_err(|error| explain::ring(&error))?;
        let link = link::attach(self.program.fd()?, &event).map_err(|error| explain::attach(&error))?;
        self.rings.push(ring);
        self.links.push(link);
        self.members.push(event);
        Ok(())
    }

    /// Starts sampling everywhere.
    ///
    /// # Errors
    ///
    /// When the kernel does not start an event.
    pub fn enable(&self) -> Result<(), Failure> {
        self.leaders
            .iter()
            .chain(&self.members)
            .try_for_each(Event::enable)
            .map_err(|error| explain::control(&error))
    }

    /// Stops sampling everywhere. After it, the ledger is exact.
    ///
    /// # Errors
    ///
    /// When the kernel does not stop an event.
    pub fn disable(&self) -> Result<(), Failure> {
        self.members
            .iter()
            .chain(&self.leaders)
            .try_for_each(Event::disable)
            .map_err(|error| explain::control(&error))
    }

    /// Ends the epoch and hands out its cells as `(cpu, cell)`.
    ///
    /// # Errors
    ///
    /// When the grace period could not be waited for.
    pub fn drain(&mut self, take: impl FnMut(usize, &Cell)) -> Result<(), Failure> {
        self.drain_rings();
        self.program.table.flip(take).map_err(|error| explain::control(&error))
    }

    fn drain_rings(&mut self) {
        let Self { rings, throttled, lost, malformed, .. } = self;
        for ring in rings {
            for entry in records(ring.take(), LAYOUT) {
                match entry {
                    Ok(Entry { record: Record::Throttle { .. }, .. }) => *throttled += 1,
                    Ok(Entry {
                        record: Record::Lost { lost: n, .. } | Record::LostSamples { lost: n },
                        ..
                    }) => *lost += n,
                    Ok(_) => {}
                    Err(_) => *malformed += 1,
                }
            }
        }
    }

    /// Where the samples went up to now. `clauses` are the filter's clauses as text, in the order of their ids; `period`
    /// is the fixed period, if there is one.
    ///
    /// # Errors
    ///
    /// When an event cannot be read.
    pub fn ledger(&mut self, clauses: &[String], period: Option<u64>) -> Result<Ledger, Failure> {
        self.drain_rings();
        let table = &self.program.table;
        let mut total = Ledger {
            counters: CATALOGUE
                .iter()
                .map(|(id, name, _)| ((*name).to_owned(), table.counter(*id)))
                .collect(),
            rejected: clauses.iter().cloned().zip(table.rejected(clauses.len())).collect(),
            throttled: self.throttled,
            lost: self.lost,
            ..Ledger::default()
        };
        if self.malformed > 0 {
            total.discarded.insert("malformed ring records".into(), self.malformed);
        }
        // The events of one task on each CPU are enabled together, and at most one of them counts at a time.
        let mut enabled_by_task: FxHashMap<i32, u64> = FxHashMap::default();
        for member in &self.members {
            let Reading { count, enabled_ns, running_ns, lost } =
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
            total.lost += lost;
            if let Some(period) = period {
                *total.expected.get_or_insert(0) += count / period.max(1);
            }
        }
        total.enabled_ns += enabled_by_task.values().sum::<u64>();
        Ok(total)
    }

    /// Samples that the program has seen up to now.
    pub fn seen(&self) -> u64 {
        self.program.table.counter(ledger::SEEN)
    }

    /// The loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }
}
