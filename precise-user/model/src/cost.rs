//! What a run cost the machine, as a capture keeps it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digits::thousands;

/// What a run cost. Parts are in millionths (ppm) of one CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// What it was allowed to cost on each CPU; `None` where nothing governed it.
    pub budget_ppm: Option<u64>,
    /// What it cost on the CPU that sampled most: sampling, and its part of reading the tables.
    pub busiest_ppm: u64,
    /// The same in the most expensive epoch.
    pub worst_epoch_ppm: u64,
    /// Reading the tables, on one CPU.
    pub reading_ppm: u64,
    /// Everything that the process did, naming included; several CPUs may add up to more than one.
    pub process_ppm: u64,
    /// Nanoseconds of a sample that were measured, of the most expensive event: from its
    /// preparation to the end of the program. 0 where none was.
    pub sample_measured_ns: u64,
    /// Nanoseconds that were assumed for the rest of it, which nothing measures: the interrupt.
    pub sample_assumed_ns: u64,
}

/// A change of an event's rate during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// When, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// Events per sample from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Samples per second and CPU from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency: Option<u64>,
}

/// Why an event was stopped before the run ended: it took far more samples than were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runaway {
    /// When it was stopped, in nanoseconds since it began.
    pub after_ns: u64,
    /// The CPU that saw most.
    pub cpu: u32,
    /// Samples per second that this CPU saw at last.
    pub per_second: u64,
    /// Samples per second and CPU that were asked for at that time.
    pub asked_per_second: u64,
}

impl fmt::Display for Runaway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stopped after {:.1} s: CPU {} took {} samples a second, and {} were asked for",
            self.after_ns as f64 / 1e9,
            self.cpu,
            thousands(self.per_second),
            thousands(self.asked_per_second)
        )
    }
}
