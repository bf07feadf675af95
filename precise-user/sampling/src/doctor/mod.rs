//! What can be said of a machine before anything is sampled: pure functions from its /proc and
//! /sys, read below a [`Root`](crate::machine::Root). What only sampling itself can show is
//! `precise::self_test`'s.

mod around;
mod examine;
mod state;
mod surroundings;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

pub use examine::{Diagnosis, examine};
pub use state::State;
pub use surroundings::Surroundings;

/// What came of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Passed,
    /// Not as it should be.
    Failed,
    /// This machine does not claim to have it.
    NotOffered,
    /// There was too little to tell.
    NotDecided,
}

impl Status {
    /// As reports print it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotOffered => "not available",
            Self::NotDecided => "undecided",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// A few words: "IP on the load".
    pub name: String,
    /// What came of it.
    pub status: Status,
    /// What was found, with its unit: "99.8% of 1,213"; empty where there is nothing.
    pub found: String,
    /// Why it is what it is, or what was expected, in a sentence; may be empty for what passed.
    pub reason: String,
    /// The command that would change it, where there is one. Nobody runs it but the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// A check that came to `status`.
    pub fn new(name: &str, status: Status, found: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status, found: found.into(), reason: reason.into(), fix: None }
    }

    /// The same, with the command that would change it.
    pub fn fix(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }
}
