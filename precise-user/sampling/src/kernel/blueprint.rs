//! How to open an event of a run on another CPU.

use std::os::fd::{AsFd as _, OwnedFd};

use super::event::{Event, OpenRequest, Rate, Scope};
use super::explain;
use super::ring::Ring;
use crate::error::{SamplingError, SyscallError};

/// How to open one event of a run on another CPU.
#[derive(Debug)]
pub(super) struct Blueprint {
    pub request: OpenRequest,
    pub leader: Option<OpenRequest>,
    /// The program to attach; `None` if it runs elsewhere, and the event samples nothing.
    pub program: Option<OwnedFd>,
    pub ring_pages: usize,
}

/// An event that was opened on a CPU. It does not count yet.
#[derive(Debug)]
pub struct OpenedEvent {
    pub(super) event: Event,
    pub(super) leader: Option<Event>,
    pub(super) ring: Ring,
    /// The rate with which it was asked for.
    pub(super) rate: Rate,
}

impl Blueprint {
    /// Opens the event on a CPU, at a rate of the same kind as the request's own. It does not count
    /// yet.
    pub fn open(&self, rate: Rate, cpu: u32) -> Result<OpenedEvent, SamplingError> {
        let Self { request, leader, program, ring_pages } = self;
        let scope = Scope::Cpu(cpu);
        let own_rate = if program.is_some() { rate } else { request.rate };
        let request = OpenRequest { rate: own_rate, ..*request };
        let (event, leader) = open_with_leader(&request, leader.as_ref(), scope)
            .map_err(|error| explain::open(&error, &request, scope))?;
        let ring = Ring::map(event.as_fd(), *ring_pages).map_err(|error| explain::ring(&error))?;
        if let Some(program) = program {
            event.attach(program.as_fd()).map_err(|error| explain::attach(&error))?;
        }
        Ok(OpenedEvent { event, leader, ring, rate })
    }
}

/// Opens an event in the disabled state, and before it the leader of its group if it has one.
pub(super) fn open_with_leader(
    request: &OpenRequest,
    leader: Option<&OpenRequest>,
    scope: Scope,
) -> Result<(Event, Option<Event>), SyscallError> {
    let leader = leader.map(|leader| Event::open(leader, scope, None)).transpose()?;
    Ok((Event::open(request, scope, leader.as_ref())?, leader))
}
