//! The samples of CPUs that had nothing to do.

use schemars::JsonSchema;
use serde::Serialize;

/// The idle time in the samples of an event that counts time or cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Idle {
    /// The number of samples that the idle task had while it waited.
    pub samples: u64,
    /// The share of the CPUs' time in which they were idle, 0 to 1: measured by the kernel. If that
    /// is not known, the share of the event that these samples stand for.
    pub share: f64,
    /// Whether the share is one of the CPUs' time. If not, it is one of the event's own count.
    pub of_time: bool,
    /// Whether tables and findings include these samples.
    pub included: bool,
}
