//! Opens an event in each scope, with its program and its rings.

use std::os::fd::AsFd as _;

use rustc_hash::FxHashMap;

use super::gaps::Gaps;
use super::{Member, RING_PAGES, Sampler};
use crate::error::SamplingError;
use crate::kernel::LAYOUT;
use crate::kernel::blueprint::open_with_leader;
use crate::kernel::event::{self, Event, OpenRequest, Reading, Scope};
use crate::kernel::explain;
use crate::kernel::program::{Program, ProgramOptions, ReadPath};
use crate::kernel::ring::Ring;
use crate::kernel::tracepoints::{AtTracepoints, Tracepoints};
use precise_records::record::RecordLayout;

impl Sampler {
    /// Loads the program and opens the event in each scope, in the disabled state. If there is a
    /// `leader`, it is opened first and leads the event's group.
    ///
    /// # Errors
    ///
    /// Returns the first refusal of the kernel, with an explanation.
    pub fn open(
        request: &OpenRequest,
        leader: Option<&OpenRequest>,
        scopes: &[Scope],
        options: &ProgramOptions,
    ) -> Result<Self, SamplingError> {
        Self::open_beside(request, leader, scopes, options, &[], None)
    }

    /// Opens one more event of a run. Its program shares promoted lines with the program of
    /// `first`, and its table also has room for the CPUs `later`, which may come online.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::open`].
    pub fn open_beside(
        request: &OpenRequest,
        leader: Option<&OpenRequest>,
        scopes: &[Scope],
        options: &ProgramOptions,
        later: &[u32],
        first: Option<&Self>,
    ) -> Result<Self, SamplingError> {
        let cpus: Vec<u32> = scopes.iter().map(|scope| scope.cpu()).chain(later.iter().copied()).collect();
        let program = Program::load_on(options, &cpus, first.map(Self::program))?;
        let mut sampler = Self::new(program, request, leader);
        sampler.cpus = cpus;
        sampler.open_all(scopes)
    }

    /// Opens one more event of a run, as [`Self::open_beside`] does, whose samples the program
    /// takes at tracepoints, on all CPUs. The event itself is not opened, but a
    /// [stand-in](Tracepoints::stand_in).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::open`].
    pub fn open_at(
        points: Tracepoints,
        request: &OpenRequest,
        scopes: &[Scope],
        options: &ProgramOptions,
        later: &[u32],
        first: Option<&Self>,
    ) -> Result<Self, SamplingError> {
        let options = ProgramOptions { read_path: Some(ReadPath::Fault), ..options.clone() };
        let stand_in = Tracepoints::stand_in(request);
        let mut sampler = Self::open_beside(&stand_in, None, scopes, &options, later, first)?;
        sampler.tracepoints = Some(AtTracepoints::new(points));
        Ok(sampler)
    }

    /// Opens an event of a streaming run, which may also be opened on the CPUs `later`. The number
    /// of pages of a CPU's ring must be a power of two.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::open`].
    pub fn open_streaming(
        request: &OpenRequest,
        leader: Option<&OpenRequest>,
        scopes: &[Scope],
        options: &ProgramOptions,
        later: &[u32],
        ring_pages: usize,
    ) -> Result<Self, SamplingError> {
        // The table of a streaming run stays empty.
        let mut sampler = Self::new(Program::load_on(options, &[0], None)?, request, leader);
        sampler.cpus = scopes.iter().map(|scope| scope.cpu()).chain(later.iter().copied()).collect();
        sampler.ring_pages = ring_pages;
        sampler.streams = true;
        sampler.open_all(scopes)
    }

    fn new(program: Program, request: &OpenRequest, leader: Option<&OpenRequest>) -> Self {
        Self {
            members: Vec::new(),
            owners: FxHashMap::default(),
            ids: FxHashMap::default(),
            program,
            tracepoints: None,
            request: *request,
            leader: leader.copied(),
            cpus: Vec::new(),
            past: Reading::default(),
            gaps: Gaps::default(),
            layout: RecordLayout { sample_type: event::sample_type(request), ..LAYOUT },
            ring_pages: RING_PAGES,
            streams: false,
            started_ns: None,
            ended_ns: None,
            is_at_rest: false,
            ended_tasks: 0,
            samples: Vec::new(),
            read: 0,
            throttled: 0,
            dropped: 0,
            lost: 0,
            malformed: 0,
        }
    }

    fn open_all(mut self, scopes: &[Scope]) -> Result<Self, SamplingError> {
        for scope in scopes {
            self.open_one(*scope)?;
        }
        if self.members.is_empty() {
            return Err(explain::nothing_to_sample());
        }
        Ok(self)
    }

    fn open_one(&mut self, scope: Scope) -> Result<(), SamplingError> {
        let opened = open_with_leader(&self.request, self.leader.as_ref(), scope);
        let (event, leader) = match (opened, scope) {
            (Ok(opened), _) => opened,
            // The thread ended after /proc was read, so there is nothing left to sample.
            (Err(error), Scope::Task { .. }) if error.errno() == libc::ESRCH => return Ok(()),
            (Err(error), _) => return Err(explain::open(&error, &self.request, scope)),
        };
        let ring = self.give_ring(&event)?;
        if !self.program.is_for_tracepoints() {
            event.attach(self.program.fd()).map_err(|error| explain::attach(&error))?;
        }
        if leader.is_some() {
            let id = event.id().map_err(|error| explain::control(&error))?;
            self.ids.insert(id, self.members.len());
        }
        self.members.push(Member { ring, event, leader, stopped: None, since_ns: None, detached: false });
        Ok(())
    }

    /// Returns the ring of an event that will become the next member; `None` if its records go to
    /// the ring of another member on the CPU.
    pub(super) fn give_ring(&mut self, event: &Event) -> Result<Option<Ring>, SamplingError> {
        let cpu = event.scope.cpu();
        // One ring per thread and CPU would take gigabytes for a thousand threads.
        if let Some(owner) = self.owners.get(&cpu).and_then(|owner| self.members.get(*owner)) {
            event.redirect(&owner.event).map_err(|error| explain::ring(&error))?;
            return Ok(None);
        }
        let ring = Ring::map(event.as_fd(), self.ring_pages).map_err(|error| explain::ring(&error))?;
        self.owners.insert(cpu, self.members.len());
        Ok(Some(ring))
    }
}
