//! Failures that end a command: what failed and why, what to do, and the exit code.

use std::fmt;

pub use precise_sampling::error::{ErrorClass, Remedy, SamplingError, SyscallError};

precise_model::catalogue! {
    /// The class of a failure. Each class has its own exit code, so that scripts can tell them
    /// apart.
    ///
    /// The codes are part of the interface: they are never renumbered or reused. Codes specific to
    /// precise start at 65, because `record -- command` otherwise ends with the command's own code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ExitClass: (u8, &'static str) {
        /// Any other failure: a file, a full disk, a bug.
        Failed => (1, "the command failed: a file, a disk, or a bug"),
        /// The command line is invalid. clap uses the same code.
        Usage => (2, "the command line is invalid"),
        /// The user lacks a permission.
        Permission => (65, "a permission is missing"),
        /// This machine, its kernel or its PMU does not support the request.
        Unsupported => (66, "this machine, kernel or PMU does not support it"),
        /// A file is unreadable, truncated, or not a capture.
        BadFile => (67, "a file is unreadable, truncated, or not a capture"),
        /// The run succeeded, but a requirement (`--precise require`, `--require …`) was not met.
        Unmet => (68, "the run succeeded, but a requirement (--require) was not met"),
        /// The run succeeded, but no samples arrived, or the filter rejected all of them.
        NoSamples => (69, "the run succeeded, but has no samples"),
        /// The kill switch is set: it prevented the run, or stopped it.
        Stopped => (70, "the kill switch prevented or stopped the run"),
        /// `precise check` found a condition of `--fail-on`.
        Worse => (71, "`precise check` found a condition of --fail-on"),
        /// `precise check` has too few samples to decide.
        CannotTell => (72, "`precise check` has too few samples to decide"),
    }
}

impl ExitClass {
    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        self.entry().0
    }

    /// Returns the line for the table of exit codes.
    pub const fn meaning(self) -> &'static str {
        self.entry().1
    }
}

impl From<ErrorClass> for ExitClass {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Invalid => Self::Usage,
            ErrorClass::Permission => Self::Permission,
            ErrorClass::Unsupported => Self::Unsupported,
            ErrorClass::BadFile => Self::BadFile,
            ErrorClass::Unmet => Self::Unmet,
            ErrorClass::Stopped => Self::Stopped,
            ErrorClass::Failed => Self::Failed,
        }
    }
}

/// A failure of a command: its class, a sentence that says what failed and why, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Class of the failure.
    pub class: ExitClass,
    /// What failed, and why.
    pub what: String,
    /// What to do; empty if there is no advice.
    pub advice: String,
    /// A remedy that the command line has words for.
    pub remedy: Option<Remedy>,
}

impl Failure {
    /// Creates a failure without advice.
    pub fn new(class: ExitClass, what: impl Into<String>) -> Self {
        Self { class, what: what.into(), advice: String::new(), remedy: None }
    }

    /// Adds advice.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

impl From<SamplingError> for Failure {
    fn from(error: SamplingError) -> Self {
        Self { remedy: error.way_out(), ..Self::new(error.class().into(), error.with_causes()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n{}", self.advice) }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_unique() {
        for (i, class) in ExitClass::ALL.iter().enumerate() {
            assert!(ExitClass::ALL[i + 1..].iter().all(|other| other.code() != class.code()));
        }
    }
}
