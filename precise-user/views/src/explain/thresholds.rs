//! The thresholds that a number must pass to be a finding. docs/explain.md gives the same numbers
//! and reasons to users.

/// The share of loads that find their line modified in another core's cache. Such a load waits
/// about a hundred cycles or more, so 5 % of them add five cycles to the average load: as much as a
/// whole load that hits the L1 cache.
pub const SHARING: f64 = 0.05;

/// The share of accesses served by memory of another node. Such an access costs some hundred cycles
/// more than one served by a cache; the reason for the number is that of [`SHARING`].
pub const REMOTE: f64 = 0.05;

/// The share of accesses that walk the page table. A walk whose entries are cached takes some tens
/// of cycles, half as much as a line from another core, so the threshold is twice as high.
pub const WALKS: f64 = 0.10;

/// The threshold of the three shares above if the hardware sampled only slow loads (`ldlat`). They
/// are then shares of the slow loads, and a fifth of all waits is worth a look.
pub const OF_SLOW: f64 = 0.20;

/// The share of attempted fetches that wait 16 cycles or more. A core with enough instructions
/// fetches every one or two cycles; if one fetch in ten waits, fetches take twice as long.
pub const FETCHES: f64 = 0.10;

/// The share of mispredicted branches. A misprediction costs about 20 cycles, and about every fifth
/// instruction is a branch. At 5 %, a hundred instructions lose 20 cycles, which is nearly as long
/// as they take otherwise.
pub const MISPREDICTED: f64 = 0.05;

/// The share of an event's samples in one function or one line: more than in all the others
/// together.
pub const HOT: f64 = 0.5;

/// The ratio of the 99th percentile of one cgroup to that of all others. Buckets and machines cause
/// differences of some ten percent; a factor of two means another kind of access.
pub const TAIL: f64 = 2.0;

/// The share of samples that may be lost. Losses are seldom even: they happen in the busiest
/// moments.
pub const LOST: f64 = crate::trust::COVERAGE_SLACK;

/// The share of all waiting (the sum of the latencies) that accesses to one level take: more than
/// all others together.
pub const WAITING: f64 = 0.5;

/// The share of all accesses that go to memory, from which on the waiting for it is a finding. One
/// access in five of 300 cycles makes the average access wait 60 cycles.
pub const TO_MEMORY: f64 = 0.2;

/// How long the average access waits for a cache behind the L1 cache, in core cycles, from which on
/// that is a finding: five times as long as for a load that hits the L1 cache.
pub const FOR_CACHE: f64 = 25.0;

/// The share of all waiting that accesses to another node's memory take, or to lines that another
/// core has modified. An access to the own node's memory takes about half as long, so the run would
/// wait a tenth less.
pub const WAITING_PART: f64 = 0.2;

/// The share of all waiting, or of all samples, of one cgroup, process, thread, page, cache line or
/// variable: more than of all the others together.
pub const ONE_USER: f64 = 0.5;

/// The part of a waiting from which on its owner is named.
pub const WORTH_NAMING: f64 = 0.3;

/// How many times its usual rate of samples a cgroup must have for a while: programs have phases,
/// which differ by some ten percent.
pub const CHANGE: f64 = 1.5;

/// The ratio of a percentile of the latency in a while to that in the rest of the run. Buckets of
/// latencies differ by an eighth.
pub const CHANGE_OF_LATENCY: f64 = 1.25;

/// By how many core cycles such a percentile must differ at least: as many as a load that hits the
/// L1 cache takes.
pub const CHANGE_OF_CYCLES: f64 = 5.0;

/// By how much the share of accesses that go to memory (of any node), or to a line that another
/// core has modified, must rise for a while.
pub const CHANGE_OF_MEMORY: f64 = 0.05;

/// By how much the share of accesses that need a page walk must rise for a while: see [`WALKS`].
pub const CHANGE_OF_WALKS: f64 = 0.10;
