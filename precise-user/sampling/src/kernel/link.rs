//! Attaches a loaded program to an open event.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;

use super::event::Event;
use crate::error::SyscallError;

const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PERF_EVENT: u32 = 41;

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` needs for a perf-event link.
#[derive(Default)]
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

/// The attachment of a program to an event.
#[derive(Debug)]
pub enum Link {
    /// A BPF link (5.15 and later): the program is detached when this descriptor is closed.
    Bpf(OwnedFd),
    /// `PERF_EVENT_IOC_SET_BPF`: the program stays attached until the event is closed.
    Ioctl,
}

/// Attaches `program` to `event`.
///
/// # Errors
///
/// Returns `EEXIST` if the event already has a program, and `EPROTO` if the program reads stacks
/// but the event has no call chain.
pub fn attach(program: BorrowedFd<'_>, event: &Event) -> Result<Link, SyscallError> {
    let attr = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_fd: event.as_raw_fd() as u32,
        attach_type: BPF_PERF_EVENT,
        ..LinkCreate::default()
    };
    // SAFETY: the attribute is initialised and has the size that is passed; both descriptors are
    // open.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attr, size_of::<LinkCreate>()) };
    if fd >= 0 {
        // SAFETY: the descriptor was just created, and nothing else owns it.
        return Ok(Link::Bpf(unsafe { OwnedFd::from_raw_fd(fd as i32) }));
    }
    let error = SyscallError::last("bpf(BPF_LINK_CREATE)");
    // Kernels before 5.15 have no perf-event links: they return EINVAL for any descriptors.
    if error.errno() != libc::EINVAL {
        return Err(error);
    }
    // SAFETY: the event and the program are open.
    let done = unsafe { sys::ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd() as u32) };
    if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_SET_BPF)")) } else { Ok(Link::Ioctl) }
}
