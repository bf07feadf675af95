//! The stretches of a run in which an event did not count on a CPU.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of a run in which an event of a whole CPU did not count there, because the CPU was
/// offline. The kernel detaches the events of a CPU that goes offline, so the stretch lasts until
/// the event was opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuGap {
    /// The number of the CPU.
    pub cpu: u32,
    /// The start of the stretch, in nanoseconds since the event was started.
    pub start_ns: u64,
    /// The end of the stretch, in nanoseconds since the event was started.
    pub end_ns: u64,
}

impl CpuGap {
    /// Returns the length of the stretch in nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

impl fmt::Display for CpuGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| ns as f64 / 1e9;
        write!(f, "CPU {} from {:.1} s to {:.1} s", self.cpu, seconds(self.start_ns), seconds(self.end_ns))
    }
}
