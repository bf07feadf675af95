//! Step 4: the cell table, open addressing in shared memory.
//!
//! A partition is written only by its own CPU, and perf-event programs do not nest on a CPU
//! (`bpf_prog_active`), so nothing here is atomic. User space reads the half of the table that is
//! not being written, after a grace period.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE, helpers::generated::bpf_get_smp_processor_id, macros::map, maps::Array,
};
use precise_common::cell::{Cell, Key};

use crate::read::{Facts, config};

/// The cell table: two halves of one partition per CPU. The loader sets the number of cells.
#[map]
static TABLE: Array<Cell> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The result of adding a sample to the table.
pub enum Outcome {
    /// The sample is in a cell.
    Added,
    /// There is no free cell within the allowed probes.
    Full,
    /// This CPU has no partition.
    Missing,
}

/// Adds a sample to the cell of its key, in the half of the table that the lease names.
#[inline(always)]
pub fn add(lease: u64, key: &Key, facts: &Facts) -> Outcome {
    let half = (lease & 1) as u32;
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let cpus = config!(cpus) as u32;
    if cpu >= cpus {
        return Outcome::Missing;
    }
    let mask = config!(slot_mask) as u32;
    let base = (half * cpus + cpu) * (mask + 1);
    let hash = hash(key);
    // The bound is a constant to the verifier, but not to the compiler, which would unroll the loop
    // into cold code.
    for probe in 0..config!(probes) as u32 {
        let index = base + ((hash + probe) & mask);
        let Some(cell) = TABLE.get_ptr_mut(index) else { return Outcome::Missing };
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
        return Outcome::Added;
    }
    Outcome::Full
}

/// Hashes a map key by multiplicative mixing (Fibonacci hashing). The upper bits are the best
/// mixed, so the result is taken from there.
#[inline(always)]
fn hash(key: &Key) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = key.ip.wrapping_mul(GOLDEN);
    h ^= h >> 32;
    h = h.wrapping_add(key.address ^ key.cgroup << 7 ^ key.process << 13 ^ key.process >> 32 ^ key.class);
    h = h.wrapping_mul(GOLDEN);
    (h ^ h >> 29) as u32
}
