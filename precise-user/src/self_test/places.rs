//! The places where the samples of a task must be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of addresses; its end is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// First address.
    pub begin: u64,
    /// Address after the last one.
    pub end: u64,
}

impl Span {
    /// Returns whether `address` is in the range.
    pub fn has(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }
}

/// The places that a worker reports before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerPlaces {
    /// Exact addresses of the loop in which the worker spends its time.
    pub function: Span,
    /// Addresses of the instructions whose samples are expected.
    pub instructions: Vec<u64>,
    /// Address of the branch that always goes the same way; only for the task with branches.
    pub predictable: Option<u64>,
    /// The memory that these instructions access, if any.
    pub data: Option<Span>,
}
