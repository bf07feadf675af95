//! Step 4: the cell table, open addressing in shared memory.
//!
//! A partition is written only by its own CPU, and perf-event programs do not nest on a CPU
//! (`bpf_prog_active`), nor does a program at a tracepoint nest in itself (`bpf_prog.active`), so
//! nothing here is atomic. User space reads the half of the table that is
//! not being written, after a grace period.

use aya_ebpf::{bindings::BPF_F_MMAPABLE, macros::map, maps::Array};
use precise_common::{
    cell::{Cell, CellKey},
    ledger::lease as part,
};

use crate::read::{Facts, config};

/// The cell table: two halves of one partition per sampled CPU. The loader sets the number of
/// cells.
#[map]
static TABLE: Array<Cell> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The result of adding a sample to the table.
pub enum TableOutcome {
    /// The sample is in a cell.
    Added,
    /// There is no free cell within the allowed probes.
    Full,
    /// This CPU has no partition.
    Missing,
}

/// Adds a sample to the cell of its key, in the half and the partition that the lease names.
#[inline(always)]
pub fn add(lease: u64, key: &CellKey, facts: &Facts) -> TableOutcome {
    let (partition, partitions) = (part::partition(lease), config!(partitions) as u32);
    if partition >= partitions {
        return TableOutcome::Missing;
    }
    let mask = config!(slot_mask) as u32;
    let base = (part::half(lease) * partitions + partition) * (mask + 1);
    let hash = key.hashed();
    // The bound is a constant to the verifier, but not to the compiler, which would unroll the loop
    // into cold code.
    for probe in 0..config!(probes) as u32 {
        let index = base + (hash.wrapping_add(probe) & mask);
        let Some(cell) = TABLE.get_ptr_mut(index) else { return TableOutcome::Missing };
        // SAFETY: a valid pointer into the map; nobody else touches this partition's current half.
        let cell = unsafe { &mut *cell };
        if cell.count == 0 {
            cell.key = *key;
        } else if cell.key != *key {
            continue;
        }
        cell.latency_sum += facts.latency as u64;
        if facts.latency > cell.latency_max {
            cell.latency_max = facts.latency;
        }
        cell.period_sum += facts.period;
        cell.count += 1;
        return TableOutcome::Added;
    }
    TableOutcome::Full
}
