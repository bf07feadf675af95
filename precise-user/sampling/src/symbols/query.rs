//! Symbolization queries: an address together with the mapping that holds it.

use std::ops::Range;

use super::mapping::Mapped;
use super::process::Processes;
use precise_common::mode::{IN_GUEST, in_kernel};
use precise_model::Reason;

/// A query for the code location of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeQuery {
    /// Whether the address is kernel code.
    pub kernel: bool,
    /// The runtime address.
    pub address: u64,
    /// The mapping that holds the address, or why it is unknown. Ignored for kernel code.
    pub mapping: Result<Mapped, Reason>,
    /// Whether a program that the process executed before may have held the address instead. Does
    /// not affect the answer; for statistics.
    pub ambiguous: bool,
}

/// A query for the variable at a data address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataQuery {
    /// Whether the address is a kernel address.
    pub kernel: bool,
    /// The runtime address, a multiple of `granule`.
    pub address: u64,
    /// Number of bytes from `address` that the query covers: 1, or a cache line. A variable that
    /// begins within them is an answer.
    pub granule: u64,
    /// The mapping that holds the address, as in [`CodeQuery`].
    pub mapping: Result<Mapped, Reason>,
    /// Whether an older mapping may have held the address instead.
    pub ambiguous: bool,
}

impl CodeQuery {
    /// Creates a query for an instruction of the kernel.
    pub fn kernel(address: u64) -> Self {
        Self { kernel: true, address, mapping: Err(Reason::NotRecorded), ambiguous: false }
    }

    /// Creates a query for an instruction that process `pid` executed in `window`, or its guest.
    pub fn user(processes: &Processes, pid: u32, address: u64, window: &Range<u64>) -> Self {
        if address == IN_GUEST {
            return Self { kernel: false, address: 0, mapping: Err(Reason::Guest), ambiguous: false };
        }
        let found = match processes.code_was_replaced(pid, address, window) {
            true => Err(Reason::MappingReplaced),
            false => processes.find_code(pid, address, window),
        };
        let ambiguous = found.as_ref().is_ok_and(|found| found.ambiguous);
        Self { kernel: false, address, mapping: found.map(|found| found.value), ambiguous }
    }

    /// Returns the generation of the process that has the code mapped; `None` for the kernel's, and
    /// if the mapping is not known.
    pub fn generation(&self) -> Option<u64> {
        self.mapping.as_ref().ok().map(|mapped| mapped.generation)
    }
}

impl DataQuery {
    /// Creates a query for `granule` bytes at an address that process `pid` accessed in `window`.
    pub fn new(processes: &Processes, pid: u32, address: u64, granule: u64, window: &Range<u64>) -> Self {
        if in_kernel(address) {
            return Self {
                kernel: true,
                address,
                granule,
                mapping: Err(Reason::NotRecorded),
                ambiguous: false,
            };
        }
        let found = processes.find_mapping(pid, address, window);
        let ambiguous = found.as_ref().is_ok_and(|found| found.ambiguous);
        let mapping = found.map(|found| found.value);
        Self { kernel: false, address, granule, mapping, ambiguous }
    }
}
