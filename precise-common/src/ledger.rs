//! The ledger: where every sample went that reached the program.
//!
//! Each CPU has a row of [`WORDS`] counters that only its own program writes. The first eight words share a cache line:
//! all that a rejected or an aggregated sample touches, as that line is cold when the sample comes. An id is never reused and never renumbered:
//! captures store counters by id. A counter that is given up keeps its id and is marked as obsolete.
//!
//! The ledger closes when
//! `SEEN = AGGREGATED + TABLE_FULL + TABLE_MISSING + READ_FAILED + Σ rejected`.

/// Counters per CPU: 512 bytes, eight cache lines.
pub const WORDS: usize = 64;

/// Not a counter: the current epoch, written by user space. Its lowest bit names the half of the table in use.
pub const EPOCH: usize = 0;
/// Samples that reached the program.
pub const SEEN: usize = 1;
/// Σ of `perf_sample_data.period` over the samples seen: compared with the event's own count, this is the coverage.
pub const PERIOD_SEEN: usize = 2;
/// Samples that were added to a cell.
pub const AGGREGATED: usize = 3;
/// Σ of `perf_sample_data.period` over the aggregated samples.
pub const PERIOD_AGGREGATED: usize = 4;
/// Samples whose IP the hardware marked as exact (`PERF_EFLAGS_EXACT`). Counted on seen samples.
pub const EXACT: usize = 5;
/// First of [`crate::config::MAX_CLAUSES`] counters: samples that failed the filter's n-th clause first.
pub const REJECTED_FIRST: usize = 6;
/// Samples that passed the filter and found no free cell within the allowed probes.
pub const TABLE_FULL: usize = 22;
/// Samples for which the table had no partition: a CPU that came online with a number beyond the possible ones.
pub const TABLE_MISSING: usize = 23;
/// Samples whose fields could not be read (`bpf_probe_read_kernel` failed).
pub const READ_FAILED: usize = 24;
/// Samples without a data address. Counted on aggregated samples.
pub const NO_ADDRESS: usize = 25;
/// Samples whose data source is missing or `PERF_MEM_NA`. Counted on aggregated samples.
pub const NO_DATA_SOURCE: usize = 26;
/// Samples without a latency. Counted on aggregated samples.
pub const NO_LATENCY: usize = 27;

/// Name, and the sentence that a person reads, of each counter with a fixed id.
pub const CATALOGUE: &[(usize, &str, &str)] = &[
    (SEEN, "seen", "samples that reached the program"),
    (PERIOD_SEEN, "period_seen", "sum of the periods of the samples seen, in events"),
    (AGGREGATED, "aggregated", "samples added to the table"),
    (TABLE_FULL, "table_full", "samples lost because the table was full"),
    (TABLE_MISSING, "table_missing", "samples on a CPU without a table partition"),
    (READ_FAILED, "read_failed", "samples whose fields could not be read"),
    (EXACT, "exact", "samples whose instruction address is exact"),
    (NO_ADDRESS, "no_address", "aggregated samples without a data address"),
    (NO_DATA_SOURCE, "no_data_source", "aggregated samples without a memory level"),
    (NO_LATENCY, "no_latency", "aggregated samples without a latency"),
    (PERIOD_AGGREGATED, "period_aggregated", "sum of the periods of the aggregated samples, in events"),
];

const _: () = assert!(REJECTED_FIRST + crate::config::MAX_CLAUSES == TABLE_FULL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_unique() {
        for (i, (id, name, _)) in CATALOGUE.iter().enumerate() {
            assert!(*id < WORDS && !(REJECTED_FIRST..TABLE_FULL).contains(id));
            for (other, other_name, _) in &CATALOGUE[i + 1..] {
                assert!(id != other && name != other_name);
            }
        }
    }
}
