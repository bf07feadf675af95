//! Descriptors that a run waits for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets the runtime of the calling thread tell when a descriptor becomes readable.
///
/// # Errors
///
/// Returns the error of epoll_ctl(2).
///
/// # Panics
///
/// Panics outside of a runtime.
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, so it stays open and the same until it is dropped with the
    // result.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
