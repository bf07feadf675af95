//! Step 5: the ledger. Every sample ends in exactly one of the counters that must add up.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE, helpers::generated::bpf_get_smp_processor_id, macros::map, maps::Array,
};
use precise_common::{
    config::{MAX_CLAUSES, field},
    data_src::DataSource,
    ledger as id,
};

use crate::{
    read::{Access, Sample, config},
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
    /// The current epoch, as user space wrote it.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        // SAFETY: a valid reference; volatile as user space writes the word at any time.
        unsafe { (&raw const self.0[id::EPOCH]).read_volatile() }
    }

    /// The sample's record could not be read.
    #[inline(always)]
    pub fn unreadable(&mut self) {
        self.0[id::SEEN] += 1;
        self.0[id::READ_FAILED] += 1;
    }

    /// A sample arrived.
    #[inline(always)]
    pub fn seen<A: Access>(&mut self, sample: &Sample<A>) {
        self.0[id::SEEN] += 1;
        self.0[id::PERIOD_SEEN] += sample.period;
        if config!(fields) & field::EXACT as u64 != 0 && sample.exact {
            self.0[id::EXACT] += 1;
        }
    }

    /// The filter rejected it.
    #[inline(always)]
    pub fn rejected(&mut self, clause: u64) {
        self.0[id::REJECTED_FIRST + clause as usize % MAX_CLAUSES] += 1;
    }

    /// It passed the filter.
    #[inline(always)]
    pub fn added<A: Access>(&mut self, outcome: Outcome, sample: &Sample<A>) {
        match outcome {
            Outcome::Added => {}
            Outcome::Full => {
                self.0[id::TABLE_FULL] += 1;
                return;
            }
            Outcome::Missing => {
                self.0[id::TABLE_MISSING] += 1;
                return;
            }
        }
        self.0[id::AGGREGATED] += 1;
        self.0[id::PERIOD_AGGREGATED] += sample.period;
        if config!(fields) & field::ADDRESS as u64 != 0 && sample.address == 0 {
            self.0[id::NO_ADDRESS] += 1;
        }
        if config!(fields) & field::DATA_SRC as u64 != 0 && DataSource::is_na(sample.data_src) {
            self.0[id::NO_DATA_SOURCE] += 1;
        }
        if config!(fields) & field::LATENCY as u64 != 0 && sample.latency == 0 {
            self.0[id::NO_LATENCY] += 1;
        }
    }
}
