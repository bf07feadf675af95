//! The tasks of workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of work with known samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Loads: the address of each load is the result of the previous one, in an order that no
    /// prefetcher predicts.
    Chase,
    /// Stores to one cache line after the other.
    Store,
    /// Two threads; each reads and writes its own word of the same cache line.
    Share,
    /// A branch on random bits, and a branch that always goes the same way.
    Branch,
    /// Touches each page of a buffer, returns the buffer to the kernel, and starts again.
    Touch,
}

/// A kind of work, with the size of its buffer and its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The kind of work.
    pub work: Work,
    /// Size of the buffer in bytes: a power of two, and at least a page.
    pub bytes: u64,
    /// CPU numbers, one for each thread.
    pub cpus: Vec<u32>,
}
