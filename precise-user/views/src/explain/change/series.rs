//! What each cgroup (or process) did, by time.

use precise_common::data_src::Level;
use precise_common::latency;
use precise_model::{Capture, Dimension, Name, NameId, Row};
use rustc_hash::FxHashMap;
use std::ops::Range;

use super::interval::Points;
use crate::stats::{Histogram, Samples};

/// The largest number of columns; more epochs share them.
const COLUMNS: usize = 120;
/// The smallest number of columns in which a change can be told.
pub const FEWEST: usize = 12;
/// The number of cgroups that are looked at: those with the most samples.
pub const USERS: usize = 16;

/// What happened in one column.
#[derive(Clone, Default)]
pub struct Cell {
    /// The samples, by the events that they stand for.
    pub weight: f64,
    /// The samples with a latency.
    pub latencies: Histogram,
    timed: f64,
    log_sum: f64,
    /// The samples that tell where they were served, and those served behind the caches.
    pub served: f64,
    pub far: f64,
}

impl Cell {
    fn add(&mut self, row: &Row, weight: f64) {
        self.weight += weight;
        if let Some(bucket) = row.latency_bucket {
            self.latencies
                .add(bucket, Samples::each(row.measures.count, weight / row.measures.count.max(1) as f64));
            self.timed += weight;
            self.log_sum += weight * latency::middle(bucket.into()).max(1.0).ln();
        }
        if row.data_src != 0 {
            let source = row.data_source();
            if source.level != Level::Na {
                self.served += weight;
                self.far += if is_far(source.level) { weight } else { 0.0 };
            }
        }
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.latencies.merge(&other.latencies);
        self.timed += other.timed;
        self.log_sum += other.log_sum;
        self.served += other.served;
        self.far += other.far;
    }
}

/// Returns whether a level is memory and not a cache.
pub fn is_far(level: Level) -> bool {
    matches!(level, Level::Ram | Level::Pmem | Level::Cxl)
}

/// A cgroup or process, column by column.
pub struct User {
    pub name: String,
    pub cells: Vec<Cell>,
}

/// The measures of a user that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Samples per second.
    Rate,
    /// The average logarithm of the latency.
    Latency,
    /// The share of accesses as slow as the slowest twentieth of the whole run.
    Tail,
    /// The share of accesses that went to memory.
    Memory,
}

impl Measure {
    pub const ALL: [Self; 4] = [Self::Rate, Self::Latency, Self::Tail, Self::Memory];
}

impl User {
    /// Returns the sums over columns.
    pub fn sum(&self, columns: impl Iterator<Item = usize>) -> Cell {
        let mut sum = Cell::default();
        columns.filter_map(|column| self.cells.get(column)).for_each(|cell| sum.join(cell));
        sum
    }

    /// Returns a measure by column; `None` if there are too few samples. Each value is transformed
    /// so that its variance does not depend on its size.
    pub fn points(&self, measure: Measure, seconds: &[f64]) -> Option<Points> {
        /// A change of a rate needs fewer samples than one of a percentile.
        const FEWEST_SAMPLES: f64 = 100.0;
        let all = self.sum(0..self.cells.len());
        let enough = match measure {
            Measure::Rate => all.weight,
            Measure::Latency | Measure::Tail => all.timed / 2.0,
            Measure::Memory => all.served / 2.0,
        };
        if enough < FEWEST_SAMPLES {
            return None;
        }
        let slow = all.latencies.percentile(0.95).map_or(u32::MAX, |percentile| percentile.cycles as u32);
        let usual = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let share = |part: f64, whole: f64| (part / whole).clamp(0.0, 1.0).sqrt().asin();
        let points = self.cells.iter().zip(seconds).map(|(cell, seconds)| match measure {
            Measure::Rate => ((cell.weight * usual / seconds.max(1e-9)).sqrt(), 1.0),
            Measure::Latency if cell.timed > 0.0 => (cell.log_sum / cell.timed, cell.timed),
            Measure::Tail if cell.timed > 0.0 => {
                let buckets = cell.latencies.buckets();
                let tail = buckets.filter(|(bucket, _)| latency::lower(bucket + 1) > u64::from(slow));
                (share(tail.map(|(_, samples)| samples.weight.sum).sum(), cell.timed), cell.timed)
            }
            Measure::Memory if cell.served > 0.0 => (share(cell.far, cell.served), cell.served),
            _ => (0.0, 0.0),
        });
        Some(points.collect())
    }
}

/// The users of one event by time.
pub struct Timeline {
    /// Start and end of each column, in nanoseconds since the start of the run.
    pub columns: Vec<Range<u64>>,
    /// The length of each column in seconds.
    pub seconds: Vec<f64>,
    pub users: Vec<User>,
    /// The number of users that are not among them.
    pub others: usize,
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
    let mut found: FxHashMap<NameId, (f64, Vec<Cell>)> = FxHashMap::default();
    for row in rows() {
        let name = match of {
            Of::Cgroup => row.cgroup,
            Of::Process => row.process,
            Of::Run => Name::Known(NameId::default()),
        };
        let Name::Known(id) = name else { continue };
        let count = row.measures.count as f64;
        let weight = if period > 0.0 { row.measures.period_sum as f64 / period } else { count };
        let (sum, cells) = found.entry(id).or_insert_with(|| (0.0, vec![Cell::default(); columns.len()]));
        *sum += weight;
        if let Some(cell) = cells.get_mut(row.epoch as usize / each) {
            cell.add(row, weight);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|(a_id, a), (b_id, b)| b.0.total_cmp(&a.0).then(a_id.cmp(b_id)));
    let others = found.len().saturating_sub(USERS);
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
    let seconds =
        columns.iter().map(|column| (column.end - column.start.min(column.end)) as f64 / 1e9).collect();
    Timeline { columns, seconds, users, others }
}
