//! The set of cgroups that a filter watches, in memory shared with the program.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use precise_common::config::{PROBES, watched};

use super::map_memory::SharedMemory;
use crate::error::SyscallError;

/// The set of watched cgroups of one program. Only one thread of user space adds to it, and nothing
/// is ever removed.
#[derive(Debug)]
pub struct Watched(SharedMemory);

impl Watched {
    /// Maps the map of a loaded program.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(map: BorrowedFd<'_>) -> Result<Self, SyscallError> {
        SharedMemory::map(map, watched::ROOM as usize * size_of::<u64>()).map(Self)
    }

    /// Adds the id of a cgroup, with effect from the next sample. Returns whether there was room.
    pub fn add(&self, id: u64) -> bool {
        for probe in 0..PROBES {
            let at = watched::place(id, probe) as usize;
            // SAFETY: `place` is below `ROOM`, the number of mapped words; the program reads each
            // word whole.
            let slot = unsafe { AtomicU64::from_ptr(self.0.as_ptr().cast::<u64>().add(at)) };
            let found = slot.load(Ordering::Relaxed);
            if found == id {
                return true;
            }
            if found == 0 {
                slot.store(id, Ordering::Relaxed);
                return true;
            }
        }
        false
    }
}
