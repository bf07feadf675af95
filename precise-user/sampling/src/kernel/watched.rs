//! The set of cgroups that a filter watches, in memory shared with the program.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use precise_common::config::{PROBES, watched};

use super::map_memory::SharedMemory;
use crate::error::SyscallError;

/// The set of one program. User space only adds, and only one thread of it.
#[derive(Debug)]
pub struct Watched(SharedMemory);

impl Watched {
    /// Maps the map of a loaded program.
    ///
    /// # Errors
    ///
    /// What mmap(2) says.
    pub fn map(map: BorrowedFd<'_>) -> Result<Self, SyscallError> {
        SharedMemory::map(map, watched::ROOM as usize * size_of::<u64>()).map(Self)
    }

    /// Adds the id of a cgroup; the next sample sees it. Whether there was room.
    pub fn add(&self, id: u64) -> bool {
        for probe in 0..PROBES {
            let at = watched::place(id, probe) as usize;
            // SAFETY: `place` is below `ROOM`, which is what was mapped; the program reads each
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
