//! The ledger: where every sample went that reached the program.
//!
//! Each CPU has a row of [`WORDS`] counters that only its own program writes. The first eight words share a cache line:
//! all that a rejected or an aggregated sample touches, as that line is cold when the sample comes. An id is never reused and never renumbered:
//! captures store counters by id. A counter that is given up keeps its id and is marked as obsolete.
//!
//! The ledger closes when
//! `SEEN = AGGREGATED + STREAMED + TABLE_FULL + TABLE_MISSING + READ_FAILED + LATE + Σ rejected`.

/// Counters per CPU: 512 bytes, eight cache lines.
pub const WORDS: usize = 64;

/// Not a counter: the lease, written by user space. Its lowest bit names the half of the table in use; the rest is when the run's
/// deadline is, in nanoseconds of `CLOCK_MONOTONIC` (to 2 ns). One word, as every sample that is added reads both.
pub const LEASE: usize = 0;
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
/// Samples without a raw record, or with one that is too short, where the run needs it. Counted on aggregated samples.
pub const NO_RAW: usize = 29;
/// Samples that passed the filter of a streaming run and were left to the event's ring. Whether the ring had room for
/// them, user space counts.
pub const STREAMED: usize = 28;
/// Samples of lines that no HITM load had promoted: aggregated, without their address.
pub const NOT_PROMOTED: usize = 30;
/// HITM loads whose line found no room among the promoted ones: aggregated, without their address.
pub const LINES_FULL: usize = 31;
/// Not samples: cache lines that this CPU promoted.
pub const PROMOTED: usize = 32;

/// Samples whose call chain found no room in the table of chains. Counted on aggregated samples, so the next two.
pub const STACK_FULL: usize = 40;
/// Samples for which the kernel gave no call chain.
pub const STACK_NOT_GIVEN: usize = 41;
/// Samples whose call chain could not be read.
pub const STACK_UNREADABLE: usize = 42;

/// Samples that passed the filter after the deadline: user space had not renewed it, so nobody would have read them.
pub const LATE: usize = 43;
/// Not samples of a kind: those whose cost was measured, one of [`TIMED_EACH`] aggregated ones.
pub const TIMED: usize = 44;
/// Nanoseconds that these took, from when the kernel prepared the sample to the end of the program.
pub const TIMED_NS: usize = 45;
/// A power of two: reading the clock once more for each sample would cost a quarter of what is measured.
pub const TIMED_EACH: u64 = 64;

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
    (NO_RAW, "no_raw", "aggregated samples without the registers that the hardware should give"),
    (
        NOT_PROMOTED,
        "not_promoted",
        "aggregated samples without address, as no HITM load had shown their line",
    ),
    (LINES_FULL, "lines_full", "HITM loads aggregated without address, as there was no room for their line"),
    (PROMOTED, "promoted", "cache lines that HITM loads showed, and that are kept in detail"),
    (STACK_FULL, "stack_full", "aggregated samples whose call chain found no room"),
    (STACK_NOT_GIVEN, "stack_not_given", "aggregated samples for which the kernel gave no call chain"),
    (STACK_UNREADABLE, "stack_unreadable", "aggregated samples whose call chain could not be read"),
    (LATE, "late", "samples lost because user space did not renew the run's deadline"),
    (TIMED, "timed", "samples whose cost was measured"),
    (
        TIMED_NS,
        "timed_ns",
        "nanoseconds that these took, from the sample's preparation to the end of the program",
    ),
    (STREAMED, "streamed", "samples left to the event's ring"),
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
