//! The ledger: where every sample went that reached the BPF program.
//!
//! Each CPU has a row of [`WORDS`] words that only its own program writes. The first eight words
//! share a cache line and are all that a rejected or an aggregated sample touches, because that
//! line is cold when the sample arrives.
//!
//! [`Counter`] is the catalogue of all counters. [`Counter::info`] returns a counter's name, unit,
//! [`Fate`] and meaning. Its id is the word of the row in which the program counts; ids are never
//! reused and never renumbered. Captures store counters by name, so names never change either. An
//! obsolete counter keeps its id and its name.
//!
//! The ledger closes if as many samples ended ([`Fate::ends`]) as arrived.
//!
//! ```
//! use precise_common::ledger::{Counter, Fate};
//!
//! let losses: Vec<&str> =
//!     Counter::ALL.iter().filter(|counter| counter.fate().is_loss()).map(|counter| counter.name()).collect();
//! assert_eq!(losses, ["table_full", "table_missing", "late", "read_failed"]);
//! assert_eq!(Counter::NoLatency.fate().part_of(), Some(Counter::Aggregated));
//! assert!(Counter::Aggregated.fate().ends());
//! ```

/// The number of words per CPU: 512 bytes, eight cache lines.
pub const WORDS: usize = 64;

/// The index of the [`lease`], a word that user space writes and that is not a counter.
pub const LEASE: usize = 0;

/// What user space tells the program on one CPU: until when to keep samples, and where. It is one
/// word because every sample that is added to the table reads all of it, and because it must change
/// at once.
///
/// | bits | content |
/// | --- | --- |
/// | 0 | the half of the CPU's partition in use |
/// | 1–13 | the CPU's partition of the tables, or [`lease::NO_PARTITION`] |
/// | 14–63 | the deadline of the run, in nanoseconds of `CLOCK_MONOTONIC` (the lower bits are cut, which makes it at most 16 µs earlier) |
pub mod lease {
    /// The partition of a CPU that has none.
    pub const NO_PARTITION: u64 = 0x1fff;

    /// The mask of everything that is not the deadline.
    const PLACE: u64 = NO_PARTITION << 1 | 1;

    /// Packs a deadline, a partition and a half into one word.
    pub const fn pack(deadline: u64, partition: u64, half: u64) -> u64 {
        deadline & !PLACE | (partition & NO_PARTITION) << 1 | half & 1
    }

    /// Returns the index of the half in use among the halves of all partitions: twice the
    /// partition, plus the half. No table has halves of [`NO_PARTITION`].
    #[inline(always)]
    pub const fn place(lease: u64) -> u32 {
        (lease & PLACE) as u32
    }

    /// Returns the index of a half, 0 or 1, of a partition among the halves of all partitions.
    pub const fn place_of(partition: usize, half: usize) -> usize {
        2 * partition + half
    }
}

/// The index of the word in which the program notes the tick (`jiffies`) in which it last found the
/// deadline ahead. It is not a counter.
///
/// A clock takes longer than all else that the program does for a sample, and the deadline is at
/// least a hundred milliseconds away. So the program reads the clock once in a tick, and keeps
/// samples for one tick longer than the deadline at most.
pub const TICK: usize = 8;

/// The index of the word in which the program notes the `css_set` of the last sample's task, that
/// is the task's place in all cgroup hierarchies; 0 if it has seen none in this [`TICK`]. It is not
/// a counter.
///
/// From a task to the id of its cgroup, there are four pointers to memory that is often not in a
/// cache, and most samples of a CPU in one tick are of one cgroup. A `css_set` belongs to one
/// cgroup as long as it exists. It is freed with `kfree_rcu()` (kernel/cgroup/cgroup.c,
/// `put_css_set_locked()`), after a grace period in which every CPU has passed a tick, so within a
/// tick its address does not become that of another one.
pub const CGROUP_SET: usize = 9;

/// The index of the word with the id of the cgroup of [`CGROUP_SET`].
pub const CGROUP_ID: usize = 10;

/// The index of the word in which the program notes when the work for a sample began, if its cost
/// is measured. It is not a counter.
pub const BEGUN: usize = 11;

/// The words that are not counters.
const NOTES: [usize; 6] = [LEASE, OWN, TICK, CGROUP_SET, CGROUP_ID, BEGUN];

/// The index of [`own`], a word that user space writes and that is not a counter.
pub const OWN: usize = 7;

/// The helper processes of the profiler itself, in one word: samples of them are counted as
/// [`Counter::Own`] and not kept. The profiler's main process is a constant of the program.
///
/// | bits | content |
/// | --- | --- |
/// | 0–31 | the process id of one helper, or [`own::NONE`] |
/// | 32–63 | the process id of another helper, or [`own::NONE`] |
pub mod own {
    /// The id of no process. Zero is the idle task, and the kernel gives -1 for a task that is
    /// ending.
    pub const NONE: u32 = u32::MAX - 1;

    /// Packs the ids of two processes into one word.
    pub const fn pack(one: u32, other: u32) -> u64 {
        one as u64 | (other as u64) << 32
    }
}

/// The index of the word that counts the samples that fail the first clause of the filter. Captures
/// store these counts with the text of the clause, so they have no [`Counter`]; their fate is
/// [`Fate::Rejected`].
pub const REJECTED_FIRST: usize = 6;

/// The index of the word that counts the samples that fail the second clause and pass the first.
/// The words of the other clauses follow, [`crate::config::MAX_CLAUSES`] - 1 words in total. They
/// are not in the first cache line, which has no more room.
pub const REJECTED_SECOND: usize = 47;

/// Returns the index of the word that counts the samples that fail the clause with this number
/// first.
pub const fn rejected(clause: usize) -> usize {
    if clause == 0 { REJECTED_FIRST } else { REJECTED_SECOND + clause - 1 }
}

/// The interval of cost measurements, in samples, a power of two: the BPF program measures the cost
/// of one sample in this many. Reading the clock once more for every sample would add a quarter to
/// the measured cost.
pub const TIMED_EACH: u64 = 64;

/// The fate of the samples that one number of the ledger counts.
///
/// Most numbers are the BPF program's own counters. User space adds numbers for samples that were
/// lost before the program saw them or after it kept them, and gives them fates from the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The sample reached the BPF program.
    Arrived,
    /// The sample ended in the program's table.
    Kept,
    /// The sample ended in the event's own ring buffer. User space counts whether the ring buffer
    /// had room for it.
    Streamed,
    /// The sample ended at a clause of the filter, or because it was one of the profiler itself.
    Rejected,
    /// The sample ended in the program, which could not keep it.
    Lost,
    /// The sample was lost before the BPF program saw it, so it did not arrive.
    Missed,
    /// The BPF program kept the sample, and user space lost it.
    Discarded,
    /// The sample is also counted in the given counter.
    PartOf(Counter),
    /// The BPF program kept the sample without this fact. It is also counted in
    /// [`Counter::Aggregated`].
    Lacks(Fact),
    /// No fate: the number is a sum, a time, or a count of something other than samples.
    Measure,
}

impl Fate {
    /// Returns whether this is the end of a sample that arrived. Each such sample ends in exactly
    /// one number, so the ledger closes if these numbers add up to the samples that arrived.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Kept | Self::Streamed | Self::Rejected | Self::Lost)
    }

    /// Returns whether the sample was lost: before the BPF program, in it, or after it.
    pub const fn is_loss(self) -> bool {
        matches!(self, Self::Lost | Self::Missed | Self::Discarded)
    }

    /// Returns whether numbers with this fate are part of the samples that were taken, whether or
    /// not the program saw them. Their sum is the base of a share of lost samples.
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Arrived | Self::Missed)
    }

    /// Returns the counter that also counts these samples; `None` if they are counted once.
    pub const fn part_of(self) -> Option<Counter> {
        match self {
            Self::PartOf(whole) => Some(whole),
            Self::Lacks(_) => Some(Counter::Aggregated),
            _ => None,
        }
    }

    /// Returns the name of the fate: `lost`, `kept`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Kept => "kept",
            Self::Streamed => "streamed",
            Self::Rejected => "rejected",
            Self::Lost => "lost",
            Self::Missed => "missed",
            Self::Discarded => "discarded",
            Self::PartOf(_) | Self::Lacks(_) => "part",
            Self::Measure => "measure",
        }
    }
}

/// A fact that a sample should carry and may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The data address.
    Address,
    /// The data source.
    DataSource,
    /// The latency.
    Latency,
    /// The registers of the raw record.
    Registers,
}

impl Fact {
    /// Returns the short name of the fact, as in metrics: `data source`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::DataSource => "data source",
            Self::Latency => "latency",
            Self::Registers => "registers",
        }
    }

    /// Returns the name of the fact in a sentence: `memory level`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Address => "data address",
            Self::DataSource => "memory level",
            Self::Latency => "latency",
            Self::Registers => "record of the IBS registers",
        }
    }
}

/// The unit of a number of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerUnit {
    /// Samples.
    Samples,
    /// Events that samples stand for.
    Events,
    /// Cache lines.
    Lines,
    /// Occurrences.
    Times,
    /// Nanoseconds.
    Nanoseconds,
}

impl LedgerUnit {
    /// Returns the name of the unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Events => "events",
            Self::Lines => "lines",
            Self::Times => "times",
            Self::Nanoseconds => "ns",
        }
    }
}

/// The catalogue's entry for one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterInfo {
    /// The name in captures and metrics.
    pub name: &'static str,
    /// The label in tables for people.
    pub label: &'static str,
    /// The unit.
    pub unit: LedgerUnit,
    /// The fate of the samples that it counts.
    pub fate: Fate,
    /// The meaning, for people; for a loss, the cause. It begins with a small letter and has no
    /// full stop.
    pub meaning: &'static str,
}

macro_rules! catalogue {
    ($($counter:ident = $id:literal, $name:literal, $label:literal, $unit:ident, $fate:expr, $meaning:literal;)*) => {
        /// A counter of the BPF program. Its discriminant is its id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum Counter {
            $(
                #[doc = concat!("`", $name, "`: ", $meaning, ".")]
                $counter = $id,
            )*
        }

        impl Counter {
            /// All counters, in the order in which tables show them.
            pub const ALL: &[Self] = &[$(Self::$counter),*];

            /// Returns the counter's entry in the catalogue.
            pub const fn info(self) -> CounterInfo {
                match self {
                    $(Self::$counter => CounterInfo {
                        name: $name,
                        label: $label,
                        unit: LedgerUnit::$unit,
                        fate: $fate,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    Seen = 1, "seen", "seen", Samples, Fate::Arrived, "samples that reached the program";
    Exact = 5, "exact", "exact", Samples, Fate::PartOf(Counter::Seen),
        "the hardware marked the instruction address as exact (`PERF_EFLAGS_EXACT`)";
    Aggregated = 3, "aggregated", "aggregated", Samples, Fate::Kept, "added to the table";
    NotPromoted = 30, "not_promoted", "other lines", Samples, Fate::PartOf(Counter::Aggregated),
        "kept without an address, because no HITM load was seen on their line";
    LinesFull = 31, "lines_full", "no slot", Samples, Fate::PartOf(Counter::Aggregated),
        "HITM loads without an address, because every slot for a cache line is in use";
    StackFull = 40, "stack_full", "without chain", Samples, Fate::PartOf(Counter::Aggregated),
        "the table of call chains was full";
    StackNotGiven = 41, "stack_not_given", "without chain", Samples, Fate::PartOf(Counter::Aggregated),
        "the kernel delivered no call chain";
    StackUnreadable = 42, "stack_unreadable", "without chain", Samples, Fate::PartOf(Counter::Aggregated),
        "the call chain could not be read";
    NoAddress = 25, "no_address", "no address", Samples, Fate::Lacks(Fact::Address),
        "aggregated samples without a data address";
    NoDataSource = 26, "no_data_source", "no data source", Samples, Fate::Lacks(Fact::DataSource),
        "aggregated samples without a data source, or with one that says nothing";
    NoLatency = 27, "no_latency", "no latency", Samples, Fate::Lacks(Fact::Latency),
        "aggregated samples without a latency";
    NoRaw = 29, "no_raw", "no registers", Samples, Fate::Lacks(Fact::Registers),
        "aggregated samples whose raw record is missing or too short";
    InGuest = 33, "in_guest", "in a guest", Samples, Fate::PartOf(Counter::Aggregated),
        "a virtual machine's guest ran: no addresses";
    Streamed = 28, "streamed", "streamed", Samples, Fate::Streamed, "left to the event's ring";
    Own = 46, "own", "own", Samples, Fate::Rejected, "samples of precise itself";
    TableFull = 22, "table_full", "table full", Samples, Fate::Lost, "no free cell in the table";
    TableMissing = 23, "table_missing", "no table", Samples, Fate::Lost, "the table has no partition for the CPU";
    Late = 43, "late", "late", Samples, Fate::Lost, "user space did not renew the deadline";
    ReadFailed = 24, "read_failed", "unreadable", Samples, Fate::Lost, "the fields could not be read";
    PeriodSeen = 2, "period_seen", "period seen", Events, Fate::Measure, "sum of the periods of the samples seen";
    PeriodAggregated = 4, "period_aggregated", "period aggregated", Events, Fate::Measure,
        "sum of the periods of the aggregated samples";
    PeriodIdle = 62, "period_idle", "period idle", Events, Fate::Measure,
        "sum of the periods of a timer's samples that idle CPUs took";
    Promoted = 32, "promoted", "promoted", Lines, Fate::Measure,
        "cache lines that HITM loads showed, and that are kept in detail";
    Timed = 44, "timed", "timed", Samples, Fate::Measure, "samples whose cost was measured";
    TimedNs = 45, "timed_ns", "time taken", Nanoseconds, Fate::Measure,
        "time that the timed samples took, from the filter's decision to the end of the program; with \
         what the kernel looks up before, if it does: call chains, physical addresses, page sizes";
}

impl Counter {
    /// Returns the index of the counter's word in a CPU's row, less than [`WORDS`].
    #[inline(always)]
    pub const fn id(self) -> usize {
        self as usize
    }

    /// Returns the name of the counter in captures and metrics.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the fate of the samples that it counts.
    pub const fn fate(self) -> Fate {
        self.info().fate
    }

    /// Returns the counter with that name; `None` if this version has no such counter.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|counter| counter.name() == name)
    }
}

const _: () = {
    let mut at = 0;
    while at < Counter::ALL.len() {
        let id = Counter::ALL[at].id();
        let mut note = 0;
        while note < NOTES.len() {
            assert!(id != NOTES[note] && id < WORDS);
            note += 1;
        }
        let mut clause = 0;
        while clause < crate::config::MAX_CLAUSES {
            assert!(id != rejected(clause) && rejected(clause) < WORDS);
            clause += 1;
        }
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (at, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(Counter::by_name(counter.name()), Some(*counter));
            assert!(Counter::ALL[at + 1..].iter().all(|other| other.name() != counter.name()), "{counter:?}");
        }
        assert_eq!(Counter::by_name("of a newer version"), None);
    }

    #[test]
    fn a_lease_keeps_its_parts() {
        for deadline in [0, 1 << 14, 1_234_567_890_123_456, u64::MAX] {
            for partition in [0, 1, 511, 8190, lease::NO_PARTITION] {
                for half in [0, 1] {
                    let word = lease::pack(deadline, partition, half);
                    let place = lease::place_of(partition as usize, half as usize);
                    assert_eq!(lease::place(word) as usize, place);
                    assert!(word.abs_diff(deadline) < 1 << 14);
                }
            }
        }
    }

    #[test]
    fn the_idle_task_and_ending_tasks_are_never_own() {
        assert!(![0, 1, u32::MAX].contains(&own::NONE));
        // The program reads each half by itself.
        let two = own::pack(17, 1 << 22);
        assert_eq!((two as u32, (two >> 32) as u32), (17, 1 << 22));
    }

    // Captures identify counters by name, and running programs by id.
    #[test]
    fn ids_and_names_stay_what_they_were() {
        let known = [
            (1, "seen"),
            (2, "period_seen"),
            (3, "aggregated"),
            (4, "period_aggregated"),
            (5, "exact"),
            (22, "table_full"),
            (23, "table_missing"),
            (24, "read_failed"),
            (25, "no_address"),
            (26, "no_data_source"),
            (27, "no_latency"),
            (28, "streamed"),
            (29, "no_raw"),
            (30, "not_promoted"),
            (31, "lines_full"),
            (32, "promoted"),
            (33, "in_guest"),
            (40, "stack_full"),
            (41, "stack_not_given"),
            (42, "stack_unreadable"),
            (43, "late"),
            (44, "timed"),
            (45, "timed_ns"),
            (46, "own"),
            (62, "period_idle"),
        ];
        for (id, name) in known {
            assert_eq!(Counter::by_name(name).map(Counter::id), Some(id), "{name}");
        }
        assert_eq!(Counter::ALL.len(), known.len());
    }

    #[test]
    fn every_fate_fits_its_unit() {
        for counter in Counter::ALL {
            let CounterInfo { unit, fate, meaning, .. } = counter.info();
            assert!(fate == Fate::Measure || unit == LedgerUnit::Samples, "{counter:?}");
            assert!(!(fate.ends() && fate.part_of().is_some()), "{counter:?}");
            assert!(!meaning.ends_with('.') && !meaning.is_empty(), "{counter:?}");
            if let Some(whole) = fate.part_of() {
                assert!(whole.fate().ends() || whole.fate() == Fate::Arrived, "{counter:?}");
            }
        }
        assert_eq!(Counter::ALL.iter().filter(|counter| counter.fate() == Fate::Arrived).count(), 1);
    }
}
