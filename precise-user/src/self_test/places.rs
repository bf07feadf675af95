//! Where the samples of a task must lie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Addresses, the end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The first.
    pub begin: u64,
    /// The one behind the last.
    pub end: u64,
}

impl Span {
    /// Whether `address` is one of them.
    pub fn has(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }
}

/// What a worker says of itself before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Places {
    /// The loop that it spends its time in, to the instruction.
    pub function: Span,
    /// The instructions whose samples are wanted.
    pub instructions: Vec<u64>,
    /// Of the task with branches: the branch that goes the same way each time.
    pub predictable: Option<u64>,
    /// The memory that these instructions touch.
    pub data: Option<Span>,
}
