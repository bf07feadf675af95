//! Questions: an address together with what was mapped there.

use std::ops::Range;

use super::mapping::Mapped;
use super::process::Processes;
use precise_model::Reason;

/// Where is this instruction?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeQuery {
    /// Whether it is kernel code.
    pub kernel: bool,
    /// Runtime address.
    pub address: u64,
    /// What was mapped there, or why that is not known. Not looked at for kernel code.
    pub mapping: Result<Mapped, Reason>,
    /// Whether an older mapping could be meant as well. Of no effect on the answer; count it.
    pub ambiguous: bool,
}

/// What is at this data address?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataQuery {
    /// Whether it is a kernel address.
    pub kernel: bool,
    /// Runtime address, a multiple of `granule`.
    pub address: u64,
    /// How many bytes from `address` are meant: 1, or a cache line. A variable that begins in them
    /// is an answer.
    pub granule: u64,
    /// As in [`CodeQuery`].
    pub mapping: Result<Mapped, Reason>,
    /// As in [`CodeQuery`].
    pub ambiguous: bool,
}

impl CodeQuery {
    /// Asks for an instruction of the kernel.
    pub fn kernel(address: u64) -> Self {
        Self { kernel: true, address, mapping: Err(Reason::NotRecorded), ambiguous: false }
    }

    /// Asks for an instruction of process `pid` in `window`.
    pub fn user(processes: &Processes, pid: u32, address: u64, window: &Range<u64>) -> Self {
        let (mapping, ambiguous) = mapping(processes, pid, address, window);
        Self { kernel: false, address, mapping, ambiguous }
    }
}

impl DataQuery {
    /// Asks for `granule` bytes at an address that process `pid` touched in `window`. The kernel's
    /// half of the address space is recognised by the address.
    pub fn new(processes: &Processes, pid: u32, address: u64, granule: u64, window: &Range<u64>) -> Self {
        if address >> 63 != 0 {
            return Self {
                kernel: true,
                address,
                granule,
                mapping: Err(Reason::NotRecorded),
                ambiguous: false,
            };
        }
        let (mapping, ambiguous) = mapping(processes, pid, address, window);
        Self { kernel: false, address, granule, mapping, ambiguous }
    }
}

fn mapping(p: &Processes, pid: u32, address: u64, window: &Range<u64>) -> (Result<Mapped, Reason>, bool) {
    match p.find_mapping(pid, address, window) {
        Ok(found) => (Ok(found.value), found.ambiguous),
        Err(reason) => (Err(reason), false),
    }
}
