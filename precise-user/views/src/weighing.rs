//! The weights of the samples of an event.

use super::stats::{Samples, Weight};
use precise_model::{Capture, Dimension, EventInfo, Row};

/// The rules for adding up the rows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighing {
    /// Whether a sample weighs the number of events that it stands for: true if the governor
    /// changed the period. In frequency mode the kernel changes the period all the time, but the
    /// user asked for N samples a second, so each sample weighs 1.
    by_events: bool,
    /// Whether the run recorded latency buckets.
    pub buckets: bool,
}

impl Weighing {
    /// Returns the rules for an event of a capture.
    pub fn of(capture: &Capture, event: usize) -> Self {
        Self {
            by_events: capture.meta.events.get(event).is_some_and(EventInfo::governed),
            buckets: capture.meta.dimensions.contains(&Dimension::Latency),
        }
    }

    /// Returns the samples of a row with their weight. The governor changes periods only between
    /// epochs, and a row belongs to one epoch. If a row straddles a change, or rows were merged
    /// later, only the average period is known.
    pub fn samples(self, row: &Row) -> Samples {
        Samples::each(row.measures.count, self.one(row))
    }

    /// Returns the sum of the latencies of a row, each multiplied by the weight of its sample.
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
