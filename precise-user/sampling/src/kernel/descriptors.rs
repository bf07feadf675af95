//! The limit of open files. A run needs a descriptor for each event, and an event of a task is open
//! once for each thread on each CPU.

use std::{io, sync::OnceLock};

use crate::error::SyscallError;

/// The soft limit with which this process started; `None` until [`raise`] has changed it.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// The limits of open files of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimits {
    /// The limit in force.
    pub soft: u64,
    /// The largest value to which a process without privileges may raise the soft limit.
    pub hard: u64,
}

/// Raises the soft limit to the hard limit, for the rest of this process's life. Returns the limits
/// that are in force then.
///
/// The soft limit is 1,024 almost everywhere, for the sake of programs that call select(2), which
/// this one does not. [`restore`] gives commands the limit that they would have without `precise`.
///
/// # Errors
///
/// Returns the error of getrlimit(2) or setrlimit(2).
pub fn raise() -> Result<DescriptorLimits, SyscallError> {
    let limits = read()?;
    if limits.rlim_cur < limits.rlim_max {
        // A later call, or a call of another thread, finds the limit that the first one set.
        BEFORE.get_or_init(|| limits);
        let raised = libc::rlimit { rlim_cur: limits.rlim_max, ..limits };
        // SAFETY: reads an initialised value.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } != 0 {
            return Err(SyscallError::last("setrlimit(RLIMIT_NOFILE)"));
        }
    }
    Ok(DescriptorLimits { soft: limits.rlim_max, hard: limits.rlim_max })
}

/// Returns the limits that [`raise`] changed; `None` if it changed none.
pub fn before() -> Option<libc::rlimit> {
    BEFORE.get().copied()
}

/// Sets the limits of the calling process to those from [`before`]. Async-signal-safe, so that a
/// forked process may call it before its exec.
///
/// # Errors
///
/// Returns the error of setrlimit(2).
pub fn restore(before: &libc::rlimit) -> io::Result<()> {
    // SAFETY: reads an initialised value.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, before) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the number of descriptors that this process has open; `None` if /proc does not say.
pub fn open() -> Option<u64> {
    // Listing the folder opens one more.
    Some((std::fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

fn read() -> Result<libc::rlimit, SyscallError> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the value.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) } {
        0 => Ok(limits),
        _ => Err(SyscallError::last("getrlimit(RLIMIT_NOFILE)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_limit() {
        let limits = raise().unwrap();
        assert_eq!(limits.soft, limits.hard);
        assert_eq!(read().unwrap().rlim_cur, limits.hard);
        assert!(open().unwrap() >= 3);
        assert!(before().is_none_or(|before| before.rlim_cur < before.rlim_max));
    }
}
