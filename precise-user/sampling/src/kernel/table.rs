//! The cell table and the ledger in shared memory, read and cleared without a system call.
//!
//! The table has two halves. The program writes into the half that the lease names.
//! [`flip`] switches the lease to the other half and waits until no program can still write into
//! the old half; then [`CellTable::take`] passes the old half's cells to the caller.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use precise_common::{
    cell::Cell,
    ledger::{self, Counter, WORDS, lease, own},
};

use super::clock::monotonic_ns;
use super::map_memory::SharedMemory;
use super::stacks::Stacks;
use crate::error::SyscallError;
use crate::machine::{CpuState, Root};
use precise_records::Chains;

/// `MEMBARRIER_CMD_GLOBAL` of membarrier(2): returns after every CPU has passed an RCU quiescent
/// state.
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

/// How many cells or call chains of a partition are looked at to estimate how many are used: the
/// estimate is off by 6 percentage points (standard error, half of them used).
pub(super) const LOOKED_AT: usize = 64;

/// The cell table of one sampler.
#[derive(Debug)]
pub struct CellTable {
    cells: SharedMemory,
    ledger: SharedMemory,
    stacks: Option<Stacks>,
    /// The CPU of each partition of a half.
    partitions: Vec<u32>,
    /// The number of rows of the ledger: one for each possible CPU.
    rows: usize,
    slots: usize,
    /// The half into which the program writes, 0 or 1.
    half: u64,
    lease: Option<Duration>,
    /// The number of samples that each partition had in its cells when the half in use began.
    before: Vec<u64>,
}

impl CellTable {
    /// Maps the two maps of a loaded program. `stacks` is its table of call chains, if it has one.
    ///
    /// `partitions` has the CPU of each partition of a half, `rows` is the number of rows of the
    /// ledger, `slots` the number of cells per partition.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(
        table: BorrowedFd<'_>,
        ledger: BorrowedFd<'_>,
        stacks: Option<Stacks>,
        partitions: Vec<u32>,
        rows: usize,
        slots: usize,
    ) -> Result<Self, SyscallError> {
        let table = Self {
            cells: SharedMemory::map(table, 2 * partitions.len() * slots * size_of::<Cell>())?,
            ledger: SharedMemory::map(ledger, rows * WORDS * 8)?,
            stacks,
            before: vec![0; partitions.len()],
            partitions,
            rows,
            slots,
            half: 0,
            lease: None,
        };
        // The rows of CPUs that are not sampled would name the first partition.
        let none = lease::pack(u64::MAX, lease::NO_PARTITION, 0);
        (0..table.rows).for_each(|cpu| table.word(cpu, ledger::LEASE).store(none, Ordering::SeqCst));
        table.set_own(own::pack(own::NONE, own::NONE));
        table.announce(0);
        Ok(table)
    }

    /// Sets the lease: from now on, the program discards and counts every sample that is taken
    /// later than `lease` after the last [`flip`], because user space seems to have stopped
    /// reading the table. Without a lease there is no deadline.
    ///
    /// The events' clock must be `CLOCK_MONOTONIC`.
    pub fn set_lease(&mut self, lease: Duration) {
        self.lease = Some(lease);
        self.announce(self.half);
    }

    /// Sets the helper processes of this one, packed by [`own::pack`]: the program counts their
    /// samples as [`Counter::Own`] if the run leaves them out.
    pub fn set_own(&self, helpers: u64) {
        (0..self.rows).for_each(|cpu| self.word(cpu, ledger::OWN).store(helpers, Ordering::Relaxed));
    }

    /// Returns the kernel memory of the table in bytes; constant during a run.
    pub fn memory(&self) -> usize {
        self.cells.len() + self.ledger.len() + self.stacks.as_ref().map_or(0, Stacks::memory)
    }

    /// Passes each used cell of the half that the last [`flip`] ended to `take`, as `(cpu, cell)`,
    /// and clears it. Returns the call chains that these cells refer to.
    pub fn take(&mut self, mut take: impl FnMut(usize, &Cell)) -> Chains {
        let old_half = (self.half ^ 1) as usize;
        let cells = self.cells.as_ptr().cast::<Cell>();
        for (partition, cpu) in self.partitions.iter().enumerate() {
            let first = lease::place_of(partition, old_half) * self.slots;
            for index in first..first + self.slots {
                // SAFETY: the cell lies inside of the mapping. No program writes into the half that
                // is not in use: `flip` has waited for those that did. So this thread is its only
                // user until the next flip.
                let cell = unsafe { &mut *cells.add(index) };
                if cell.count != 0 {
                    take(*cpu as usize, cell);
                    *cell = Cell::default();
                }
            }
        }
        self.stacks.as_mut().map(|stacks| stacks.take(old_half)).unwrap_or_default()
    }

    /// Estimates how full the fullest partition of the half in use is, 0 to 1: its cells, or its
    /// call chains if they are nearer to their limit.
    ///
    /// Keys are hashed, so a few cells at equal distances stand for all. They are looked at only if
    /// the partition has taken enough samples since the last [`flip`], so that the usual case
    /// reads one counter for each CPU.
    pub fn fill(&self) -> f64 {
        let enough = self.least_samples() as u64 / 8;
        let partitions = self.aggregated().zip(&self.before).enumerate();
        let grown = partitions.filter(|(_, (now, before))| now.saturating_sub(**before) > enough);
        grown.map(|(partition, _)| self.fill_of(partition)).fold(0.0, f64::max)
    }

    /// Returns the least number of samples that fill one partition of a half: its cells, or its
    /// call chains.
    pub fn least_samples(&self) -> usize {
        self.stacks.as_ref().map_or(self.slots, |stacks| stacks.slots().min(self.slots))
    }

    /// Estimates how full one partition of the half in use is.
    fn fill_of(&self, partition: usize) -> f64 {
        let first = lease::place_of(partition, self.half as usize) * self.slots;
        let step = (self.slots / LOOKED_AT).max(1);
        let looked_at = (0..self.slots).step_by(step);
        let cells = self.cells.as_ptr().cast::<Cell>();
        let used = looked_at.clone().filter(|index| {
            // SAFETY: the cell lies inside of the mapping. The program may write to it, so the
            // number is read whole and nothing else of the cell is.
            let count = unsafe { AtomicU32::from_ptr(&raw mut (*cells.add(first + index)).count) };
            count.load(Ordering::Relaxed) != 0
        });
        let of_cells = used.count() as f64 / looked_at.len().max(1) as f64;
        let of_chains = self.stacks.as_ref().map_or(0.0, |stacks| stacks.fill(self.half as usize, partition));
        of_cells.max(of_chains)
    }

    /// Iterates over the number of samples that each partition has taken into its cells.
    fn aggregated(&self) -> impl Iterator<Item = u64> {
        let word = |cpu: &u32| self.word(*cpu as usize, Counter::Aggregated.id()).load(Ordering::Relaxed);
        self.partitions.iter().map(word)
    }

    /// Publishes the half and the new deadline to the program on every CPU. The program reads both
    /// once per sample, as one word, from the row of its counters.
    fn announce(&self, half: u64) {
        let deadline = self.lease.map_or(u64::MAX, |lease| {
            monotonic_ns().saturating_add(u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX))
        });
        for (partition, cpu) in self.partitions.iter().enumerate() {
            let word = lease::pack(deadline, partition as u64, half);
            self.word(*cpu as usize, ledger::LEASE).store(word, Ordering::SeqCst);
        }
    }

    fn word(&self, cpu: usize, id: usize) -> &AtomicU64 {
        let words = self.ledger.as_ptr().cast::<u64>();
        // SAFETY: the word lies inside of the mapping, which has `WORDS` aligned words in each of
        // `rows` rows and lives as long as `self`. A word is only ever accessed whole.
        unsafe { AtomicU64::from_ptr(words.add(cpu.min(self.rows - 1) * WORDS + id % WORDS)) }
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
        (0..clauses).map(|clause| self.sum(ledger::rejected(clause))).collect()
    }

    fn sum(&self, id: usize) -> u64 {
        self.words(id).fold(0, u64::wrapping_add)
    }

    /// Iterates over the word `id` of each CPU's row.
    fn words(&self, id: usize) -> impl Iterator<Item = u64> {
        (0..self.rows).map(move |cpu| self.word(cpu, id).load(Ordering::Relaxed))
    }
}

/// Ends an epoch of these tables: directs their programs to the other half of each table, then
/// waits once until no program writes into an old half. A table that comes with `true` is at rest:
/// its program cannot run any more, so it needs no wait.
///
/// # Errors
///
/// Returns an error if waiting failed. In that case no cell is lost: the next call finds every
/// cell.
pub fn flip<'a>(tables: impl IntoIterator<Item = (&'a mut CellTable, bool)>) -> Result<(), SyscallError> {
    let mut cpus = Vec::new();
    let told: Vec<_> = tables
        .into_iter()
        .map(|(table, is_at_rest)| {
            let before = table.aggregated().collect();
            table.announce(table.half ^ 1);
            if !is_at_rest {
                cpus.extend_from_slice(&table.partitions);
            }
            (table, before)
        })
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let waited = if cpus.is_empty() { Ok(()) } else { grace_period(&cpus) };
    for (table, before) in told {
        if waited.is_ok() {
            (table.half, table.before) = (table.half ^ 1, before);
        } else {
            table.announce(table.half);
        }
    }
    waited
}

/// Waits until every program run that started before the call on one of `cpus` has ended.
///
/// A perf-event program runs under `rcu_read_lock` (kernel/events/core.c, bpf_overflow_handler), so
/// an RCU grace period is enough. membarrier's global command waits for one
/// (kernel/sched/membarrier.c), but fails with `EINVAL` on kernels with `nohz_full`. In that case
/// this thread visits each CPU: when it runs there, every program run that had started on that CPU
/// has ended.
fn grace_period(cpus: &[u32]) -> Result<(), SyscallError> {
    // SAFETY: the call takes no pointers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if done == 0 { Ok(()) } else { visit(cpus, is_online) }
}

/// Lets this thread run on each of `cpus` that is online.
///
/// # Errors
///
/// Returns an error if a CPU is online and this thread may not run there, because a program may
/// still write into the cells of that CPU.
fn visit(cpus: &[u32], is_online: impl Fn(u32) -> bool) -> Result<(), SyscallError> {
    let own = CpuSet::of_this_thread()?;
    let visited = cpus.iter().try_for_each(|cpu| match CpuSet::one(*cpu).apply() {
        // The CPU is offline, or not in this process's cpuset. An offline CPU runs no program.
        Err(error) if error.errno() == libc::EINVAL && !is_online(*cpu) => Ok(()),
        Err(error) if error.errno() == libc::EINVAL => Err(SyscallError {
            source: std::io::Error::other(format!(
                "CPU {cpu} is sampled, but it is not in the cpuset of this process, and this kernel \
                 (nohz_full) has no other way to wait for its programs"
            )),
            ..error
        }),
        other => other,
    });
    // The cpuset may have changed meanwhile. The kernel then lets this thread run on all of it, and
    // what the visits found still holds.
    let restored = own.apply();
    visited.and_then(|()| {
        restored.or_else(|error| if error.errno() == libc::EINVAL { Ok(()) } else { Err(error) })
    })
}

/// Returns whether a CPU is online. A CPU whose state cannot be read counts as online, which never
/// skips a CPU that runs programs.
fn is_online(cpu: u32) -> bool {
    Root::default().cpus(CpuState::Online).map_or(true, |online| online.contains(&cpu))
}

/// A set of CPUs of any size, as the kernel reads it: one bit for each CPU. `cpu_set_t` ends at
/// 1,024 CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CpuSet(Vec<u64>);

impl CpuSet {
    /// The largest set that [`Self::of_this_thread`] asks for: 65,536 CPUs. On x86, Linux has at
    /// most 8,192.
    const MOST_WORDS: usize = 1 << 10;

    /// Returns the CPUs on which this thread may run.
    fn of_this_thread() -> Result<Self, SyscallError> {
        let mut words = vec![0u64; 16];
        loop {
            let bytes = size_of_val(&words[..]);
            // SAFETY: the buffer has the size that is passed.
            if unsafe { libc::sched_getaffinity(0, bytes, words.as_mut_ptr().cast()) } == 0 {
                return Ok(Self(words));
            }
            let error = SyscallError::last("sched_getaffinity");
            // EINVAL: the kernel's sets are larger.
            if error.errno() != libc::EINVAL || words.len() >= Self::MOST_WORDS {
                return Err(error);
            }
            words = vec![0; 2 * words.len()];
        }
    }

    fn one(cpu: u32) -> Self {
        let mut words = vec![0; cpu as usize / 64 + 1];
        words[cpu as usize / 64] = 1 << (cpu % 64);
        Self(words)
    }

    /// Lets this thread run on these CPUs only.
    fn apply(&self) -> Result<(), SyscallError> {
        // SAFETY: the buffer has the size that is passed.
        let set = unsafe { libc::sched_setaffinity(0, size_of_val(&self.0[..]), self.0.as_ptr().cast()) };
        if set == 0 { Ok(()) } else { Err(SyscallError::last("sched_setaffinity")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_wait_return() {
        let online = Root::default().cpus(CpuState::Online).unwrap();
        grace_period(&online).unwrap();
        let own = CpuSet::of_this_thread().unwrap();
        let allowed: Vec<u32> =
            online.into_iter().filter(|cpu| own.0[*cpu as usize / 64] >> (cpu % 64) & 1 != 0).collect();
        assert!(!allowed.is_empty());
        visit(&allowed, is_online).unwrap();
        assert_eq!(CpuSet::of_this_thread().unwrap(), own);
    }

    #[test]
    fn a_cpu_that_cannot_be_visited_is_offline_or_an_error() {
        // The kernel refuses sets of CPUs that it does not have as it refuses those of offline CPUs
        // and those outside of the cpuset.
        for cpu in [8192, 20_000] {
            visit(&[0, cpu], |_| false).unwrap();
            let error = visit(&[cpu], |_| true).unwrap_err();
            let said = format!("{error}: {}", error.source);
            assert!(said.contains(&format!("CPU {cpu} is sampled")) && said.contains("cpuset"), "{said}");
        }
    }

    #[test]
    fn sets_have_any_size() {
        assert_eq!(CpuSet::one(0).0, [1]);
        assert_eq!(CpuSet::one(64).0, [0, 1]);
        let large = CpuSet::one(5000);
        assert_eq!((large.0.len(), large.0[78]), (79, 1 << 8));
    }
}
