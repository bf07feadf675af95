//! The paths of a worker: names for the descriptors that it holds.
//!
//! The symbolization library takes paths and opens them. A worker may not open anything
//! ([`super::confine`]): these system calls trap, the kernel sends SIGSYS, and the handler here
//! answers in place of the kernel. A path that is in the table is the descriptor beside it; every
//! other path does not exist.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A path that ends in NUL, and its descriptor.
type Named = (Vec<u8>, RawFd);

/// The paths of this process. Null: none.
static PATHS: AtomicPtr<Vec<Named>> = AtomicPtr::new(std::ptr::null_mut());

/// Makes these the paths of this process, in place of all earlier ones. The descriptors must stay
/// open until the next call.
pub(super) fn set<'a>(paths: impl IntoIterator<Item = (&'a str, &'a std::fs::File)>) {
    let named = |(path, file): (&str, &std::fs::File)| {
        let mut path = path.as_bytes().to_vec();
        path.push(0);
        (path, file.as_raw_fd())
    };
    let new = Box::new(paths.into_iter().map(named).collect::<Vec<_>>());
    let old = PATHS.swap(Box::into_raw(new), Ordering::Relaxed);
    if !old.is_null() {
        // SAFETY: the pointer came from a box, and the swap made this the only place that has it.
        // The handler uses it only during a system call of this thread, and there is no other
        // thread.
        drop(unsafe { Box::from_raw(old) });
    }
}

/// Handles SIGSYS from now on.
///
/// # Errors
///
/// Returns the kernel's error.
pub(super) fn handle_traps() -> std::io::Result<()> {
    // SAFETY: zero is a valid value of every field.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: `action` is initialized, and the handler has the signature that SA_SIGINFO asks for.
    let result = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Answers a system call that trapped. Allocates nothing and takes no lock, because the trap may be
/// anywhere.
extern "C" fn on_trap(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if info.is_null() || context.is_null() {
        return;
    }
    // SAFETY: the kernel passes both pointers, valid until the handler returns.
    let (info, context) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    /// `SYS_SECCOMP` of asm-generic/siginfo.h.
    const BY_SECCOMP: libc::c_int = 1;
    if info.si_code != BY_SECCOMP {
        return;
    }
    let registers = &mut context.uc_mcontext.gregs;
    let mut register = |which: libc::c_int| registers.get_mut(which as usize).map_or(0, |value| *value);
    let call = register(libc::REG_RAX);
    let arguments =
        [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8].map(&mut register);
    let result = answer(call, arguments);
    if let Some(place) = registers.get_mut(libc::REG_RAX as usize) {
        *place = result;
    }
}

/// Returns what the kernel would return: a result, or a negated error number.
fn answer(call: i64, [first, second, third, fourth, fifth]: [i64; 5]) -> i64 {
    let missing = i64::from(-libc::ENOENT);
    let errno = |result: i64| {
        // SAFETY: the address of this thread's errno is always valid.
        if result == -1 { -i64::from(unsafe { *libc::__errno_location() }) } else { result }
    };
    match call {
        libc::SYS_open => descriptor(first).map_or(missing, |fd| errno(duplicate(fd))),
        libc::SYS_openat => descriptor(second).map_or(missing, |fd| errno(duplicate(fd))),
        libc::SYS_stat | libc::SYS_lstat => descriptor(first).map_or(missing, |fd| errno(status(fd, second))),
        libc::SYS_newfstatat => descriptor(second).map_or(missing, |fd| errno(status(fd, third))),
        libc::SYS_statx => descriptor(second).map_or(missing, |fd| {
            let empty = c"".as_ptr();
            // SAFETY: the path is a C string; the buffer is that of the call that trapped, whose
            // caller vouches for it. With AT_EMPTY_PATH the call does not trap.
            errno(unsafe { libc::syscall(libc::SYS_statx, fd, empty, libc::AT_EMPTY_PATH, fourth, fifth) })
        }),
        // Nothing here is a symbolic link.
        libc::SYS_readlink => descriptor(first).map_or(missing, |_| i64::from(-libc::EINVAL)),
        libc::SYS_readlinkat => descriptor(second).map_or(missing, |_| i64::from(-libc::EINVAL)),
        _ => i64::from(-libc::EPERM),
    }
}

fn duplicate(fd: RawFd) -> i64 {
    // SAFETY: the call takes and returns descriptors only.
    i64::from(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })
}

fn status(fd: RawFd, buffer: i64) -> i64 {
    // SAFETY: the buffer is that of the call that trapped, whose caller vouches for it.
    unsafe { libc::syscall(libc::SYS_fstat, fd, buffer) }
}

/// Returns the descriptor of the path at `address`.
fn descriptor(address: i64) -> Option<RawFd> {
    let path = std::ptr::with_exposed_provenance::<libc::c_char>(usize::try_from(address).ok()?);
    let paths = PATHS.load(Ordering::Relaxed);
    if path.is_null() || paths.is_null() {
        return None;
    }
    // SAFETY: the path is an argument of a call that expects a C string. The table is valid until
    // the next `set`, which cannot run during a system call of the only thread.
    let (path, paths) = unsafe { (CStr::from_ptr(path), &*paths) };
    paths.iter().find(|(known, _)| known == path.to_bytes_with_nul()).map(|(_, fd)| *fd)
}
