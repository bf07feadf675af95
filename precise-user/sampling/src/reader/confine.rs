//! Gives up every right, for good.
//!
//! What every kernel of the last ten years can do is required: no capability, no way to get one,
//! limits, and an allow list of system calls. The rest is defence in depth and depends on the
//! machine: root can use another user, containers may allow no namespaces, and Landlock may be
//! absent. [`Confinement`] says what there is.

use caps::CapSet;
use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use schemars::JsonSchema;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde::{Deserialize, Serialize};

use super::copy::MAX_FILE;

/// Private memory of a worker in bytes, for what it makes of the files that it reads.
const MEMORY: u64 = 1 << 30;
/// Address space of a worker in bytes, beyond what the program itself takes: its memory, the copies
/// of files ([`super::worker`]), and room for fragments.
const ADDRESS_SPACE: u64 = 4 << 30;
/// Maximum number of descriptors: the files of one request and the copies that are kept.
const DESCRIPTORS: u64 = 2048;
/// The first user id that no system assigns: systemd's list of user ids calls the upper half
/// unused (docs/UIDS-GIDS.md there).
const UNUSED_USERS: u32 = 1 << 31;

/// How a reader is confined, in addition to what is always required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// Whether it runs as a user of its own.
    pub own_user: bool,
    /// Whether its root folder is empty.
    pub empty_root: bool,
    /// Whether it has a network of its own, without interfaces.
    pub own_network: bool,
    /// Whether Landlock forbids it every file.
    pub landlock: bool,
}

impl Confinement {
    /// Returns the protections of this confinement that `other` lacks, in words.
    pub(super) fn missing_in(self, other: Self) -> Vec<&'static str> {
        let all = [
            (self.own_user, other.own_user, "user id of their own"),
            (self.empty_root, other.empty_root, "empty root folder"),
            (self.own_network, other.own_network, "network of their own"),
            (self.landlock, other.landlock, "Landlock rules"),
        ];
        all.into_iter().filter(|(here, there, _)| *here && !there).map(|(.., words)| words).collect()
    }
}

/// Confines the calling process, which must have one thread.
///
/// # Errors
///
/// Returns a sentence if something that is required cannot be had.
pub(super) fn confine() -> Result<Confinement, String> {
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, DESCRIPTORS.min(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)))?;
    limit(Resource::Fsize, MAX_FILE)?;
    limit(Resource::Data, MEMORY)?;
    limit(Resource::As, own_size().saturating_add(ADDRESS_SPACE))?;

    let mut done = Confinement::default();
    let namespaces = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    // Without rights on this machine, a user namespace gives those that the next steps take.
    if unshare(namespaces).is_err() {
        let _may_be_forbidden = unshare(UnshareFlags::NEWUSER).and_then(|()| unshare(namespaces));
    }
    done.own_network = unshare(UnshareFlags::NEWNET).is_ok();
    // A folder in which nobody can create anything, and that has nothing but numbers.
    done.empty_root =
        rustix::process::chroot("/proc/self/fdinfo").is_ok() && rustix::process::chdir("/").is_ok();
    // Only CAP_SETPCAP may drop from the bounding set. Without it, no_new_privs does the same.
    let _without_right = caps::clear(None, CapSet::Bounding);
    let _not_permitted_in_a_user_namespace = rustix::thread::set_thread_groups(&[]);
    done.own_user = own_user();

    let cannot = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
    rustix::thread::set_no_new_privs(true).map_err(|error| cannot("set no_new_privs", &error))?;
    let _old_kernel = caps::clear(None, CapSet::Ambient);
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set).map_err(|error| cannot("give up capabilities", &error))?;
    }
    // No other process of the same user may trace this one.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| cannot("forbid tracing", &error))?;
    done.landlock = landlock();
    Ok(done)
}

fn unshare(what: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: none of the flags that are used here unshares descriptors, on which other code could
    // rely; the process has one thread.
    unsafe { unshare_unsafe(what) }
}

/// Changes to a user that nobody else has. Returns whether that is done.
fn own_user() -> bool {
    let number = UNUSED_USERS | (std::process::id() & 0x3fff_ffff);
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    rustix::thread::set_thread_res_gid(group, group, group).is_ok()
        && rustix::thread::set_thread_res_uid(user, user, user).is_ok()
}

/// Forbids every access to files by path, every connection, and signals to others. Returns whether
/// the kernel enforces all that it knows of.
fn landlock() -> bool {
    let abi = ABI::V6;
    let restrict = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .restrict_self()
    };
    restrict().is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}

/// Returns the size of this process's address space in bytes.
fn own_size() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Limits a worker to the system calls that it needs. No call that it is left with opens, creates,
/// connects, executes or changes anything outside of it.
///
/// The symbolization library opens files by path. These calls trap, and [`super::paths`] answers
/// them.
///
/// # Errors
///
/// Returns a sentence if the kernel refuses.
pub(super) fn allow_few_calls() -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot limit the system calls: {error}");
    let program = |calls, else_do, then_do| -> Result<BpfProgram, String> {
        let arch = std::env::consts::ARCH.try_into().map_err(|error| cannot(&error))?;
        let filter = SeccompFilter::new(calls, else_do, then_do, arch).map_err(|error| cannot(&error))?;
        filter.try_into().map_err(|error: seccompiler::BackendError| cannot(&error))
    };
    let is = |argument, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(value), value)
    };
    let is_not = |argument, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(value), 0)
    };
    let rule = |condition: Result<SeccompCondition, seccompiler::BackendError>| {
        let condition = condition.map_err(|error| cannot(&error))?;
        SeccompRule::new(vec![condition]).map_err(|error| cannot(&error)).map(|rule| vec![rule])
    };
    let this_process =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(std::process::id()));
    // With this flag and an empty path the calls are about a descriptor. With another path they
    // would show that a file exists, which the empty root and Landlock leave none of.
    let of_descriptor = libc::AT_EMPTY_PATH as u64;
    let executable = libc::PROT_EXEC as u64;

    let paths = [
        (libc::SYS_open, vec![]),
        (libc::SYS_openat, vec![]),
        (libc::SYS_stat, vec![]),
        (libc::SYS_lstat, vec![]),
        (libc::SYS_newfstatat, rule(is_not(3, of_descriptor))?),
        (libc::SYS_statx, rule(is_not(2, of_descriptor))?),
        (libc::SYS_readlink, vec![]),
        (libc::SYS_readlinkat, vec![]),
    ];
    let allowed = [
        (libc::SYS_newfstatat, rule(is(3, of_descriptor))?),
        (libc::SYS_statx, rule(is(2, of_descriptor))?),
        (libc::SYS_mmap, rule(is_not(2, executable))?),
        (libc::SYS_mprotect, rule(is_not(2, executable))?),
        // abort() of a panic or of a failed allocation.
        (libc::SYS_tgkill, rule(this_process)?),
    ];
    let plain = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_close,
        libc::SYS_exit_group,
        libc::SYS_exit,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_ftruncate,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_lseek,
        libc::SYS_madvise,
        libc::SYS_memfd_create,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_read,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sendmsg,
        // For a connected socket, which is the only one, with the same meaning as write.
        libc::SYS_sendto,
        libc::SYS_sigaltstack,
        libc::SYS_write,
    ];
    let allowed = allowed.into_iter().chain(plain.map(|call| (call, vec![]))).collect();
    let traps = program(paths.into_iter().collect(), SeccompAction::Allow, SeccompAction::Trap)?;
    let few = program(allowed, SeccompAction::Errno(libc::EPERM.cast_unsigned()), SeccompAction::Allow)?;
    // Of two filters the stricter answer counts, and a trap is stricter than an error
    // (Documentation/userspace-api/seccomp_filter.rst).
    for filter in [traps, few] {
        seccompiler::apply_filter(&filter).map_err(|error| cannot(&error))?;
    }
    Ok(())
}

/// Makes the worker end with the nursery, and unable to start processes.
///
/// # Errors
///
/// Returns a sentence if the kernel refuses.
pub(super) fn end_with_parent() -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot bind the worker to its parent: {error}");
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| cannot(&error))?;
    limit(Resource::Nproc, 0)
}

fn limit(resource: Resource, value: u64) -> Result<(), String> {
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
        .map_err(|error| format!("cannot limit {resource:?} to {value}: {error}"))
}
