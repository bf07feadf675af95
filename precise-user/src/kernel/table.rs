//! The cell table and the ledger in shared memory: read and cleared without a system call.
//!
//! The table has two halves. The program writes the one that the epoch names; [`Table::flip`] raises the epoch,
//! waits until no program can still be writing into the old one, and hands its cells out.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use precise_common::{
    cell::Cell,
    ledger::{self, WORDS},
};

use super::map_memory::SharedMemory;
use crate::error::SyscallError;

/// `MEMBARRIER_CMD_GLOBAL` of membarrier(2): returns after every CPU has passed a quiescent state of RCU.
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

/// The table of one sampler.
#[derive(Debug)]
pub struct Table {
    cells: SharedMemory,
    ledger: SharedMemory,
    cpus: usize,
    slots: usize,
    epoch: u64,
}

impl Table {
    /// Maps the two maps of a loaded program.
    ///
    /// `cpus` is the number of partitions per half, `slots` the cells of one.
    ///
    /// # Errors
    ///
    /// What mmap(2) says.
    pub fn map(
        table: BorrowedFd<'_>,
        ledger: BorrowedFd<'_>,
        cpus: usize,
        slots: usize,
    ) -> Result<Self, SyscallError> {
        Ok(Self {
            cells: SharedMemory::map(table, 2 * cpus * slots * size_of::<Cell>())?,
            ledger: SharedMemory::map(ledger, cpus * WORDS * 8)?,
            cpus,
            slots,
            epoch: 0,
        })
    }

    /// Bytes of kernel memory that the table takes; constant during a run.
    pub fn memory(&self) -> usize {
        self.cells.len() + self.ledger.len()
    }

    /// Ends the epoch: lets the program write into the other half, waits until nobody writes into the old one, then
    /// hands out `(cpu, cell)` for each cell in use and clears it.
    ///
    /// # Errors
    ///
    /// When the grace period could not be waited for. Then nothing was read, and nothing is lost: the next flip would
    /// still find every cell.
    pub fn flip(&mut self, mut take: impl FnMut(usize, &Cell)) -> Result<(), SyscallError> {
        let old_half = (self.epoch & 1) as usize;
        let next = self.epoch + 1;
        self.announce(next);
        if let Err(error) = grace_period() {
            self.announce(self.epoch);
            return Err(error);
        }
        self.epoch = next;
        let half = self.cpus * self.slots;
        let cells = self.cells.as_ptr().cast::<Cell>();
        for index in 0..half {
            // SAFETY: inside of the mapping; after the grace period no program holds a pointer into this half, so this
            // thread is its only user until the next flip.
            let cell = unsafe { &mut *cells.add(old_half * half + index) };
            if cell.count != 0 {
                take(index / self.slots, cell);
                *cell = Cell::default();
            }
        }
        Ok(())
    }

    /// Tells every CPU's program the epoch. Each reads it once per sample, from the row that its counters are in.
    fn announce(&self, epoch: u64) {
        for cpu in 0..self.cpus {
            self.word(cpu, ledger::EPOCH).store(epoch, Ordering::SeqCst);
        }
    }

    fn word(&self, cpu: usize, id: usize) -> &AtomicU64 {
        let words = self.ledger.as_ptr().cast::<u64>();
        // SAFETY: inside of the mapping, which has `WORDS` aligned words for each of `cpus` CPUs and lives as long as
        // `self`. A word is only ever accessed whole.
        unsafe { AtomicU64::from_ptr(words.add(cpu.min(self.cpus - 1) * WORDS + id % WORDS)) }
    }

    /// A counter of the ledger, summed over CPUs. Exact once the events are disabled.
    pub fn counter(&self, id: usize) -> u64 {
        (0..self.cpus).map(|cpu| self.word(cpu, id).load(Ordering::Relaxed)).sum()
    }

    /// Samples rejected by each of the filter's first `clauses` clauses.
    pub fn rejected(&self, clauses: usize) -> Vec<u64> {
        (0..clauses).map(|clause| self.counter(ledger::REJECTED_FIRST + clause)).collect()
    }
}

/// Returns when every program run that had begun before the call has ended.
///
/// A perf-event program runs under `rcu_read_lock` (kernel/events/core.c, bpf_overflow_handler), so an RCU grace period
/// is what is needed. membarrier's global command is one (kernel/sched/membarrier.c), but refuses with `EINVAL` on
/// kernels with `nohz_full`; then a visit to each CPU does the same: a thread that runs there is no program in the
/// middle of its work.
fn grace_period() -> Result<(), SyscallError> {
    // SAFETY: no pointers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if done == 0 { Ok(()) } else { visit_every_cpu() }
}

fn visit_every_cpu() -> Result<(), SyscallError> {
    // SAFETY: an all-zero CPU set is a valid, empty one.
    let mut own: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of the size that is passed.
    if unsafe { libc::sched_getaffinity(0, size, &mut own) } != 0 {
        return Err(SyscallError::last("sched_getaffinity"));
    }
    // SAFETY: sysconf has no preconditions.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let mut outcome = Ok(());
    for cpu in 0..usize::try_from(cpus).unwrap_or(0).min(libc::CPU_SETSIZE as usize) {
        // SAFETY: as above; `cpu` is below CPU_SETSIZE.
        let moved = unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut one);
            libc::sched_setaffinity(0, size, &one)
        };
        // EINVAL: that CPU is offline, or not in this process's cpuset. An offline one runs no program.
        if moved != 0 && SyscallError::last("sched_setaffinity").errno() != libc::EINVAL {
            outcome = Err(SyscallError::last("sched_setaffinity"));
            break;
        }
    }
    // SAFETY: the set that sched_getaffinity filled.
    unsafe { libc::sched_setaffinity(0, size, &own) };
    outcome
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ways_to_wait_return() {
        super::grace_period().unwrap();
        super::visit_every_cpu().unwrap();
    }
}
