//! What a worker is told to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of work with known samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Each load's address is what the load before it has found, in an order that no prefetcher
    /// knows.
    Chase,
    /// Stores, one cache line after the other.
    Store,
    /// Two threads, each reads and writes its own word of one cache line.
    Share,
    /// A branch on random bits, and one that always goes the same way.
    Branch,
    /// Touches each page of a buffer, gives the buffer back, and begins again.
    Touch,
}

/// Work, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// What to do.
    pub work: Work,
    /// Bytes of the buffer, a power of two and at least a page.
    pub bytes: u64,
    /// One CPU for each thread.
    pub cpus: Vec<u32>,
}
