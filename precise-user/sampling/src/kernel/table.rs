//! The cell table and the ledger in shared memory: read and cleared without a system call.
//!
//! The table has two halves. The program writes the one that the lease names; [`Table::flip`] names
//! the other one, waits until no program can still be writing into the old one, and hands its cells
//! out.

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

/// `MEMBARRIER_CMD_GLOBAL` of membarrier(2): returns after every CPU has passed a quiescent state
/// of RCU.
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

/// The table of one sampler.
#[derive(Debug)]
pub struct Table {
    cells: SharedMemory,
    ledger: SharedMemory,
    stacks: Option<Stacks>,
    cpus: usize,
    slots: usize,
    /// The half that the program writes, 0 or 1.
    half: u64,
    lease: Option<Duration>,
}

impl Table {
    /// Maps the two maps of a loaded program; `stacks` is its table of call chains, where it takes
    /// any.
    ///
    /// `cpus` is the number of partitions per half, `slots` the cells of one.
    ///
    /// # Errors
    ///
    /// What mmap(2) says.
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

    /// From now on, the program keeps nothing that comes later than so long after the last
    /// [`Self::flip`]: a user space that is stopped does not read it. Samples that come too late
    /// are counted. Without a lease there is no deadline.
    ///
    /// The events' clock must be `CLOCK_MONOTONIC`.
    pub fn set_lease(&mut self, lease: Duration) {
        self.lease = Some(lease);
        self.announce(self.half);
    }

    /// Bytes of kernel memory that the table takes; constant during a run.
    pub fn memory(&self) -> usize {
        self.cells.len() + self.ledger.len() + self.stacks.as_ref().map_or(0, Stacks::memory)
    }

    /// Ends the epoch: lets the program write into the other half, waits until nobody writes into
    /// the old one, then hands out `(cpu, cell)` for each cell in use and clears it. Returns the
    /// call chains that these cells refer to.
    ///
    /// # Errors
    ///
    /// When the grace period could not be waited for. Then nothing was read, and nothing is lost:
    /// the next flip would still find every cell.
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
            // SAFETY: inside of the mapping; after the grace period no program holds a pointer into
            // this half, so this thread is its only user until the next flip.
            let cell = unsafe { &mut *cells.add(old_half * half + index) };
            if cell.count != 0 {
                take(index / self.slots, cell);
                *cell = Cell::default();
            }
        }
        Ok(self.stacks.as_mut().map(|stacks| stacks.take(old_half)).unwrap_or_default())
    }

    /// Tells every CPU's program the half, and renews its deadline. Each reads both once per
    /// sample, in one word, from the row that its counters are in.
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
        // SAFETY: inside of the mapping, which has `WORDS` aligned words for each of `cpus` CPUs
        // and lives as long as `self`. A word is only ever accessed whole.
        unsafe { AtomicU64::from_ptr(words.add(cpu.min(self.cpus - 1) * WORDS + id % WORDS)) }
    }

    /// A counter of the ledger, summed over CPUs as the program counts, which wraps. Exact once the
    /// events are disabled.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.sum(counter.id())
    }

    /// The same, by CPU.
    pub fn by_cpu(&self, counter: Counter) -> Vec<u64> {
        self.words(counter.id()).collect()
    }

    /// Samples rejected by each of the filter's first `clauses` clauses.
    pub fn rejected(&self, clauses: usize) -> Vec<u64> {
        (0..clauses).map(|clause| self.sum(ledger::REJECTED_FIRST + clause)).collect()
    }

    fn sum(&self, id: usize) -> u64 {
        self.words(id).fold(0, u64::wrapping_add)
    }

    /// The word `id` of each CPU's row.
    fn words(&self, id: usize) -> impl Iterator<Item = u64> {
        (0..self.cpus).map(move |cpu| self.word(cpu, id).load(Ordering::Relaxed))
    }
}

/// Returns when every program run that had begun before the call has ended.
///
/// A perf-event program runs under `rcu_read_lock` (kernel/events/core.c, bpf_overflow_handler), so
/// an RCU grace period is what is needed. membarrier's global command is one
/// (kernel/sched/membarrier.c), but refuses with `EINVAL` on kernels with `nohz_full`; then a visit
/// to each CPU does the same: a thread that runs there is no program in the middle of its work.
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
        // EINVAL: that CPU is offline, or not in this process's cpuset. An offline one runs no
        // program.
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
