//! Failures that end a command: what failed, why, and what to do.

use std::fmt;

/// Kind of a failure. Each has an exit code of its own, so that a script can tell them apart.
///
/// Codes are part of the interface: never renumbered, never reused. Those that only precise gives are 65 and above, as
/// `record -- command` otherwise ends with the command's own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Something went wrong that is none of the others: a file, a full disk, a bug.
    Failed,
    /// The command line makes no sense. The same code as clap uses.
    Usage,
    /// The user may not do this.
    Permission,
    /// This machine, kernel or PMU cannot do this.
    Unsupported,
    /// A file is not what it should be.
    BadFile,
    /// It ran, but a requirement (`--precise require`, `--require …`) was not met.
    Unmet,
    /// It ran, and not one sample arrived.
    NoSamples,
    /// The kill switch is thrown: it did not begin, or was ended by it.
    Stopped,
    /// `precise check` found what must not be.
    Worse,
    /// `precise check` has too few samples to tell.
    CannotTell,
}

impl Class {
    /// Every class, in the order of its code.
    pub const ALL: [Self; 10] = [
        Self::Failed,
        Self::Usage,
        Self::Permission,
        Self::Unsupported,
        Self::BadFile,
        Self::Unmet,
        Self::NoSamples,
        Self::Stopped,
        Self::Worse,
        Self::CannotTell,
    ];

    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Permission => 65,
            Self::Unsupported => 66,
            Self::BadFile => 67,
            Self::Unmet => 68,
            Self::NoSamples => 69,
            Self::Stopped => 70,
            Self::Worse => 71,
            Self::CannotTell => 72,
        }
    }

    /// One line for the table of exit codes.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Failed => "the command failed: a file, a disk, a bug",
            Self::Usage => "the command line makes no sense",
            Self::Permission => "a permission is missing",
            Self::Unsupported => "this machine, kernel or PMU cannot do it",
            Self::BadFile => "a file is unreadable, truncated or not a capture",
            Self::Unmet => "it ran, but a requirement was not met",
            Self::NoSamples => "it ran, and not one sample arrived",
            Self::Stopped => "the kill switch kept it from running, or ended it",
            Self::Worse => "`precise check` found what --fail-on names",
            Self::CannotTell => "`precise check` has too few samples to tell",
        }
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
            Self::FewerCells => "Ask for fewer cells.",
            Self::FewerChains => "Ask for fewer call chains.",
            Self::AnyPrecision => {
                "Ask for what precision there is, or see what can be precise with `precise list`."
            }
            Self::LowerPrecision => "Ask for less precision, or another event: `precise list` shows them.",
            Self::FewerCpus => "Raise the limit (ulimit -n), or sample fewer CPUs.",
            Self::LowerFrequency => {
                "The kernel lowers kernel.perf_event_max_sample_rate when interrupts take too long. Ask for a lower \
                 frequency, or raise the sysctl."
            }
            Self::WholeCpus => "Sample whole CPUs while the program runs, and filter by its name or process id.",
            Self::NoPageSizes => "Do not group by page size.",
            Self::NoChains => {
                "Record without call chains. (`perf record -g` works here, and `precise import` reads what it writes.)"
            }
            Self::OtherAddress => "Another program may have it, perhaps another precise: choose another address.",
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
