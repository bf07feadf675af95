//! Errors of a run: what failed, the class of the error, its cause, and a remedy.
//!
//! Error messages name values, not flags. A program maps each [`ErrorClass`] to an exit code, and
//! each [`Remedy`] to its own advice, which names its flags.
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

/// The class of an error, by what the user who started the run can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// Any other failure: a file error, a full disk, a bug.
    Failed,
    /// The request is invalid, or exceeds a limit.
    Invalid,
    /// A permission is missing.
    Permission,
    /// This machine, its kernel or its PMU does not support the request.
    Unsupported,
    /// A file is unreadable, truncated, or in another format.
    BadFile,
    /// Sampling is possible, but less precisely than required.
    Unmet,
    /// The kill switch prevented the run, or ended it.
    Stopped,
}

/// A remedy for an error. Programs supply the advice and name their flags in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Grant the missing capabilities (`CAP_PERFMON` and `CAP_BPF`), or run as root.
    GrantCapabilities,
    /// Run outside the user namespace: its capabilities do not count for perf events and eBPF
    /// programs.
    LeaveUserNamespace,
    /// Allow perf_event_open(2) and bpf(2) in the container's seccomp profile.
    AllowSystemCalls,
    /// Find out what restricts the process: run the doctor's checks, read the kernel log.
    Doctor,
    /// Remove the set-user-ID and set-group-ID bits of the program's file.
    PlainFile,
    /// Allow more locked memory: raise the sysctl `kernel.perf_event_mlock_kb`, or grant
    /// `CAP_IPC_LOCK`.
    MoreLockedMemory,
    /// Let this user read the kernel's type information (BTF).
    ReadableTypes,
    /// Run a kernel that has type information (BTF, `CONFIG_DEBUG_INFO_BTF`).
    KernelTypes,
    /// Report the kernel release: it is newer than the supported ones, or its verifier rejects the
    /// program.
    ReportKernel,
    /// Report the printed message: it is a bug.
    ReportBug,
    /// Build the eBPF program again: the embedded one is broken.
    RebuildProgram,
    /// List the events that this machine supports.
    SeeEvents,
    /// Use the preset, which also opens the auxiliary event.
    PresetOpensBoth,
    /// Stop the program that holds the counter: another profiler, or the NMI watchdog.
    EndOtherProfiler,
    /// Check the process and thread ids.
    CheckIds,
    /// Check the command to sample, and its path.
    CheckCommand,
    /// Remove the term from the filter.
    LeaveTermOut,
    /// Let the run choose the read path.
    AnyReadPath,
    /// Use a smaller cell table.
    FewerCells,
    /// Use a smaller table of call chains.
    FewerChains,
    /// Accept the available precision instead of requiring precise samples.
    AnyPrecision,
    /// Use a lower precision level, or another event.
    LowerPrecision,
    /// Raise the hard limit of open files, or sample fewer threads or CPUs, or whole CPUs.
    FewerDescriptors,
    /// Use a lower frequency, or raise the kernel's limit.
    LowerFrequency,
    /// Sample whole CPUs, and use a filter instead of a target.
    WholeCpus,
    /// Do not group by page size.
    NoPageSizes,
    /// Do not use call chains.
    NoChains,
    /// Listen on another address.
    OtherAddress,
    /// Ask for TLS and a token, or listen on an address that only this machine can reach.
    SecureAddress,
    /// Ask the person who created the kill switch file.
    AskWhoStopsIt,
    /// Read the capture later: reading it needs more memory than the end of a run may use.
    ReadLater,
}

/// An error of a run: it could not start, continue, or finish.
///
/// Its `Display` text is one sentence that does not repeat the cause; the cause is in
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

    /// Returns an error of the class `Failed` with its cause.
    pub(crate) fn failed(what: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(Arc::from(cause.into())), ..Self::new(ErrorClass::Failed, what) }
    }

    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Returns the class of the error.
    pub const fn class(&self) -> ErrorClass {
        self.class
    }

    /// Returns the remedy; `None` if none is known.
    pub const fn way_out(&self) -> Option<Remedy> {
        self.remedy
    }

    /// Returns the message followed by its causes, separated by colons.
    pub fn with_causes(&self) -> String {
        let mut text = self.what.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            // The message of a failed system call already contains its `errno`.
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

/// A failed system call, with its name.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct SyscallError {
    /// The name of the call, as in its manual page.
    pub call: &'static str,
    /// The error that the kernel returned.
    #[source]
    pub source: io::Error,
}

impl SyscallError {
    /// Returns the error of the call that has just failed (`errno`).
    pub fn last(call: &'static str) -> Self {
        Self { call, source: io::Error::last_os_error() }
    }

    /// Returns `errno`; 0 if the error has none.
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
        let error = SamplingError::failed("the ring cannot be mapped", call.clone());
        assert_eq!(error.to_string(), "the ring cannot be mapped");
        assert_eq!(error.with_causes(), format!("the ring cannot be mapped: mmap: {}", call.source));
        let cause = error.source().and_then(|cause| cause.downcast_ref::<SyscallError>());
        assert_eq!(cause.map(SyscallError::errno), Some(libc::ENOMEM));
    }
}
