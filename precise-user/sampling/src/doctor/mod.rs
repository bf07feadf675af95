//! Checks of a machine before anything is sampled: pure functions of its /proc and /sys, read below
//! a [`Root`](crate::machine::Root), and of the process that would read files
//! ([`ReaderConfinement`]). Checks that have to sample are in `precise::self_test`.

mod around;
mod examine;
mod naming;
mod state;
mod surroundings;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

pub use examine::{Diagnosis, examine};
pub use naming::ReaderConfinement;
pub use state::MachineState;
pub use surroundings::Surroundings;

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// The check found no problem.
    Passed,
    /// The check found a problem.
    Failed,
    /// This machine does not claim to support it.
    NotOffered,
    /// There was not enough information to decide.
    NotDecided,
}

impl CheckStatus {
    /// Returns the status as reports print it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotOffered => "not available",
            Self::NotDecided => "undecided",
        }
    }
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The name of the check, in a few words: "IP on the load".
    pub name: String,
    /// The result.
    pub status: CheckStatus,
    /// The value found, with its unit: "99.8% of 1,213". Empty if there is none.
    pub found: String,
    /// Why the value is what it is, or what was expected, as a sentence. May be empty if the check
    /// passed.
    pub reason: String,
    /// The command that would fix the problem, if there is one. Only the user runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// Creates a check with this result and no fix.
    pub fn new(name: &str, status: CheckStatus, found: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status, found: found.into(), reason: reason.into(), fix: None }
    }

    /// Sets the command that would fix the problem.
    pub fn fix(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }
}
