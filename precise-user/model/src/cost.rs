//! What a run cost the machine, as a capture keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Nanoseconds of a sample that were measured, of the most expensive event: from its preparation to the end of the program. 0
    /// where none was.
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
