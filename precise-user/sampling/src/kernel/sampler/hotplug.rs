//! CPUs that go offline during a run, and come online.

use std::ops::Range;

use super::{Member, Sampler};
use crate::error::SamplingError;
use crate::kernel::blueprint::{Blueprint, OpenedEvent};
use crate::kernel::clock::monotonic_ns;
use crate::kernel::event::{Rate, Reading, Scope};
use crate::kernel::explain;
use crate::kernel::ring::Ring;

impl Sampler {
    /// Returns how to open the event on another CPU.
    pub(in crate::kernel) fn blueprint(&self) -> Result<Blueprint, SamplingError> {
        let attached = (!self.program.is_for_tracepoints()).then(|| self.program.fd().try_clone_to_owned());
        let program =
            attached.transpose().map_err(|error| SamplingError::failed("cannot share the program", error))?;
        let Self { request, leader, ring_pages, .. } = self;
        Ok(Blueprint { request: *request, leader: *leader, program, ring_pages: *ring_pages })
    }

    /// Returns whether the event samples whole CPUs, `cpu` is one of its CPUs, and it does not
    /// count there.
    pub fn lacks(&self, cpu: u32) -> bool {
        let whole = self.members.iter().all(|member| matches!(member.event.scope, Scope::Cpu(_)));
        whole && self.cpus.contains(&cpu) && !self.has_ended() && self.counts_on(cpu).is_none()
    }

    /// Returns the index of the event that counts everything on a CPU.
    fn counts_on(&self, cpu: u32) -> Option<usize> {
        self.members.iter().position(|member| member.event.scope == Scope::Cpu(cpu) && !member.detached)
    }

    /// Notes that a CPU went offline at some time of `window`, in nanoseconds of `CLOCK_MONOTONIC`.
    /// Events of tasks outlast a CPU that goes offline.
    ///
    /// # Errors
    ///
    /// Returns an error if the event cannot be read.
    pub fn lose(&mut self, cpu: u32, window: Range<u64>) -> Result<(), SamplingError> {
        let (false, Some(started)) = (self.has_ended(), self.started_ns) else { return Ok(()) };
        let Some(member) = self.counts_on(cpu).and_then(|at| self.members.get_mut(at)) else { return Ok(()) };
        member.detached = true;
        let reading = member.event.read().map_err(|error| explain::control(&error))?;
        let counted = member.since_ns.unwrap_or(started).saturating_add(reading.enabled_ns);
        let lost = counted.clamp(window.start.min(window.end), window.end);
        self.gaps.open(cpu, lost.saturating_sub(started));
        Ok(())
    }

    /// Starts an event that was opened on a CPU that came online, at the rate `in_force`. Does
    /// nothing if sampling was stopped meanwhile.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not start the event.
    pub fn adopt(&mut self, opened: OpenedEvent, in_force: Rate) -> Result<(), SamplingError> {
        let cpu = opened.event.scope.cpu();
        let (true, Some(started)) = (self.lacks(cpu), self.started_ns) else { return Ok(()) };
        let control = |error| explain::control(&error);
        let opened_at = opened.rate;
        let mut member = Member::new(opened);
        member.enable().map_err(control)?;
        // The governor may have changed it since the event was opened.
        if opened_at != in_force {
            member.event.set_rate(in_force).map_err(control)?;
        }
        let now = member.since_ns.unwrap_or_else(monotonic_ns).saturating_sub(started);
        let id = member.leader.is_some().then(|| member.event.id()).transpose().map_err(control)?;
        let at = match self.members.iter().position(|member| member.event.scope == Scope::Cpu(cpu)) {
            Some(at) => {
                let old = std::mem::replace(&mut self.members[at], member);
                self.retire(at, old)?;
                at
            }
            None => {
                // It was offline from the start.
                self.gaps.open(cpu, 0);
                self.owners.insert(cpu, self.members.len());
                self.members.push(member);
                self.members.len() - 1
            }
        };
        self.gaps.close(cpu, now);
        self.ids.extend(id.map(|id| (id, at)));
        Ok(())
    }

    /// Keeps what an event counted that was replaced, and what is left in its ring.
    fn retire(&mut self, at: usize, mut old: Member) -> Result<(), SamplingError> {
        self.ids.retain(|_, member| *member != at);
        let taken = old.ring.as_mut().map(Ring::take);
        taken.into_iter().for_each(|taken| self.read_records(taken));
        let reading = old.event.read().map_err(|error| explain::control(&error))?;
        let Reading { count, enabled_ns, running_ns, lost } = &mut self.past;
        *count += reading.count;
        *enabled_ns += reading.enabled_ns;
        *running_ns += reading.running_ns;
        *lost += reading.lost;
        Ok(())
    }
}
