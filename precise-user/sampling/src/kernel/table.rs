//! The cell table and the ledger in shared memory, read and cleared without a system call.
//!
//! The table has two halves. The program writes into the half that the lease names. [`Table::flip`]
//! switches the lease to the other half, waits until no program can still write into the old half,
//! and passes the old half's cells to the caller.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use precise_common::{
    cell::Cell,
    ledger::{self, Counter, WORDS},
};

use super::clock::monotonic_ns;
use super::map_memory::SharedMemory;
use super::stacks::Stacks;
use crate::error::SyscallError;
use precise_records::Chains;

/// `MEMBARRIER_CMD_GLOBAL` of membarrier(2): returns after every CPU has passed an RCU quiescent
/// state.
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

/// The cell table of one sampler.
#[derive(Debug)]
pub struct Table {
    cells: SharedMemory,
    ledger: SharedMemory,
    stacks: Option<Stacks>,
    cpus: usize,
    slots: usize,
    /// The half into which the program writes, 0 or 1.
    half: u64,
    lease: Option<Duration>,
}

impl Table {
    /// Maps the two maps of a loaded program. `stacks` is its table of call chains, if it has one.
    ///
    /// `cpus` is the number of partitions per half, `slots` the number of cells per partition.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(
        table: BorrowedFd<'_>,
        ledger: BorrowedFd<'_>,
        stacks: Option<Stacks>,
        cpus: usize,
        slots: usize,
    ) -> Result<Self, SyscallError> {
        let table = Self {
            cells: SharedMemory::map(table, 2 * cpus * slots * size_of::<Cell>())?,
            ledger: SharedMemory::map(ledger, cpus * WORDS * 8)?,
            stacks,
            cpus,
            slots,
            half: 0,
            lease: None,
        };
        table.announce(0);
        Ok(table)
    }

    /// Sets the lease: from now on, the program discards and counts every sample that is taken
    /// later than `lease` after the last [`Self::flip`], because user space seems to have stopped
    /// reading the table. Without a lease there is no deadline.
    ///
    /// The events' clock must be `CLOCK_MONOTONIC`.
    pub fn set_lease(&mut self, lease: Duration) {
        self.lease = Some(lease);
        self.announce(self.half);
    }

    /// Returns the kernel memory of the table in bytes; constant during a run.
    pub fn memory(&self) -> usize {
        self.cells.len() + self.ledger.len() + self.stacks.as_ref().map_or(0, Stacks::memory)
    }

    /// Ends the epoch: directs the program to the other half, waits until no program writes into
    /// the old half, then passes each used cell to `take` as `(cpu, cell)` and clears it. Returns
    /// the call chains that these cells refer to.
    ///
    /// # Errors
    ///
    /// Returns an error if waiting for the grace period failed. In that case no cell was read and
    /// none is lost: the next flip finds every cell.
    pub fn flip(&mut self, mut take: impl FnMut(usize, &Cell)) -> Result<Chains, SyscallError> {
        let old_half = self.half as usize;
        let next = self.half ^ 1;
        self.announce(next);
        if let Err(error) = grace_period() {
            self.announce(self.half);
            return Err(error);
        }
        self.half = next;
        let half = self.cpus * self.slots;
        let cells = self.cells.as_ptr().cast::<Cell>();
        for index in 0..half {
            // SAFETY: the cell lies inside of the mapping. After the grace period no program holds
            // a pointer into this half, so this thread is its only user until the next flip.
            let cell = unsafe { &mut *cells.add(old_half * half + index) };
            if cell.count != 0 {
                take(index / self.slots, cell);
                *cell = Cell::default();
            }
        }
        Ok(self.stacks.as_mut().map(|stacks| stacks.take(old_half)).unwrap_or_default())
    }

    /// Publishes the half and the new deadline to the program on every CPU. The program reads both
    /// once per sample, as one word, from the row of its counters.
    fn announce(&self, half: u64) {
        let deadline = self.lease.map_or(u64::MAX, |lease| {
            monotonic_ns().saturating_add(u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX))
        });
        for cpu in 0..self.cpus {
            self.word(cpu, ledger::LEASE).store(deadline & !1 | half & 1, Ordering::SeqCst);
        }
    }

    fn word(&self, cpu: usize, id: usize) -> &AtomicU64 {
        let words = self.ledger.as_ptr().cast::<u64>();
        // SAFETY: the word lies inside of the mapping, which has `WORDS` aligned words for each of
        // `cpus` CPUs and lives as long as `self`. A word is only ever accessed whole.
        unsafe { AtomicU64::from_ptr(words.add(cpu.min(self.cpus - 1) * WORDS + id % WORDS)) }
    }

    /// Returns a counter of the ledger, summed over all CPUs with wrapping. Exact once the events
    /// are disabled.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.sum(counter.id())
    }

    /// Returns a counter of the ledger per CPU.
    pub fn by_cpu(&self, counter: Counter) -> Vec<u64> {
        self.words(counter.id()).collect()
    }

    /// Returns the number of samples rejected by each of the filter's first `clauses` clauses.
    pub fn rejected(&self, clauses: usize) -> Vec<u64> {
        (0..clauses).map(|clause| self.sum(ledger::REJECTED_FIRST + clause)).collect()
    }

    fn sum(&self, id: usize) -> u64 {
        self.words(id).fold(0, u64::wrapping_add)
    }

    /// Iterates over the word `id` of each CPU's row.
    fn words(&self, id: usize) -> impl Iterator<Item = u64> {
        (0..self.cpus).map(move |cpu| self.word(cpu, id).load(Ordering::Relaxed))
    }
}

/// Waits until every program run that started before the call has ended.
///
/// A perf-event program runs under `rcu_read_lock` (kernel/events/core.c, bpf_overflow_handler), so
/// an RCU grace period is enough. membarrier's global command waits for one
/// (kernel/sched/membarrier.c), but fails with `EINVAL` on kernels with `nohz_full`. In that case
/// this thread visits each CPU: when it runs there, every program run that had started on that CPU
/// has ended.
fn grace_period() -> Result<(), SyscallError> {
    // SAFETY: the call takes no pointers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if done == 0 { Ok(()) } else { visit_every_cpu() }
}

fn visit_every_cpu() -> Result<(), SyscallError> {
    // SAFETY: an all-zero CPU set is a valid, empty one.
    let mut own: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set has the size that is passed.
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
        // EINVAL: the CPU is offline, or not in this process's cpuset. An offline CPU runs no
        // program.
        if moved != 0 && SyscallError::last("sched_setaffinity").errno() != libc::EINVAL {
            outcome = Err(SyscallError::last("sched_setaffinity"));
            break;
        }
    }
    // SAFETY: sched_getaffinity filled this set.
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
