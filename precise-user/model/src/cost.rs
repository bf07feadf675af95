//! The overhead of a run, as a capture stores it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digits::{bytes, counted, thousands};

/// The overhead of a run. Fields that end in `_ppm` are in millionths (ppm) of one CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// The overhead limit per CPU, in ppm; `None` if nothing governed the run.
    pub budget_ppm: Option<u64>,
    /// The overhead on the CPU that sampled most, in ppm: its samples, and its part of reading the
    /// tables.
    pub busiest_ppm: u64,
    /// The overhead on the CPU that sampled most in the most expensive epoch, in ppm.
    pub worst_epoch_ppm: u64,
    /// The cost of reading the tables, in ppm of one CPU.
    pub reading_ppm: u64,
    /// The CPU time of the whole process and of the one that reads files for it, symbolization
    /// included, in ppm. May exceed one million if several CPUs were used.
    pub process_ppm: u64,
    /// The part of `process_ppm` that the threads of the process took that look up names and follow
    /// processes. 0 in captures of older versions.
    #[serde(default)]
    pub naming_ppm: u64,
    /// The part of `process_ppm` that the process took that reads files for it. 0 in captures of
    /// older versions.
    #[serde(default)]
    pub files_ppm: u64,
    /// The unwind tables; `None` if no stack was unwound by tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwinding: Option<UnwindUse>,
    /// The measured part of the cost of one sample of the most expensive event, in nanoseconds:
    /// from the filter's decision to the end of the program; with call chains, physical addresses
    /// or page sizes, from the preparation of the sample. 0 if nothing was measured.
    pub sample_measured_ns: u64,
    /// The assumed cost of the part of a sample that is not measured, the interrupt, in
    /// nanoseconds.
    pub sample_assumed_ns: u64,
}

/// The unwind tables of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UnwindUse {
    /// The number of files whose tables were made or read from disk.
    pub tables: u64,
    /// The number of these that an earlier run had made and kept on disk.
    pub cached: u64,
    /// The time that this took, in nanoseconds.
    pub made_ns: u64,
    /// The bytes of memory that tables and mappings of processes took at the end.
    pub used: u64,
    /// The bytes of memory that there were for them.
    pub room: u64,
}

impl fmt::Display for UnwindUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unwind tables of {}", counted(self.tables, "file"))?;
        if self.cached > 0 {
            write!(f, " ({} kept by earlier runs)", thousands(self.cached))?;
        }
        let ms = self.made_ns as f64 / 1e6;
        write!(f, " took {ms:.1} ms and {} of {}", bytes(self.used), bytes(self.room))
    }
}

/// A change of an event's sample rate during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// The time of the change, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// The new sample period: events per sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// The new sample frequency, in samples per second per CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency: Option<u64>,
}

/// The reason why an event was stopped before the run ended: it took far more samples than
/// requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runaway {
    /// The time when the event was stopped, in nanoseconds since it started.
    pub after_ns: u64,
    /// The CPU that saw the most samples.
    pub cpu: u32,
    /// The last sample rate of this CPU, in samples per second.
    pub per_second: u64,
    /// The sample rate that was requested at that time, in samples per second per CPU.
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
