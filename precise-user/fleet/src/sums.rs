//! What the rows of a group add up to.

use precise_capture::FlatColumn;

use crate::fold::cycles;
use crate::question::FleetQuestion;
use crate::sources::PartChoice;
use crate::spread::Spread;
use crate::tables;

/// What the rows of a group add up to.
pub(crate) trait Gathered: Default + Clone {
    /// Returns which parts have the rows of a question, of a tier.
    fn parts(question: &FleetQuestion, tier: u8) -> PartChoice;
    /// The columns that [`Self::add`] reads, after those that all questions need.
    const COLUMNS: &'static [FlatColumn];
    /// Adds a row, of which each sample stands for `scale`.
    fn add(&mut self, row: GatheredRow);
    fn merge(&mut self, other: Self);
    fn weight(&self) -> u64;
    /// About how many bytes it takes.
    fn bytes(&self) -> usize;
}

/// A row of a part.
#[derive(Clone, Copy)]
pub(crate) struct GatheredRow {
    pub scale: u64,
    pub group: u32,
    pub count: u64,
    pub weight: u64,
    /// The values of [`Gathered::COLUMNS`].
    pub own: [Option<u64>; 2],
}

/// The sums of rows of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampleSums {
    /// The samples that were read.
    pub kept: u64,
    /// The samples that these stand for.
    pub samples: u64,
    pub spread: Spread,
    /// The samples that have a latency, of those that were read, and the sum of their latencies.
    pub timed: u64,
    pub latency: u64,
    pub latency_max: u32,
}

impl SampleSums {
    /// Returns the mean latency; `None` if no sample has one.
    pub fn average(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.latency as f64 / self.timed as f64)
    }
}

impl Gathered for SampleSums {
    const COLUMNS: &'static [FlatColumn] = &[tables::LATENCY_SUM, tables::LATENCY_MAX];

    fn parts(question: &FleetQuestion, tier: u8) -> PartChoice {
        question.samples(tier)
    }

    fn add(&mut self, row: GatheredRow) {
        self.kept = self.kept.saturating_add(row.count);
        self.samples = self.samples.saturating_add(row.count.saturating_mul(row.scale));
        self.spread.add(row.group, row.count, row.weight);
        let [latency, most] = row.own;
        if let Some(latency) = latency {
            self.timed = self.timed.saturating_add(row.count);
            self.latency = self.latency.saturating_add(latency);
            self.latency_max = self.latency_max.max(cycles(most));
        }
    }

    fn merge(&mut self, other: Self) {
        self.kept = self.kept.saturating_add(other.kept);
        self.samples = self.samples.saturating_add(other.samples);
        self.spread.merge(&other.spread);
        self.timed = self.timed.saturating_add(other.timed);
        self.latency = self.latency.saturating_add(other.latency);
        self.latency_max = self.latency_max.max(other.latency_max);
    }

    fn weight(&self) -> u64 {
        self.spread.sum()
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The sums of rows of latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LatencySums {
    pub samples: u64,
    pub whole: Spread,
    /// By the number of the bucket, in order.
    pub buckets: Vec<(u8, Spread)>,
    /// The place of the bucket that was added to last.
    last: usize,
}

impl LatencySums {
    fn bucket(&mut self, bucket: u8) -> Option<&mut Spread> {
        // Rows of one group of nodes are in the order of their buckets.
        let next = self.last.saturating_add(1);
        if self.buckets.get(next).is_some_and(|(known, _)| *known == bucket) {
            self.last = next;
            return self.buckets.get_mut(next).map(|(_, spread)| spread);
        }
        let at = match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => at,
            Err(at) => {
                self.buckets.insert(at, (bucket, Spread::default()));
                at
            }
        };
        self.last = at;
        self.buckets.get_mut(at).map(|(_, spread)| spread)
    }
}

impl Gathered for LatencySums {
    const COLUMNS: &'static [FlatColumn] = &[tables::BUCKET];

    fn parts(question: &FleetQuestion, _tier: u8) -> PartChoice {
        question.latencies()
    }

    fn add(&mut self, row: GatheredRow) {
        let bucket = row.own[0].filter(|bucket| *bucket < precise_common::latency::BUCKETS.into());
        let Some(bucket) = bucket.and_then(|bucket| u8::try_from(bucket).ok()) else { return };
        self.samples = self.samples.saturating_add(row.count);
        let squares = Spread::squares(row.count, row.weight);
        self.whole.add_squared(row.group, row.weight, squares);
        if let Some(spread) = self.bucket(bucket) {
            spread.add_squared(row.group, row.weight, squares);
        }
    }

    fn merge(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.whole.merge(&other.whole);
        for (bucket, spread) in other.buckets {
            if let Some(total) = self.bucket(bucket) {
                total.merge(&spread);
            }
        }
    }

    fn weight(&self) -> u64 {
        self.whole.sum()
    }

    fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u8, Spread)>()
    }
}
