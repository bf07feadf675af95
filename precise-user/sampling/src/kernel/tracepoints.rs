//! The kernel's tracepoints of page faults, where a program runs for each fault.
//!
//! A perf event that samples each fault costs the program that faults 140 ns before any program of
//! ours runs, a program at a tracepoint 55 ns (docs/journal/0020-each-fault.md). The price: there
//! is no period, and no count that the kernel keeps beside the program's own.

use std::io;
use std::os::fd::OwnedFd;

use super::bpf;
use super::event::{Encoding, OpenRequest, Rate};
use super::offsets::KernelTypes;
use super::program::Program;
use crate::error::SamplingError;
use perf_event_open_sys::bindings as raw;

/// The tracepoint of a fault of code in user mode.
const OF_USER: &str = "page_fault_user";
/// The tracepoint of a fault of code in the kernel, such as a system call that writes to a page.
const OF_KERNEL: &str = "page_fault_kernel";

/// The tracepoints at which a program sees all that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracepoints(&'static [&'static str]);

impl Tracepoints {
    /// Returns the tracepoints that give each sample of an event; `None` if the event must be
    /// opened, because it is not one of page faults, does not sample each of them, or this kernel
    /// lacks what the program needs (Linux 6.2 and later have it).
    pub fn instead_of(request: &OpenRequest) -> Option<Self> {
        let OpenRequest { encoding, rate, wanted, .. } = request;
        let faults = encoding.pmu == raw::PERF_TYPE_SOFTWARE
            && encoding.config == u64::from(raw::PERF_COUNT_SW_PAGE_FAULTS);
        // What the kernel looks up for a sample, no tracepoint has.
        let more = wanted.callchain || wanted.phys_address || wanted.page_size || wanted.stack_copy > 0;
        if !faults || *rate != Rate::Period(1) || more {
            return None;
        }
        KernelTypes::of_this_kernel().ok()?.faults?;
        match (encoding.exclude_user, encoding.exclude_kernel) {
            (false, false) => Some(Self(&[OF_USER, OF_KERNEL])),
            (false, true) => Some(Self(&[OF_USER])),
            (true, false) => Some(Self(&[OF_KERNEL])),
            (true, true) => None,
        }
    }

    /// Returns the event that takes the place of the one that is not opened: it counts nothing, but
    /// is enabled, disabled and detached from its CPU as any other.
    pub fn stand_in(request: &OpenRequest) -> OpenRequest {
        let encoding = Encoding {
            pmu: raw::PERF_TYPE_SOFTWARE,
            config: raw::PERF_COUNT_SW_DUMMY.into(),
            ..Encoding::default()
        };
        OpenRequest { encoding, rate: Rate::Count, ..*request }
    }
}

/// A program at tracepoints.
#[derive(Debug)]
pub(super) struct AtTracepoints {
    points: Tracepoints,
    /// The program runs as long as these are open.
    links: Vec<OwnedFd>,
}

impl AtTracepoints {
    /// Prepares a program for these tracepoints, which does not run yet.
    pub fn new(points: Tracepoints) -> Self {
        Self { points, links: Vec::new() }
    }

    /// Makes the program run at each of the tracepoints.
    pub fn attach(&mut self, program: &Program) -> Result<(), SamplingError> {
        if !self.links.is_empty() {
            return Ok(());
        }
        for name in self.points.0 {
            let link = bpf::attach_to_tracepoint(program.fd(), name).map_err(|error| {
                SamplingError::failed(format!("cannot attach the program to the tracepoint {name}"), error)
            })?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Ends the program's runs.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

/// Returns how often a program did not run because it was running already on the same CPU.
pub(super) fn missed(program: &Program) -> io::Result<u64> {
    bpf::program_info(program.fd()).map(|info| info.recursion_misses)
}
