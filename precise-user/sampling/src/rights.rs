//! Privileges of this process: which capabilities sampling needs, which of them are missing, and
//! dropping those that a run no longer needs.
//!
//! Capabilities belong to a thread, and a new thread inherits those of the thread that starts it. A
//! run therefore drops them before it starts the threads that read data of other processes
//! (symbols, names, mappings).

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{error::Remedy, machine::Root};

mod from_file;

pub(crate) use from_file::{callers_environment, lower_all, raised_for_names};
pub use from_file::{
    drop_file_capabilities, forget_environment, is_secure, lower_at_start, raise_for_sampling,
};

/// Capabilities that symbolization needs.
const NAMES: [Capability; 4] = [
    // To read mappings and files of other users' processes: /proc/PID/maps, /proc/PID/root,
    // /proc/PID/map_files.
    Capability::CAP_SYS_PTRACE,
    Capability::CAP_CHECKPOINT_RESTORE,
    Capability::CAP_DAC_READ_SEARCH,
    // To read the addresses of kernel symbols.
    Capability::CAP_SYSLOG,
];

/// Capabilities that a run needs in addition to [`NAMES`] after its events are open and its program
/// is attached.
const KEPT: [Capability; 3] = [
    // To write the capture into a folder of the user who called sudo.
    Capability::CAP_DAC_OVERRIDE,
    // To make that user the owner of the capture.
    Capability::CAP_CHOWN,
    // To end a command that runs as another user.
    Capability::CAP_KILL,
];

/// The effective capabilities of this process, and restrictions that may make them ineffective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Rights {
    /// Effective capabilities as a bit mask with the kernel's numbering; `None` if
    /// /proc/self/status is not readable.
    pub capabilities: Option<u64>,
    /// Whether seccomp restricts system calls, as in most containers; `None` if unknown.
    pub seccomp: Option<bool>,
    /// Whether the process is in a user namespace other than the initial one, where capabilities do
    /// not count for perf events and eBPF programs; `None` if unknown.
    pub user_namespace: Option<bool>,
}

impl Rights {
    /// Reads the privileges of this process from /proc/self below `root`.
    pub fn read(root: &Root) -> Self {
        let status = root.read("/proc/self/status").unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Self {
            capabilities: field("CapEff:").and_then(|bits| u64::from_str_radix(bits, 16).ok()),
            // 0: off, 1: strict, 2: a filter (include/uapi/linux/seccomp.h).
            seccomp: field("Seccomp:").map(|mode| mode != "0"),
            // The initial user namespace maps every id to itself.
            user_namespace: root
                .read("/proc/self/uid_map")
                .ok()
                .map(|map| !map.split_ascii_whitespace().eq(["0", "0", "4294967295"])),
        }
    }

    /// Returns whether the process has a capability, or the older capability that it was split off
    /// from; `None` if unknown.
    pub fn has(&self, capability: Capability) -> Option<bool> {
        let parent = match capability {
            // Linux 5.8 and 5.9 split these capabilities off CAP_SYS_ADMIN
            // (include/linux/capability.h: perfmon_capable, bpf_capable,
            // checkpoint_restore_ns_capable). For kernel addresses only CAP_SYSLOG counts
            // (kernel/kallsyms.c).
            Capability::CAP_PERFMON | Capability::CAP_BPF | Capability::CAP_CHECKPOINT_RESTORE => {
                Capability::CAP_SYS_ADMIN.bitmask()
            }
            _ => 0,
        };
        self.capabilities.map(|has| has & (capability.bitmask() | parent) != 0)
    }

    /// Returns the capabilities of `wanted` that are known to be missing.
    pub fn missing(&self, wanted: &[Capability]) -> Vec<Capability> {
        wanted.iter().copied().filter(|capability| self.has(*capability) == Some(false)).collect()
    }

    /// Returns why this process may not sample all processes and load eBPF programs, with the
    /// remedy; `None` if nothing is known to be missing.
    pub fn refusal(&self) -> Option<(String, Remedy)> {
        let missing = self.missing(&[Capability::CAP_PERFMON, Capability::CAP_BPF]);
        if !missing.is_empty() {
            let verb = if missing.len() == 1 { "is" } else { "are" };
            return Some((format!("{} {verb} missing", names(&missing)), Remedy::GrantCapabilities));
        }
        if self.user_namespace == Some(true) {
            return Some((
                "this process is in a user namespace, whose capabilities do not count for perf events \
                 and eBPF programs"
                    .to_owned(),
                Remedy::LeaveUserNamespace,
            ));
        }
        if self.seccomp == Some(true) {
            return Some((
                "the capabilities are present, so the seccomp filter of this container probably refuses \
                 the call"
                    .to_owned(),
                Remedy::AllowSystemCalls,
            ));
        }
        None
    }
}

/// Returns capabilities in words: `CAP_PERFMON and CAP_BPF`.
pub fn names(capabilities: &[Capability]) -> String {
    capabilities.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Drops the privileges that a run no longer needs: keeps only the capabilities for symbolization,
/// for writing the capture and for ending the command, and sets `no_new_privs`, so that executing a
/// file grants no privileges. Applies to the calling thread and to the threads that it starts
/// afterwards.
///
/// # Errors
///
/// Returns an error if the kernel refuses to read or change the capabilities.
pub fn give_up() -> Result<(), CapsError> {
    let permitted = caps::read(None, CapSet::Permitted)?;
    let effective = caps::read(None, CapSet::Effective)?;
    let kept_of = |has: &CapsHashSet| -> CapsHashSet {
        NAMES.into_iter().chain(KEPT).filter(|capability| has.contains(capability)).collect()
    };
    // The order matters: effective capabilities must be permitted ones. Capabilities that are
    // already lowered stay lowered.
    caps::set(None, CapSet::Effective, &kept_of(&effective))?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::default())?;
    caps::set(None, CapSet::Permitted, &kept_of(&permitted))?;
    no_new_privs();
    Ok(())
}

/// Capabilities that opening an event on a CPU needs, after the program is loaded.
const OPENING: [Capability; 2] = [
    Capability::CAP_PERFMON,
    // To map its ring beyond the limit of locked memory.
    Capability::CAP_IPC_LOCK,
];

/// Drops all privileges of the calling thread but those for opening events ([`give_up`] drops
/// these).
///
/// # Errors
///
/// Returns an error if the kernel refuses to read or change the capabilities.
pub(crate) fn keep_for_opening() -> Result<(), CapsError> {
    let effective = caps::read(None, CapSet::Effective)?;
    let kept = OPENING.into_iter().filter(|capability| effective.contains(capability)).collect();
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::default())?;
    caps::set(None, CapSet::Permitted, &kept)?;
    no_new_privs();
    Ok(())
}

/// Drops every capability of the calling thread permanently, also those that its caller has.
///
/// # Errors
///
/// Returns an error if the kernel refuses to change the capabilities.
pub(crate) fn drop_all() -> Result<(), CapsError> {
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set)?;
    }
    no_new_privs();
    Ok(())
}

/// Sets `no_new_privs`, so that this thread and the threads that it starts afterwards gain no
/// privileges by executing a file.
fn no_new_privs() {
    // SAFETY: takes numbers only, and cannot fail for these (prctl(2)).
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::fixture::Tree;

    fn with(capabilities: u64) -> Rights {
        Rights { capabilities: Some(capabilities), ..Rights::default() }
    }

    #[test]
    fn what_is_missing_has_a_name() {
        let (perfmon, bpf) = (Capability::CAP_PERFMON.bitmask(), Capability::CAP_BPF.bitmask());
        let what = |capabilities| with(capabilities).refusal().map(|(what, _)| what);
        assert_eq!(what(0).as_deref(), Some("CAP_PERFMON and CAP_BPF are missing"));
        assert_eq!(what(perfmon).as_deref(), Some("CAP_BPF is missing"));
        assert_eq!(what(bpf).as_deref(), Some("CAP_PERFMON is missing"));
        assert_eq!(what(perfmon | bpf), None);
        assert_eq!(what(Capability::CAP_SYS_ADMIN.bitmask()), None, "before 5.8 it was all of them");
        assert_eq!(Rights::default().refusal(), None, "nothing is known, so nothing is said");
    }

    #[test]
    fn in_a_container_it_is_not_always_the_capabilities() {
        let all = with(u64::MAX);
        let filtered = Rights { seccomp: Some(true), ..all };
        assert!(filtered.refusal().is_some_and(|(what, _)| what.contains("seccomp")));
        let inside = Rights { user_namespace: Some(true), ..filtered };
        assert!(inside.refusal().is_some_and(|(what, _)| what.contains("user namespace")));
    }

    #[test]
    fn they_are_read_as_the_kernel_writes_them() {
        let tree = Tree::new("", "6.12.0")
            .file(
                "/proc/self/status",
                "Name:\tp\nCapEff:\t000000c000000000\nSeccomp:\t2\nSeccomp_filters:\t1",
            )
            .file("/proc/self/uid_map", "         0     100000      65536");
        let rights = Rights::read(&tree.root());
        assert_eq!(rights.has(Capability::CAP_BPF), Some(true));
        assert_eq!(rights.has(Capability::CAP_SYS_PTRACE), Some(false));
        assert_eq!((rights.seccomp, rights.user_namespace), (Some(true), Some(true)));
        let tree = tree.file("/proc/self/uid_map", "         0          0 4294967295");
        assert_eq!(Rights::read(&tree.root()).user_namespace, Some(false));
    }
}
