//! The weights of an event's samples.

use super::stats::{Samples, Weight};
use precise_model::{Capture, Dimension, EventInfo, Row};

/// Decides how the rows of an event are weighted in sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighing {
    /// Whether a sample weighs as many events as it stands for. This is the case if the governor
    /// changed the period. In frequency mode the kernel changes the period all the time, but the
    /// user asked for a number of samples per second, so each sample weighs 1.
    by_events: bool,
    /// Whether the run recorded latency as a dimension.
    pub buckets: bool,
}

impl Weighing {
    /// Returns the weighting of an event of a capture.
    pub fn of(capture: &Capture, event: usize) -> Self {
        Self {
            by_events: capture.meta.events.get(event).is_some_and(EventInfo::governed),
            buckets: capture.meta.dimensions.contains(&Dimension::Latency),
        }
    }

    /// Returns the weighted samples of a row. The governor changes periods between epochs, and a
    /// row belongs to one epoch. For rows that straddle a change, or were merged later, only the
    /// average weight is known.
    pub fn samples(self, row: &Row) -> Samples {
        Samples::each(row.measures.count, self.one(row))
    }

    /// Returns the weighted latencies of a row's samples.
    pub fn latency(self, row: &Row) -> Weight {
        Weight::at_most(row.measures.latency_sum, row.measures.latency_max).times(self.one(row))
    }

    /// Returns the weight of one sample of a row.
    fn one(self, row: &Row) -> f64 {
        match self.by_events {
            true => row.measures.period_sum as f64 / row.measures.count.max(1) as f64,
            false => 1.0,
        }
    }
}
