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

use crate::read::{Facts, config, element};

/// The cell table: two halves of one partition per sampled CPU. They are one element, whose size
/// the loader sets.
#[map]
static TABLE: Array<Cell> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The result of adding a sample to the table.
pub enum TableOutcome {
    /// The sample is in a cell.
    Added,
    /// There is no free cell within the allowed probes.
    Full,
}

/// The cells of a CPU's partition, of the half in use.
#[derive(Clone, Copy)]
pub struct HalfInUse(*mut Cell);

/// Returns the cells that the lease names; `None` if this CPU has no partition.
#[inline(always)]
pub fn cells(lease: u64) -> Option<HalfInUse> {
    let half = u64::from(part::place(lease));
    if half >= config!(halves) {
        return None;
    }
    let (first, bytes) = (element!(TABLE as Cell), half << config!(half_shift));
    // SAFETY: in the element, as the verifier checks.
    Some(HalfInUse(unsafe { first.byte_add(bytes as usize) }))
}

/// Adds a sample to the cell of its key.
#[inline(always)]
pub fn add(HalfInUse(first): HalfInUse, key: &CellKey, facts: &Facts) -> TableOutcome {
    let mask = config!(slot_mask) as u32;
    let hash = key.hashed();
    // The bound is a constant to the verifier, but not to the compiler, which would unroll the loop
    // into cold code.
    for probe in 0..config!(probes) as u32 {
        // SAFETY: the half has a cell for each value of the mask, as the verifier checks; nobody
        // else touches this partition's current half.
        let cell = unsafe { &mut *first.add((hash.wrapping_add(probe) & mask) as usize) };
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
