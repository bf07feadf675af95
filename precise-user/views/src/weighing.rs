//! What the samples of an event weigh.

use super::stats::{Samples, Weight};
use precise_model::{Capture, Dimension, EventInfo, Row};

/// How the rows of an event are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighing {
    /// Whether samples weigh what they stand for: where the governor changed the period. In
    /// frequency mode the kernel changes it all the time, and who chose that asked for so many
    /// samples a second: each weighs 1.
    by_events: bool,
    /// Whether the run grouped by latency.
    pub buckets: bool,
}

impl Weighing {
    /// Of an event of a capture.
    pub fn of(capture: &Capture, event: usize) -> Self {
        Self {
            by_events: capture.meta.events.get(event).is_some_and(EventInfo::governed),
            buckets: capture.meta.dimensions.contains(&Dimension::Latency),
        }
    }

    /// The samples of a row. The governor changes periods between epochs, and rows are of one
    /// epoch: of those that straddle a change, or were joined since, it is the average that is
    /// known.
    pub fn samples(self, row: &Row) -> Samples {
        Samples::each(row.measures.count, self.one(row))
    }

    /// The latencies of a row's samples, each as often as its sample weighs.
    pub fn latency(self, row: &Row) -> Weight {
        Weight::at_most(row.measures.latency_sum, row.measures.latency_max).times(self.one(row))
    }

    /// What one sample of a row weighs.
    fn one(self, row: &Row) -> f64 {
        match self.by_events {
            true => row.measures.period_sum as f64 / row.measures.count.max(1) as f64,
            false => 1.0,
        }
    }
}
