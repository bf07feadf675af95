//! Failures that end a command: what failed, why, what to do, and the exit code.

use std::fmt;

pub use precise_sampling::error::{ErrorClass, Remedy, SamplingError, SyscallError};

precise_model::catalogue! {
    /// Kind of a failure. Each has its own exit code, so that a script can tell them apart.
    ///
    /// Codes are part of the interface: never renumbered, never reused. Those that only precise
    /// gives are 65 and above, as `record -- command` otherwise ends with the command's own code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Class: (u8, &'static str) {
        /// Something went wrong that is none of the others: a file, a full disk, a bug.
        Failed => (1, "the command failed: a file, a disk, or a bug"),
        /// The command line makes no sense. The same code as clap uses.
        Usage => (2, "the command line is invalid"),
        /// The user may not do this.
        Permission => (65, "a permission is missing"),
        /// This machine, kernel or PMU cannot do this.
        Unsupported => (66, "this machine, kernel or PMU does not support it"),
        /// A file is not what it should be.
        BadFile => (67, "a file is unreadable, truncated, or not a capture"),
        /// It ran, but a requirement (`--precise require`, `--require …`) was not met.
        Unmet => (68, "the run succeeded, but a requirement (--require) was not met"),
        /// It ran, and no samples arrived.
        NoSamples => (69, "the run succeeded, but no samples arrived"),
        /// The kill switch is thrown: it did not begin, or was ended by it.
        Stopped => (70, "the kill switch prevented or stopped the run"),
        /// `precise check` found what must not be.
        Worse => (71, "`precise check` found a condition of --fail-on"),
        /// `precise check` has too few samples to tell.
        CannotTell => (72, "`precise check` has too few samples to decide"),
    }
}

impl Class {
    /// The exit code.
    pub const fn code(self) -> u8 {
        self.entry().0
    }

    /// One line for the table of exit codes.
    pub const fn meaning(self) -> &'static str {
        self.entry().1
    }
}

impl From<ErrorClass> for Class {
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

/// A failure with its class: a sentence that says what and why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub class: Class,
    /// What failed, and why.
    pub what: String,
    /// What to do; empty when there is nothing to say.
    pub advice: String,
    /// A way out that the command line has words for.
    pub remedy: Option<Remedy>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(class: Class, what: impl Into<String>) -> Self {
        Self { class, what: what.into(), advice: String::new(), remedy: None }
    }

    /// Adds what to do.
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
        for (i, class) in Class::ALL.iter().enumerate() {
            assert!(Class::ALL[i + 1..].iter().all(|other| other.code() != class.code()));
        }
    }
}
