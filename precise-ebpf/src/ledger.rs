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
    ledger::{BEGUN, CGROUP_ID, CGROUP_SET, Counter, LEASE, OWN, TICK, TIMED_EACH, WORDS},
    stack::none,
};

use crate::{
    read::{Facts, KernelRead, SampleContext, TaskIds, asks, config, element},
    table::TableOutcome,
};

/// The ledger, with one row per possible CPU. The rows are one element, whose size the loader sets.
#[map]
static LEDGER: Array<[u64; WORDS]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The counters of this CPU.
pub struct CpuCounters(&'static mut [u64; WORDS]);

/// Returns the row of this CPU; `None` if it has no row.
#[inline(always)]
pub fn row() -> Option<CpuCounters> {
    // SAFETY: a helper without arguments.
    let cpu = u64::from(unsafe { bpf_get_smp_processor_id() });
    if cpu >= config!(rows) {
        return None;
    }
    let first = element!(LEDGER as [u64; WORDS]);
    // SAFETY: in the element, as the verifier checks; written only by this CPU, on which programs
    // do not nest (see `table`).
    Some(CpuCounters(unsafe { &mut *first.add(cpu as usize) }))
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
    pub fn is_own(&self, ids: TaskIds) -> bool {
        if !asks!(source, has source::REJECT_OWN) {
            return false;
        }
        let helpers = (&raw const self.0[OWN]).cast::<u32>();
        // SAFETY: as for the lease. Each half is a helper, so they may be read one by one.
        let [one, other] = unsafe { [helpers.read_volatile(), helpers.add(1).read_volatile()] };
        [config!(own), one as u64, other as u64].contains(&ids.process)
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
            self.0[CGROUP_SET] = 0;
        }
        true
    }

    /// Returns the cgroup id of the running task, whose `css_set` has this address: the noted one,
    /// or what `find` returns. To be asked after [`Self::in_time`]. See [`CGROUP_SET`].
    #[inline(always)]
    pub fn cgroup_of(&mut self, set: u64, find: impl FnOnce() -> u64) -> u64 {
        if self.0[CGROUP_SET] != set {
            self.0[CGROUP_ID] = find();
            self.0[CGROUP_SET] = set;
        }
        self.0[CGROUP_ID]
    }

    /// Notes when the work for this sample began, if its cost is measured.
    #[inline(always)]
    pub fn begin<A: KernelRead>(&mut self, sample: &SampleContext<A>) {
        if self.is_timed() {
            self.0[BEGUN] = if A::OF_EVENT && asks!(source, has source::TIME_FROM_SAMPLE) {
                sample.time().unwrap_or(0)
            } else {
                now()
            };
        }
    }

    /// Adds the time since [`Self::begin`] to the cost counters, if the cost is measured.
    #[inline(always)]
    pub fn end(&mut self) {
        if self.is_timed() && self.0[BEGUN] != 0 {
            self.0[Counter::Timed.id()] += 1;
            self.0[Counter::TimedNs.id()] += now().wrapping_sub(self.0[BEGUN]);
        }
    }

    /// Returns whether the cost of this sample is measured: of one in [`TIMED_EACH`].
    #[inline(always)]
    fn is_timed(&self) -> bool {
        // SAFETY: a valid reference; volatile because the compiler would keep the number in the
        // frame until the end.
        let seen = unsafe { (&raw const self.0[Counter::Seen.id()]).read_volatile() };
        seen & (TIMED_EACH - 1) == 0
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
        }
        self.count(Counter::Aggregated);
        self.0[Counter::PeriodAggregated.id()] += facts.period;
        if facts.mark.is_guest::<A>() {
            self.count(Counter::InGuest);
        } else if asks!(fields, has field::ADDRESS) && facts.mark.is_none() {
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
