//! What a number must pass to be a finding. docs/explain.md gives the same numbers and reasons to
//! users.

/// Part of the loads that find their line modified in another core's cache. Such a load waits for
/// about a hundred cycles or more, so that 5 % of them add five cycles to every load: as much as a
/// load that hits the L1 cache takes at all.
pub const SHARING: f64 = 0.05;

/// Part of the accesses that memory of another node serves. It costs some hundred cycles beside
/// what a cache takes, and the reason is that of [`SHARING`].
pub const REMOTE: f64 = 0.05;

/// Part of the accesses that walk the page table. A walk whose entries are cached takes some tens
/// of cycles: half as much as a line from another core, so twice as many matter as much.
pub const WALKS: f64 = 0.10;

/// The same three where the hardware sampled slow loads only (`ldlat`): they are parts of the slow
/// ones, and a fifth of all waits is worth a look.
pub const OF_SLOW: f64 = 0.20;

/// Part of the attempted fetches that wait for 16 cycles or more. A core that is fed fetches every
/// one or two cycles: with one in ten waiting, fetches take twice as long.
pub const FETCHES: f64 = 0.10;

/// Part of the branches that are mispredicted. One costs about 20 cycles, and about every fifth
/// instruction is a branch: at 5 %, each hundred instructions lose 20 cycles, which is nearly what
/// they take otherwise.
pub const MISPREDICTED: f64 = 0.05;

/// Part of an event's samples in one function, or one line: more than in everything else together.
pub const HOT: f64 = 0.5;

/// How many times the 99th percentile of one cgroup is that of all others. Buckets and machines
/// make differences of some ten percent; twice is another kind of access.
pub const TAIL: f64 = 2.0;

/// Part of the samples that may be lost. What is lost is seldom lost evenly: it is what came in the
/// busiest moments.
pub const LOST: f64 = crate::trust::COVERAGE_SLACK;
