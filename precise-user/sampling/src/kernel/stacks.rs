//! The table of call chains in shared memory. It has two halves like the cell table, and is read in
//! the same grace period.

use std::{os::fd::BorrowedFd, sync::Arc};

use precise_common::stack::{ENTRIES, Slot};
use precise_records::Chains;

use super::map_memory::SharedMemory;
use crate::error::SyscallError;

/// The table of call chains of one sampler.
#[derive(Debug)]
pub struct Stacks {
    slots: SharedMemory,
    /// The number of slots in one half.
    count: usize,
}

impl Stacks {
    /// Maps the call-chain map of a loaded program: `slots` chains in each of `partitions` in each
    /// half.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(map: BorrowedFd<'_>, partitions: usize, slots: usize) -> Result<Self, SyscallError> {
        let count = partitions * slots;
        Ok(Self { slots: SharedMemory::map(map, 2 * count * size_of::<Slot>())?, count })
    }

    /// Returns the kernel memory of the table in bytes.
    pub fn memory(&self) -> usize {
        self.slots.len()
    }

    /// Takes the chains of a half into which no program writes any more, and clears the half.
    pub(super) fn take(&mut self, half: usize) -> Chains {
        let mut chains = Chains::default();
        let first = self.slots.as_ptr().cast::<Slot>();
        for index in 0..self.count {
            // SAFETY: the slot lies inside of the mapping. The caller has waited for the programs
            // that wrote into this half, so this thread is its only user.
            let slot = unsafe { &mut *first.add((half & 1) * self.count + index) };
            if slot.id != 0 {
                let length = usize::try_from(slot.length).unwrap_or(ENTRIES).min(ENTRIES);
                // Two CPUs that ran the same code may have the same chain.
                chains.entry(slot.id).or_insert_with(|| Arc::from(&slot.entries[..length]));
                slot.id = 0;
            }
        }
        chains
    }
}
