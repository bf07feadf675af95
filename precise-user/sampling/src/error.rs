//! Errors of a run: what failed, of which kind it is, what caused it, and the way out.
//!
//! The sentences name values, not flags. A program gives each [`ErrorClass`] an exit code, and each
//! [`Remedy`] words of its own, which name its flags.
//!
//! ```
//! use std::error::Error as _;
//!
//! use precise_sampling::error::{ErrorClass, Remedy};
//! use precise_sampling::machine::Root;
//! use precise_sampling::run::kill_switch::KillSwitch;
//!
//! let file = std::env::temp_dir().join(format!("stop-{}", std::process::id()));
//! std::fs::write(&file, "")?;
//! let error = KillSwitch::and(Some(file.clone())).allow().unwrap_err();
//!
//! assert_eq!(error.class(), ErrorClass::Stopped);
//! assert_eq!(error.way_out(), Some(Remedy::AskWhoStopsIt));
//! assert!(error.source().is_none());
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::{error::Error, fmt, io, sync::Arc};

/// Kind of an error: what whoever started the run can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// None of the others: a file, a full disk, a bug.
    Failed,
    /// What was asked for makes no sense, or exceeds a limit.
    Invalid,
    /// A permission is missing.
    Permission,
    /// This machine, kernel or PMU cannot do it.
    Unsupported,
    /// A file is unreadable, truncated, or of another format.
    BadFile,
    /// It is possible, but less precisely than was required.
    Unmet,
    /// The kill switch kept it from running, or ended it.
    Stopped,
}

/// A way out of an error. Programs have the words for it, and the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Give what is missing: `CAP_PERFMON` and `CAP_BPF`, or root.
    GrantCapabilities,
    /// Run outside of the user namespace, whose capabilities do not count elsewhere.
    LeaveUserNamespace,
    /// Allow perf_event_open(2) and bpf(2) in the container's seccomp profile.
    AllowSystemCalls,
    /// See what restricts the process: the doctor's checks, the kernel's log.
    Doctor,
    /// Remove the set-user-ID and set-group-ID bits of the program's file.
    PlainFile,
    /// Lock more memory: the sysctl `kernel.perf_event_mlock_kb`, or `CAP_IPC_LOCK`.
    MoreLockedMemory,
    /// Let this user read the kernel's type information.
    ReadableTypes,
    /// Run a kernel that has type information (`CONFIG_DEBUG_INFO_BTF`).
    KernelTypes,
    /// Report the kernel's release: it is too new to be known, or has a verifier that was not met.
    ReportKernel,
    /// Report what was printed: this is a bug.
    ReportBug,
    /// Build the eBPF program again: the embedded one is broken.
    RebuildProgram,
    /// See which events this machine takes.
    SeeEvents,
    /// Open the preset, which opens the auxiliary event as well.
    PresetOpensBoth,
    /// End the program that holds the counter: another profiler, or the NMI watchdog.
    EndOtherProfiler,
    /// Check the ids of processes and threads.
    CheckIds,
    /// Check the command that was to be sampled, and its path.
    CheckCommand,
    /// Leave the term out of the filter.
    LeaveTermOut,
    /// Let the run choose how samples are read.
    AnyReadPath,
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
    /// Ask whoever put the file of the kill switch there.
    AskWhoStopsIt,
    /// Read the capture later: that takes more memory than the end of a run may take.
    ReadLater,
}

/// Why a run could not begin, go on, or end well.
///
/// Its text is a sentence without the cause's own words: those are in
/// [`source`](std::error::Error::source).
#[derive(Clone, Debug)]
pub struct SamplingError {
    class: ErrorClass,
    what: String,
    remedy: Option<Remedy>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl SamplingError {
    pub(crate) fn new(class: ErrorClass, what: impl Into<String>) -> Self {
        Self { class, what: what.into(), remedy: None, cause: None }
    }

    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    pub(crate) fn because(self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(Arc::from(cause.into())), ..self }
    }

    /// Its kind.
    pub const fn class(&self) -> ErrorClass {
        self.class
    }

    /// What to do, where something can be done.
    pub const fn way_out(&self) -> Option<Remedy> {
        self.remedy
    }

    /// The sentence with its causes, each behind a colon.
    pub fn with_causes(&self) -> String {
        let mut text = self.what.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            // The text of a failed call has its `errno` in it.
            cause = error.source().filter(|_| !error.is::<SyscallError>());
        }
        text
    }
}

impl fmt::Display for SamplingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for SamplingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

/// A system call that failed, with its name.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct SyscallError {
    /// The call, as its manual page is named.
    pub call: &'static str,
    /// What the kernel said.
    #[source]
    pub source: io::Error,
}

impl SyscallError {
    /// The error of the call that has just failed (`errno`).
    pub fn last(call: &'static str) -> Self {
        Self { call, source: io::Error::last_os_error() }
    }

    /// `errno`, or 0.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

impl Clone for SyscallError {
    fn clone(&self) -> Self {
        let source = match self.source.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::new(self.source.kind(), self.source.to_string()),
        };
        Self { call: self.call, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_kept_and_said_once() {
        let call = SyscallError { call: "mmap", source: io::Error::from_raw_os_error(libc::ENOMEM) };
        let error = SamplingError::new(ErrorClass::Failed, "the ring cannot be mapped").because(call.clone());
        assert_eq!(error.to_string(), "the ring cannot be mapped");
        assert_eq!(error.with_causes(), format!("the ring cannot be mapped: mmap: {}", call.source));
        let cause = error.source().and_then(|cause| cause.downcast_ref::<SyscallError>());
        assert_eq!(cause.map(SyscallError::errno), Some(libc::ENOMEM));
    }
}
