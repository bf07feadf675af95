//! Attaching a loaded program to an open event.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;

use super::event::Event;
use crate::error::SyscallError;

const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PERF_EVENT: u32 = 41;

/// `union bpf_attr` of `BPF_LINK_CREATE`, as far as a perf-event link needs it.
#[derive(Default)]
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

/// What keeps a program on an event.
#[derive(Debug)]
pub enum Link {
    /// A BPF link (5.15 and later): it goes with this descriptor.
    Bpf(OwnedFd),
    /// `PERF_EVENT_IOC_SET_BPF`: the program stays until the event is closed.
    Ioctl,
}

/// Attaches `program` to `event`.
///
/// # Errors
///
/// `EEXIST` when the event has a program already, `EPROTO` when the program takes stacks and the
/// event has no call chain.
pub fn attach(program: BorrowedFd<'_>, event: &Event) -> Result<Link, SyscallError> {
    let attr = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_fd: event.as_raw_fd() as u32,
        attach_type: BPF_PERF_EVENT,
        ..LinkCreate::default()
    };
    // SAFETY: an initialised attribute of the size that is passed; both descriptors are open.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attr, size_of::<LinkCreate>()) };
    if fd >= 0 {
        // SAFETY: a descriptor that was just made and that nobody else owns.
        return Ok(Link::Bpf(unsafe { OwnedFd::from_raw_fd(fd as i32) }));
    }
    let error = SyscallError::last("bpf(BPF_LINK_CREATE)");
    // Before 5.15 there is no perf-event link: EINVAL, whatever the descriptors are.
    if error.errno() != libc::EINVAL {
        return Err(error);
    }
    // SAFETY: an open event and an open program.
    let done = unsafe { sys::ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd() as u32) };
    if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_SET_BPF)")) } else { Ok(Link::Ioctl) }
}
