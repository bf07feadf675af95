//! The table of call chains in shared memory. It has two halves like the cell table, and is read in
//! the same grace period.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use precise_common::{
    ledger::lease,
    stack::{ENTRIES, StackSlot},
};
use precise_records::Chains;

use super::map_memory::SharedMemory;
use super::table::LOOKED_AT;
use crate::error::SyscallError;

/// The table of call chains of one sampler.
#[derive(Debug)]
pub struct Stacks {
    memory: SharedMemory,
    partitions: usize,
    /// The number of slots in one partition of a half.
    slots: usize,
}

impl Stacks {
    /// Maps the call-chain map of a loaded program: `slots` chains in each of `partitions` in each
    /// half.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(map: BorrowedFd<'_>, partitions: usize, slots: usize) -> Result<Self, SyscallError> {
        let bytes = 2 * partitions * slots * size_of::<StackSlot>();
        Ok(Self { memory: SharedMemory::map(map, bytes)?, partitions, slots })
    }

    /// Returns the kernel memory of the table in bytes.
    pub fn memory(&self) -> usize {
        self.memory.len()
    }

    /// Returns the number of chains that a partition has room for.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Estimates how full one partition of a half is, 0 to 1.
    pub(super) fn fill(&self, half: usize, partition: usize) -> f64 {
        let first = lease::place_of(partition, half & 1) * self.slots;
        let looked_at = (0..self.slots).step_by((self.slots / LOOKED_AT).max(1));
        let slots = self.memory.as_ptr().cast::<StackSlot>();
        let used = looked_at.clone().filter(|index| {
            // SAFETY: the slot lies inside of the mapping. The program may write to it, so the id
            // is read whole and nothing else of the slot is.
            let id = unsafe { AtomicU64::from_ptr(&raw mut (*slots.add(first + index)).id) };
            id.load(Ordering::Relaxed) != 0
        });
        used.count() as f64 / looked_at.len().max(1) as f64
    }

    /// Takes the chains of a half into which no program writes any more, and clears the half.
    pub(super) fn take(&mut self, half: usize) -> Chains {
        let mut chains = Chains::default();
        let slots = self.memory.as_ptr().cast::<StackSlot>();
        let halves = (0..self.partitions).map(|partition| lease::place_of(partition, half & 1));
        for index in halves.flat_map(|half| half * self.slots..(half + 1) * self.slots) {
            // SAFETY: the slot lies inside of the mapping. The caller has waited for the programs
            // that wrote into this half, so this thread is its only user.
            let slot = unsafe { &mut *slots.add(index) };
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
