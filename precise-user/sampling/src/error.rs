//! Failures that end a command: what failed, why, and what to do.

use std::fmt;

precise_model::catalogue! {
    /// Kind of a failure. Each has an exit code of its own, so that a script can tell them apart.
    ///
    /// Codes are part of the interface: never renumbered, never reused. Those that only precise gives are 65 and above, as
    /// `record -- command` otherwise ends with the command's own code.
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

/// A way out that some program offers its users by a flag. The library says it in plain words; a program that has flags names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A smaller cell table.
    FewerCells,
    /// A smaller table of call chains.
    FewerChains,
    /// The precision that there is, where precise samples were required.
    AnyPrecision,
    /// A lower precision level, or another event.
    LowerPrecision,
    /// A higher limit of open files, or fewer CPUs.
    FewerCpus,
    /// A lower frequency, or a higher limit of the kernel's.
    LowerFrequency,
    /// Whole CPUs, with a filter in place of a target.
    WholeCpus,
    /// No grouping by page size.
    NoPageSizes,
    /// No call chains.
    NoChains,
    /// Another address to listen at.
    OtherAddress,
}

impl Remedy {
    /// Every remedy.
    pub const ALL: [Self; 10] = [
        Self::FewerCells,
        Self::FewerChains,
        Self::AnyPrecision,
        Self::LowerPrecision,
        Self::FewerCpus,
        Self::LowerFrequency,
        Self::WholeCpus,
        Self::NoPageSizes,
        Self::NoChains,
        Self::OtherAddress,
    ];
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FewerCells => "Use fewer cells.",
            Self::FewerChains => "Use fewer call chains.",
            Self::AnyPrecision => {
                "Sample as precisely as possible; `precise list` shows which events can be precise."
            }
            Self::LowerPrecision => "Lower the required precision, or use an event that `precise list` shows as precise.",
            Self::FewerCpus => "Raise the limit (ulimit -n), or sample fewer CPUs.",
            Self::LowerFrequency => {
                "The kernel lowers kernel.perf_event_max_sample_rate when interrupts take too long. Use a lower \
                 frequency, or raise the sysctl."
            }
            Self::WholeCpus => "Sample whole CPUs while the program runs, and filter its samples by name or process id.",
            Self::NoPageSizes => "Remove the page size from the group keys.",
            Self::NoChains => {
                "Record without call chains, or import what `perf record -g` writes (`precise import`)."
            }
            Self::OtherAddress => "Another program, perhaps another precise, may use this port: choose another address.",
        })
    }
}

/// A failure with its class: a sentence that says what and why, and one that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub class: Class,
    /// What failed, and why.
    pub what: String,
    /// What to do; empty when there is nothing to say.
    pub advice: String,
    /// The way out that `advice` names, where a program may have a flag for it.
    pub remedy: Option<Remedy>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(class: Class, what: impl Into<String>) -> Self {
        Self { class, what: what.into(), advice: String::new(), remedy: None }
    }

    /// Adds a way out. Its words are the advice.
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self.advise(remedy.to_string())
    }

    /// Adds what to do.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n{}", self.advice) }
    }
}

impl std::error::Error for Failure {}

/// A system call that failed, with its name.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct SyscallError {
    /// The call, as its manual page is named.
    pub call: &'static str,
    /// What the kernel said.
    #[source]
    pub source: std::io::Error,
}

impl SyscallError {
    /// The error of the call that has just failed (`errno`).
    pub fn last(call: &'static str) -> Self {
        Self { call, source: std::io::Error::last_os_error() }
    }

    /// `errno`, or 0.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

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
