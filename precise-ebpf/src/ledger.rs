//! Step 5: the ledger. Every sample ends in exactly one of the counters that must add up.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::map,
    maps::Array,
};
use precise_common::{
    cell::Key,
    config::{field, key},
    data_src::DataSource,
    ledger as id,
    stack::none,
};

use crate::{
    read::{Access, Facts, Sample, asks},
    table::Outcome,
};

/// One row per possible CPU. The loader sets their number.
#[map]
static LEDGER: Array<[u64; id::WORDS]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// This CPU's counters.
pub struct Row(&'static mut [u64; id::WORDS]);

/// `None` on a CPU without a row.
#[inline(always)]
pub fn row() -> Option<Row> {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // SAFETY: a valid pointer into the map, written only by this CPU; perf-event programs do not nest on a CPU.
    LEDGER.get_ptr_mut(cpu).map(|row| Row(unsafe { &mut *row }))
}

impl Row {
    /// The deadline and the half of the table, as user space wrote them: [`id::LEASE`].
    #[inline(always)]
    pub fn lease(&self) -> u64 {
        // SAFETY: a valid reference; volatile as user space writes the word at any time.
        unsafe { (&raw const self.0[id::LEASE]).read_volatile() }
    }

    /// Measures what a sample cost that was prepared at `since`, if it is its turn.
    #[inline(always)]
    pub fn time(&mut self, since: u64) {
        if self.0[id::SEEN] & (id::TIMED_EACH - 1) == 0 {
            self.0[id::TIMED] += 1;
            // SAFETY: a helper without arguments.
            self.0[id::TIMED_NS] += unsafe { bpf_ktime_get_ns() }.wrapping_sub(since);
        }
    }

    /// A sample arrived.
    #[inline(always)]
    pub fn seen<A: Access>(&mut self, sample: &Sample<A>) {
        self.0[id::SEEN] += 1;
        self.0[id::PERIOD_SEEN] += sample.period();
        if asks!(fields, has field::EXACT) && sample.exact().unwrap_or(false) {
            self.0[id::EXACT] += 1;
        }
    }

    /// One more in this counter.
    #[inline(always)]
    pub fn count(&mut self, counter: usize) {
        self.0[counter % id::WORDS] += 1;
    }

    /// It passed the filter, and this became of it.
    #[inline(always)]
    pub fn added(&mut self, outcome: Outcome, cell: &Key, facts: &Facts) {
        match outcome {
            Outcome::Added => {}
            Outcome::Full => return self.count(id::TABLE_FULL),
            Outcome::Missing => return self.count(id::TABLE_MISSING),
        }
        self.count(id::AGGREGATED);
        self.0[id::PERIOD_AGGREGATED] += facts.period;
        if asks!(fields, has field::ADDRESS) && facts.address == 0 {
            self.count(id::NO_ADDRESS);
        }
        if asks!(fields, has field::DATA_SRC) && DataSource::is_na(facts.data_src) {
            self.count(id::NO_DATA_SOURCE);
        }
        if asks!(fields, has field::LATENCY) && facts.latency == 0 {
            self.count(id::NO_LATENCY);
        }
        if asks!(key, has key::OUTCOME) && facts.outcome.is_none() {
            self.count(id::NO_RAW);
        }
        if asks!(key, has key::STACK) {
            match cell.address {
                none::FULL => self.count(id::STACK_FULL),
                none::NOT_GIVEN => self.count(id::STACK_NOT_GIVEN),
                none::UNREADABLE => self.count(id::STACK_UNREADABLE),
                _ => {}
            }
        }
    }
}
