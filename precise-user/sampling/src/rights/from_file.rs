//! File capabilities: capabilities that a process has from its program's file (`setcap`), not from
//! its caller.
//!
//! The caller chooses the arguments, the environment and the files that are read, but has none of
//! these capabilities itself. So a process uses them for sampling only:
//!
//! 1. [`lower_at_start`] comes first in `main`. From then on no capability is effective.
//! 2. A command that does not sample calls [`drop_file_capabilities`]. From start to end it can do
//!    only what its caller can do.
//! 3. A command that samples calls [`forget_environment`] and [`raise_for_sampling`]. The thread of
//!    the run loop also opens the files that the caller names, so the capabilities that override
//!    file permissions are never effective in it. They are effective only in the threads that look
//!    up names ([`raised_for_names`]). When the run is over, the command calls
//!    [`drop_file_capabilities`].
//!
//! Capabilities that come from the caller (those of root, or ambient ones from a service manager)
//! stay: they give the process nothing that its caller does not have.

use std::{
    ffi::{OsStr, OsString},
    sync::OnceLock,
};

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};

use super::{NAMES, Rights, drop_all};
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    machine::Root,
};

/// Capabilities that are effective in the thread of the run loop, if the file has them.
pub(super) const SAMPLING: [Capability; 8] = [
    Capability::CAP_PERFMON,
    Capability::CAP_BPF,
    // Includes the two above. Kernels of some distributions require it at
    // kernel.perf_event_paranoid 4.
    Capability::CAP_SYS_ADMIN,
    // To open events of other users' processes where CAP_PERFMON is not enough.
    Capability::CAP_SYS_PTRACE,
    // To see kernel addresses in /proc/kallsyms.
    Capability::CAP_SYSLOG,
    // To map rings and maps beyond the limit of locked memory.
    Capability::CAP_IPC_LOCK,
    Capability::CAP_SYS_RESOURCE,
    // To stop a command that has switched to another user.
    Capability::CAP_KILL,
];

/// Variables that stay when the environment is cleared: they control how output looks on a
/// terminal.
const APPEARANCE: [&str; 10] = [
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
];

/// The caller's environment, after [`forget_environment`] has cleared that of the process.
static CALLERS_ENVIRONMENT: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Returns whether the kernel marks this process as one that must not trust its environment
/// (`AT_SECURE`, getauxval(3)): the process has more rights than its caller, or a security module
/// demands it.
pub fn is_secure() -> bool {
    // SAFETY: the call takes a number and reads what the kernel stored next to the arguments.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns whether the capabilities of this process come from its file. Those of real root do not
/// (`cap_bprm_creds_from_file()`, security/commoncap.c).
fn are_from_file() -> bool {
    // SAFETY: the call has no preconditions and cannot fail (getuid(2)).
    is_secure() && unsafe { libc::getuid() } != 0
}

/// Lowers every file capability: none is effective any more, but all can be raised again. Returns
/// the rights that the process was started with, or `None` if nothing was lowered.
///
/// # Errors
///
/// Returns an error if the process runs set-user-ID or set-group-ID. It would open files as another
/// user or group, and lowering capabilities does not change that.
pub fn lower_at_start() -> Result<Option<Rights>, SamplingError> {
    // SAFETY: the four calls have no preconditions and cannot fail (getuid(2), getgid(2)).
    let (user, as_user, group, as_group) =
        unsafe { (libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()) };
    if (user, group) != (as_user, as_group) {
        return Err(SamplingError::new(
            ErrorClass::Permission,
            format!(
                "precise refuses to run set-user-ID or set-group-ID: user {user} would open files as user {as_user}, \
                 group {as_group}"
            ),
        )
        .remedy(Remedy::PlainFile));
    }
    if !are_from_file() {
        return Ok(None);
    }
    let started = Rights::read(&Root::default());
    lower_all().map_err(failed)?;
    Ok(Some(started))
}

/// Raises the file capabilities that sampling needs, and drops those that no run needs. Does
/// nothing if the capabilities come from the caller.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn raise_for_sampling() -> Result<(), SamplingError> {
    if !are_from_file() {
        return Ok(());
    }
    let raise = || {
        let permitted = caps::read(None, CapSet::Permitted)?;
        let of = |wanted: &[Capability]| -> CapsHashSet {
            wanted.iter().copied().filter(|capability| permitted.contains(capability)).collect()
        };
        let sampling = of(&SAMPLING);
        let kept = sampling.union(&of(&NAMES)).copied().collect();
        caps::set(None, CapSet::Effective, &sampling)?;
        caps::set(None, CapSet::Permitted, &kept)
    };
    raise().map_err(failed)
}

/// Drops every file capability permanently, in the calling thread and in those that it starts
/// afterwards.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn drop_file_capabilities() -> Result<(), SamplingError> {
    if !are_from_file() {
        return Ok(());
    }
    drop_all().map_err(failed)
}

/// Calls `work` with exactly the file capabilities effective that symbolization needs, in the
/// calling thread. If the kernel refuses to raise them, `work` still runs, and some names will be
/// missing.
pub(crate) fn raised_for_names<T>(work: impl FnOnce() -> T) -> T {
    if !are_from_file() {
        return work();
    }
    let before = caps::read(None, CapSet::Effective).unwrap_or_default();
    if let Ok(permitted) = caps::read(None, CapSet::Permitted) {
        let names = NAMES.into_iter().filter(|capability| permitted.contains(capability)).collect();
        let _names_are_missing = caps::set(None, CapSet::Effective, &names);
    }
    let done = work();
    // They were effective before, and `work` does not change the permitted set.
    let _cannot_fail = caps::set(None, CapSet::Effective, &before);
    done
}

/// Lowers every file capability of the calling thread.
pub(crate) fn lower_all() -> Result<(), CapsError> {
    if are_from_file() { caps::clear(None, CapSet::Effective) } else { Ok(()) }
}

/// Clears the environment of a process that must not trust it ([`is_secure`]), except for variables
/// that control how output looks. Code here or in a crate that reads any other variable gets its
/// default. The command that a run starts still gets the caller's environment.
///
/// # Safety
///
/// No other thread may exist: it could be reading the environment.
pub unsafe fn forget_environment() {
    if !is_secure() {
        return;
    }
    let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    // SAFETY: the caller guarantees that this is the only thread.
    unsafe { libc::clearenv() };
    for (name, value) in all.iter().filter(|(name, _)| APPEARANCE.map(OsStr::new).contains(&name.as_os_str()))
    {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    // A second call sees the cleared environment, and must not overwrite the one that the first
    // call stored.
    let _first = CALLERS_ENVIRONMENT.set(all);
}

/// Returns the caller's environment if this process has cleared its own; otherwise `None`.
pub(crate) fn callers_environment() -> Option<&'static [(OsString, OsString)]> {
    CALLERS_ENVIRONMENT.get().map(Vec::as_slice)
}

fn failed(error: CapsError) -> SamplingError {
    SamplingError::failed("the capabilities of the program's file cannot be raised or dropped", error)
}
