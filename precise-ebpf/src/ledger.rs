//! Step 5: the ledger. Every sample ends in exactly one of the counters that must add up.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::generated::{bpf_get_smp_processor_id, bpf_jiffies64, bpf_ktime_get_ns},
    macros::map,
    maps::Array,
};
use precise_common::{
    cell::CellKey,
    config::{field, key, source},
    data_src::DataSource,
    ledger::{Counter, LEASE, OWN, TICK, TIMED_EACH, WORDS, own},
    stack::none,
};

use crate::{
    read::{Facts, KernelRead, SampleContext, asks, config},
    table::TableOutcome,
};

/// The ledger, with one row per possible CPU. The loader sets the number of rows.
#[map]
static LEDGER: Array<[u64; WORDS]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The counters of this CPU.
pub struct CpuCounters(&'static mut [u64; WORDS]);

/// Returns the row of this CPU; `None` if it has no row.
#[inline(always)]
pub fn row() -> Option<CpuCounters> {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // SAFETY: a valid pointer into the map, written only by this CPU; programs do not nest on a
    // CPU (see `table`).
    LEDGER.get_ptr_mut(cpu).map(|row| CpuCounters(unsafe { &mut *row }))
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
#[inline(always)]
fn now() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_ns() }
}

impl CpuCounters {
    /// Returns the lease, which user space writes: the deadline and the half of the table. See
    /// [`LEASE`].
    #[inline(always)]
    pub fn lease(&self) -> u64 {
        // SAFETY: a valid reference; volatile because user space may write the word at any time.
        unsafe { (&raw const self.0[LEASE]).read_volatile() }
    }

    /// Returns whether the run leaves out the profiler's own samples and this is one of them, by
    /// its ids. Asked only about samples that passed the filter, so that rejecting costs nothing
    /// more.
    #[inline(always)]
    pub fn is_own(&self, ids: u64) -> bool {
        if !asks!(source, has source::REJECT_OWN) {
            return false;
        }
        let pid = ids >> 32;
        // SAFETY: as for the lease.
        let helpers = unsafe { (&raw const self.0[OWN]).read_volatile() };
        pid == config!(own) || own::has(helpers, pid)
    }

    /// Returns whether user space has renewed the lease in time. See [`TICK`].
    #[inline(always)]
    pub fn in_time(&mut self, lease: u64) -> bool {
        // SAFETY: a helper without arguments; the verifier makes a load of it.
        let tick = unsafe { bpf_jiffies64() };
        if self.0[TICK] != tick {
            if now() > lease {
                return false;
            }
            self.0[TICK] = tick;
        }
        true
    }

    /// Returns when the work for this sample began, in nanoseconds, for every 64th sample; 0 for
    /// the others, whose cost is not measured.
    #[inline(always)]
    pub fn begun<A: KernelRead>(&self, sample: &SampleContext<A>) -> u64 {
        if self.0[Counter::Seen.id()] & (TIMED_EACH - 1) != 0 {
            return 0;
        }
        if A::OF_EVENT && asks!(source, has source::TIME_FROM_SAMPLE) {
            sample.time().unwrap_or(0)
        } else {
            now()
        }
    }

    /// Adds the time since `begun` (see [`Self::begun`]) to the cost counters.
    #[inline(always)]
    pub fn time(&mut self, begun: u64) {
        if begun != 0 {
            self.0[Counter::Timed.id()] += 1;
            self.0[Counter::TimedNs.id()] += now().wrapping_sub(begun);
        }
    }

    /// Counts a sample that arrived. Returns its period.
    #[inline(always)]
    pub fn seen<A: KernelRead>(&mut self, sample: &SampleContext<A>) -> u64 {
        self.0[Counter::Seen.id()] += 1;
        let period = sample.period();
        self.0[Counter::PeriodSeen.id()] += period;
        if asks!(source, has source::PERIOD_FROM_EVENT) && sample.is_idle() {
            self.0[Counter::PeriodIdle.id()] += period;
        }
        if asks!(fields, has field::EXACT) && sample.exact() {
            self.0[Counter::Exact.id()] += 1;
        }
        period
    }

    /// Counts one sample in `counter`.
    #[inline(always)]
    pub fn count(&mut self, counter: Counter) {
        self.count_at(counter.id());
    }

    /// Counts one sample in the word `id`: of a counter, or of a clause of the filter.
    #[inline(always)]
    pub fn count_at(&mut self, id: usize) {
        self.0[id % WORDS] += 1;
    }

    /// Counts a sample that passed the filter, by its outcome.
    #[inline(always)]
    pub fn added<A: KernelRead>(&mut self, outcome: TableOutcome, cell: &CellKey, facts: &Facts) {
        match outcome {
            TableOutcome::Added => {}
            TableOutcome::Full => return self.count(Counter::TableFull),
            TableOutcome::Missing => return self.count(Counter::TableMissing),
        }
        self.count(Counter::Aggregated);
        self.0[Counter::PeriodAggregated.id()] += facts.period;
        if facts.guest.ran::<A>() {
            self.count(Counter::InGuest);
        } else if asks!(fields, has field::ADDRESS) && facts.address == 0 {
            self.count(Counter::NoAddress);
        }
        if asks!(fields, has field::DATA_SRC) && DataSource::is_na(facts.data_src) {
            self.count(Counter::NoDataSource);
        }
        if asks!(fields, has field::LATENCY) && facts.latency == 0 {
            self.count(Counter::NoLatency);
        }
        if asks!(key, has key::OUTCOME) && facts.outcome.is_none() {
            self.count(Counter::NoRaw);
        }
        if asks!(key, has key::STACK) {
            match cell.address {
                none::FULL => self.count(Counter::StackFull),
                none::NOT_GIVEN => self.count(Counter::StackNotGiven),
                none::UNREADABLE => self.count(Counter::StackUnreadable),
                _ => {}
            }
        }
    }

    /// Returns all words of the row.
    #[inline(always)]
    pub fn words(&self) -> &[u64; WORDS] {
        self.0
    }
}
