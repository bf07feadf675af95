//! File capabilities: capabilities that a process has from its program's file (`setcap`) and not
//! from its caller.
//!
//! The caller chooses the arguments, the environment and the files that are read, and has none of
//! these capabilities itself. So a process uses them for sampling only:
//!
//! 1. [`lower_at_start`] comes first in `main`. From then on no capability is effective.
//! 2. A command that does not sample calls [`drop_file_capabilities`]. From its first line to its
//!    last it can do what its caller can do.
//! 3. A command that samples calls [`forget_environment`] and [`raise_for_sampling`]. The thread of
//!    the run loop also opens the files that the caller names, so the capabilities that override
//!    permissions of files are never effective in it. They are in the threads that look up names
//!    ([`raised_for_names`]). When the run is over, the command calls [`drop_file_capabilities`].
//!
//! Capabilities that come from the caller (of root, or ambient ones of a service manager) stay:
//! the process can do nothing with them that its caller could not do.

use std::{
    ffi::{OsStr, OsString},
    sync::OnceLock,
};

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};

use super::{NAMES, Rights, no_new_privs};
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    machine::Root,
};

/// Capabilities that are effective in the thread of the run loop, as far as the file has them.
pub(super) const SAMPLING: [Capability; 8] = [
    Capability::CAP_PERFMON,
    Capability::CAP_BPF,
    // Includes the two above. Kernels of some distributions ask for it at
    // kernel.perf_event_paranoid 4.
    Capability::CAP_SYS_ADMIN,
    // Events of other users' processes, where CAP_PERFMON does not allow them.
    Capability::CAP_SYS_PTRACE,
    // Whether /proc/kallsyms shows the kernel's addresses.
    Capability::CAP_SYSLOG,
    // Rings and maps beyond the limit of locked memory.
    Capability::CAP_IPC_LOCK,
    Capability::CAP_SYS_RESOURCE,
    // Ending a command that has become another user.
    Capability::CAP_KILL,
];

/// Variables that stay when the environment is forgotten: they decide how output looks on a
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

/// The caller's environment, once [`forget_environment`] has cleared that of the process.
static CALLERS_ENVIRONMENT: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Whether the kernel tells this process not to trust its environment (`AT_SECURE`, getauxval(3)):
/// the process has more rights than its caller, or a security module asks for it.
pub fn is_secure() -> bool {
    // SAFETY: takes a number, and reads what the kernel put beside the arguments.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the capabilities of this process come from its file. Those of real root are its own
/// (`cap_bprm_creds_from_file()`, security/commoncap.c).
fn are_from_file() -> bool {
    // SAFETY: has no preconditions and cannot fail (getuid(2)).
    is_secure() && unsafe { libc::getuid() } != 0
}

/// Lowers every file capability: none is effective any more, and all can be raised again. Returns
/// the rights that the process was started with; `None` where this changed nothing.
///
/// # Errors
///
/// When the process runs set-user-ID or set-group-ID. It would open files as another user or
/// group, and lowering capabilities does not change that.
pub fn lower_at_start() -> Result<Option<Rights>, SamplingError> {
    // SAFETY: none of the four has preconditions, and none can fail (getuid(2), getgid(2)).
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
/// nothing where capabilities come from the caller.
///
/// # Errors
///
/// What the kernel says.
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

/// Drops every file capability for good, in the calling thread and in those that it starts from now
/// on.
///
/// # Errors
///
/// What the kernel says.
pub fn drop_file_capabilities() -> Result<(), SamplingError> {
    if !are_from_file() {
        return Ok(());
    }
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set).map_err(failed)?;
    }
    no_new_privs();
    Ok(())
}

/// Does `work` while exactly the file capabilities that names need are effective in the calling
/// thread. Where the kernel refuses to raise them, names are missing.
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
    // They were effective before, and `work` takes none from the permitted set.
    let _cannot_fail = caps::set(None, CapSet::Effective, &before);
    done
}

/// Lowers every file capability of the calling thread.
pub(crate) fn lower_all() -> Result<(), CapsError> {
    if are_from_file() { caps::clear(None, CapSet::Effective) } else { Ok(()) }
}

/// Clears the environment of a process that must not trust it ([`is_secure`]), but for variables
/// that decide how output looks: whatever reads another one, here or in a crate, finds its default.
/// The command that a run starts gets the caller's environment all the same.
///
/// # Safety
///
/// No other thread may exist: another one could be reading the environment.
pub unsafe fn forget_environment() {
    if !is_secure() {
        return;
    }
    let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    // SAFETY: the caller says that this is the only thread.
    unsafe { libc::clearenv() };
    for (name, value) in all.iter().filter(|(name, _)| APPEARANCE.map(OsStr::new).contains(&name.as_os_str()))
    {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    // A second call finds what the first one left, and must not replace what that one kept.
    let _first = CALLERS_ENVIRONMENT.set(all);
}

/// The caller's environment, where this process has forgotten it.
pub(crate) fn callers_environment() -> Option<&'static [(OsString, OsString)]> {
    CALLERS_ENVIRONMENT.get().map(Vec::as_slice)
}

fn failed(error: CapsError) -> SamplingError {
    SamplingError::new(
        ErrorClass::Failed,
        "the capabilities of the program's file cannot be raised or dropped",
    )
    .because(error)
}
