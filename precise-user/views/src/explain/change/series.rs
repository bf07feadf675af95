//! What each cgroup (or process) did, by time.

use precise_common::data_src::{DataSource, MemoryLevel, Snoop, Tlb};
use precise_common::latency;
use precise_model::{Capture, CompactSort as _, CpuGap, Dimension, Epoch, Name, NameId, Row};
use rustc_hash::FxHashMap;
use std::ops::Range;

use super::interval::Points;
use crate::explain::thresholds;
use crate::explain::waiting::is_remote;
use crate::stats::{Histogram, Samples};

/// The largest number of columns; more epochs share them.
const COLUMNS: usize = 120;
/// The smallest number of columns in which a change can be told.
pub const FEWEST: usize = 12;
/// The number of cgroups that are looked at: those with the most samples.
pub const USERS: usize = 16;
/// The number of samples that a series needs; those of latencies and levels need twice as many.
const FEWEST_SAMPLES: f64 = 100.0;
/// The number of samples in a burst from which on their average is nearly normal.
const FEWEST_OF_BURST: f64 = 30.0;

/// What happened in one column.
#[derive(Clone, Default)]
pub struct ColumnSums {
    /// The samples, by the events that they stand for.
    pub weight: f64,
    /// The samples with a latency.
    pub latencies: Histogram,
    timed: f64,
    log_sum: f64,
    /// The samples that tell where they were served, and those of each kind.
    pub served: f64,
    pub kinds: [f64; AccessKind::ALL.len()],
    /// The latencies of the samples served behind the caches.
    far_timed: f64,
    far_waited: f64,
    /// The latencies, and what they would be if each was the average of its level in the whole run.
    waited: f64,
    expected: f64,
}

impl ColumnSums {
    fn add(&mut self, row: &Row, weight: f64, levels: &Levels) {
        self.weight += weight;
        let far = row.data_src != 0 && is_far(row.data_source().level);
        if let Some(cycles) = cycles(row) {
            self.waited += weight * cycles;
            self.expected += weight * levels.average(row);
            self.far_timed += if far { weight } else { 0.0 };
            self.far_waited += if far { weight * cycles } else { 0.0 };
        }
        if let Some(bucket) = row.latency_bucket {
            self.latencies
                .add(bucket, Samples::each(row.measures.count, weight / row.measures.count.max(1) as f64));
            self.timed += weight;
            self.log_sum += weight * cycles(row).map_or(0.0, f64::ln);
        }
        if row.data_src != 0 {
            let source = row.data_source();
            if source.level != MemoryLevel::Na {
                self.served += weight;
                for (sum, kind) in self.kinds.iter_mut().zip(AccessKind::ALL) {
                    *sum += if kind.is(source) { weight } else { 0.0 };
                }
            }
        }
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.latencies.merge(&other.latencies);
        self.timed += other.timed;
        self.log_sum += other.log_sum;
        self.served += other.served;
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, more)| *sum += more);
        self.far_timed += other.far_timed;
        self.far_waited += other.far_waited;
        self.waited += other.waited;
        self.expected += other.expected;
    }

    /// Returns the share of the accesses that are of a kind; `None` without accesses.
    pub fn share(&self, kind: AccessKind) -> Option<f64> {
        (self.served > 0.0).then(|| self.kinds[kind as usize] / self.served)
    }

    /// Returns the average latency of the accesses that went to memory, in core cycles; `None` if
    /// there are few.
    pub fn far_latency(&self) -> Option<f64> {
        (self.far_timed >= FEWEST_SAMPLES).then(|| self.far_waited / self.far_timed)
    }
}

/// Returns the latency of a row's samples, by its bucket, in core cycles.
fn cycles(row: &Row) -> Option<f64> {
    row.latency_bucket.map(|bucket| latency::middle(bucket.into()).max(1.0))
}

/// The average latency of each level in the whole run.
#[derive(Default)]
struct Levels(FxHashMap<(MemoryLevel, bool), (f64, f64)>);

impl Levels {
    fn of(row: &Row) -> (MemoryLevel, bool) {
        let source = row.data_source();
        if row.data_src == 0 { (MemoryLevel::Na, false) } else { (source.level, source.remote) }
    }

    fn add(&mut self, row: &Row, weight: f64) {
        if let Some(cycles) = cycles(row) {
            let (sum, whole) = self.0.entry(Self::of(row)).or_default();
            (*sum, *whole) = (*sum + weight * cycles, *whole + weight);
        }
    }

    fn average(&self, row: &Row) -> f64 {
        self.0.get(&Self::of(row)).map_or(0.0, |(sum, weight)| sum / weight.max(f64::MIN_POSITIVE))
    }
}

/// Returns whether a level is memory and not a cache.
pub fn is_far(level: MemoryLevel) -> bool {
    matches!(level, MemoryLevel::Ram | MemoryLevel::Pmem | MemoryLevel::Cxl)
}

/// A kind of access that is slower than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Memory of another node served it.
    Remote,
    /// Another core's cache had the line, modified.
    Modified,
    /// Its address needed a page walk.
    Walked,
    /// Memory served it.
    Memory,
}

impl AccessKind {
    /// All kinds. Where an access is of several, the first says most.
    pub const ALL: [Self; 4] = [Self::Remote, Self::Modified, Self::Walked, Self::Memory];

    fn is(self, source: DataSource) -> bool {
        match self {
            Self::Remote => is_remote(source),
            Self::Modified => source.snoop == Snoop::HitM,
            Self::Walked => matches!(source.tlb, Tlb::Walk | Tlb::Miss | Tlb::Fault),
            Self::Memory => is_far(source.level),
        }
    }

    /// Returns what accesses of this kind did.
    pub const fn did(self) -> &'static str {
        match self {
            Self::Remote => "went to memory of another node",
            Self::Modified => "found the line modified in another core's cache",
            Self::Walked => "needed a page walk",
            Self::Memory => "went to memory",
        }
    }

    /// Returns by how much the share of these accesses must rise for a while.
    pub const fn threshold(self) -> f64 {
        match self {
            Self::Walked => thresholds::CHANGE_OF_WALKS,
            Self::Remote | Self::Modified | Self::Memory => thresholds::CHANGE_OF_MEMORY,
        }
    }
}

/// A cgroup or process, column by column.
pub struct User {
    pub name: String,
    pub cells: Vec<ColumnSums>,
}

/// The measures of a user that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeMeasure {
    /// Samples per second.
    Rate,
    /// The average logarithm of the latency.
    Latency,
    /// The logarithm of the waiting relative to what it would be if each access waited as long as
    /// the average access to its level: it does not depend on how many accesses go where.
    Alike,
    /// The share of accesses as slow as the slowest twentieth of the whole run.
    Tail,
    /// The share of accesses of a kind.
    Of(AccessKind),
}

impl ChangeMeasure {
    pub const ALL: [Self; 8] = [
        Self::Rate,
        Self::Latency,
        Self::Alike,
        Self::Tail,
        Self::Of(AccessKind::Remote),
        Self::Of(AccessKind::Modified),
        Self::Of(AccessKind::Walked),
        Self::Of(AccessKind::Memory),
    ];

    /// Returns the smallest weight and the smallest variance with which a series is tested for
    /// bursts; `None` if it is not.
    pub const fn of_bursts(self) -> Option<(f64, f64)> {
        match self {
            // The square root of a count has a variance of a quarter.
            Self::Rate => Some((0.0, 0.25)),
            Self::Latency => Some((FEWEST_OF_BURST, 0.0)),
            // So has the arc sine of the root of a share, times the number of samples.
            Self::Of(_) => Some((FEWEST_OF_BURST, 0.25)),
            // One sample can be as slow as all others together.
            Self::Alike | Self::Tail => None,
        }
    }
}

impl User {
    /// Returns the sums over columns.
    pub fn sum(&self, columns: impl Iterator<Item = usize>) -> ColumnSums {
        let mut sum = ColumnSums::default();
        columns.filter_map(|column| self.cells.get(column)).for_each(|cell| sum.join(cell));
        sum
    }

    /// Returns a measure by column; `None` if there are too few samples. Each value is transformed
    /// so that its variance does not depend on its size.
    pub fn points(&self, measure: ChangeMeasure, seconds: &[f64]) -> Option<Points> {
        let all = self.sum(0..self.cells.len());
        let enough = match measure {
            ChangeMeasure::Rate => all.weight,
            ChangeMeasure::Latency | ChangeMeasure::Alike | ChangeMeasure::Tail => all.timed / 2.0,
            // What never happens does not change.
            ChangeMeasure::Of(kind) if all.kinds[kind as usize] <= 0.0 => 0.0,
            ChangeMeasure::Of(_) => all.served / 2.0,
        };
        if enough < FEWEST_SAMPLES {
            return None;
        }
        let slow = all.latencies.percentile(0.95).map_or(u32::MAX, |percentile| percentile.cycles as u32);
        let usual = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let share = |part: f64, whole: f64| (part / whole).clamp(0.0, 1.0).sqrt().asin();
        let points = self.cells.iter().zip(seconds).map(|(cell, seconds)| match measure {
            // The fewer seconds were measured, the less a rate tells.
            ChangeMeasure::Rate if *seconds > 0.0 => {
                ((cell.weight * usual / seconds).sqrt(), seconds / usual)
            }
            ChangeMeasure::Alike if cell.expected > 0.0 => {
                ((cell.waited / cell.expected).ln(), cell.expected)
            }
            ChangeMeasure::Latency if cell.timed > 0.0 => (cell.log_sum / cell.timed, cell.timed),
            ChangeMeasure::Tail if cell.timed > 0.0 => {
                let buckets = cell.latencies.buckets();
                let tail = buckets.filter(|(bucket, _)| latency::lower(bucket + 1) > u64::from(slow));
                (share(tail.map(|(_, samples)| samples.weight.sum).sum(), cell.timed), cell.timed)
            }
            ChangeMeasure::Of(kind) if cell.served > 0.0 => {
                (share(cell.kinds[kind as usize], cell.served), cell.served)
            }
            _ => (0.0, 0.0),
        });
        Some(points.collect())
    }
}

/// The users of one event by time.
pub struct Timeline {
    /// Start and end of each column, in nanoseconds since the start of the run.
    pub columns: Vec<Range<u64>>,
    /// The measured time of each column in seconds: 0 if no CPU was measured.
    pub seconds: Vec<f64>,
    pub users: Vec<User>,
    /// The number of users that are not among them, and their part of the samples.
    pub others: usize,
    pub of_others: f64,
}

/// What the users of a capture are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Cgroup,
    Process,
    Run,
}

/// Returns the finest users that a capture tells apart.
pub fn users_of(capture: &Capture) -> Of {
    let several = |get: fn(&Row) -> Name| {
        let first = capture.rows.first().map(get);
        capture.rows.iter().any(|row| Some(get(row)) != first)
    };
    let recorded = |dimension| capture.meta.dimensions.contains(&dimension);
    if recorded(Dimension::Cgroup) && several(|row| row.cgroup) {
        Of::Cgroup
    } else if (recorded(Dimension::Process) || recorded(Dimension::Thread)) && several(|row| row.process) {
        Of::Process
    } else {
        Of::Run
    }
}

/// Returns the samples of an event by user and time.
pub fn timeline(capture: &Capture, event: usize) -> Timeline {
    let epochs = &capture.meta.epochs;
    let each = epochs.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<Range<u64>> =
        epochs.chunks(each).filter_map(|chunk| Some(chunk.first()?.start_ns..chunk.last()?.end_ns)).collect();
    let of = users_of(capture);
    let rows = || capture.rows.iter().filter(move |row| usize::from(row.event) == event);
    let (samples, periods) = rows().fold((0u64, 0u64), |(samples, periods), row| {
        (samples.saturating_add(row.measures.count), periods.saturating_add(row.measures.period_sum))
    });
    let period = periods as f64 / samples.max(1) as f64;
    let weight_of = |row: &Row| match period > 0.0 {
        true => row.measures.period_sum as f64 / period,
        false => row.measures.count as f64,
    };
    let mut levels = Levels::default();
    rows().for_each(|row| levels.add(row, weight_of(row)));
    let mut found: FxHashMap<NameId, (f64, Vec<ColumnSums>)> = FxHashMap::default();
    for row in rows() {
        let name = match of {
            Of::Cgroup => row.cgroup,
            Of::Process => row.process,
            Of::Run => Name::Known(NameId::default()),
        };
        let Name::Known(id) = name else { continue };
        let weight = weight_of(row);
        let (sum, cells) =
            found.entry(id).or_insert_with(|| (0.0, vec![ColumnSums::default(); columns.len()]));
        *sum += weight;
        if let Some(cell) = cells.get_mut(row.epoch as usize / each) {
            cell.add(row, weight, &levels);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    let text = |id| capture.names.get(id);
    found.compact_sort_by(|(a_id, a), (b_id, b)| {
        b.0.total_cmp(&a.0).then_with(|| text(*a_id).cmp(text(*b_id)))
    });
    let others = found.len().saturating_sub(USERS);
    let sum = |found: &[(NameId, (f64, Vec<ColumnSums>))]| found.iter().map(|(_, (sum, _))| sum).sum::<f64>();
    let of_others = sum(found.get(USERS..).unwrap_or_default()) / sum(&found).max(f64::MIN_POSITIVE);
    let users = found.into_iter().take(USERS).map(|(id, (_, cells))| {
        let text = capture.names.get(id);
        let name = match of {
            Of::Cgroup => capture.meta.owner(text).map_or(text, |owner| &owner.name).to_owned(),
            Of::Process => text.to_owned(),
            Of::Run => "the run".to_owned(),
        };
        User { name, cells }
    });
    let users = users.collect();
    let seconds = epochs.chunks(each).map(|chunk| measured(capture, event, chunk)).collect();
    Timeline { columns, seconds, users, others, of_others }
}

/// Returns the part of some epochs in which an event counted on any CPU, in seconds. A CPU that is
/// offline does nothing, so only the time without any CPU is unknown.
fn measured(capture: &Capture, event: usize, epochs: &[Epoch]) -> f64 {
    let gaps = capture.meta.events.get(event).map_or(&[][..], |info| &info.ledger.gaps);
    let cpus = u64::from(capture.meta.machine.cpus.max(1));
    let of_epoch = |epoch: &Epoch| {
        let length = epoch.end_ns.saturating_sub(epoch.start_ns);
        let missing =
            |gap: &CpuGap| gap.end_ns.min(epoch.end_ns).saturating_sub(gap.start_ns.max(epoch.start_ns));
        let missing = gaps.iter().map(missing).fold(0, u64::saturating_add);
        let is_dark = missing.saturating_mul(100) >= length.saturating_mul(cpus).saturating_mul(99);
        if is_dark { 0.0 } else { length as f64 / 1e9 }
    };
    epochs.iter().map(of_epoch).sum()
}
