//! Memory shared with the kernel: mappings of BPF maps and of perf rings.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    ptr::NonNull,
};

use crate::error::SyscallError;

/// A shared mapping of a file descriptor, unmapped on drop.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: this is plain shared memory; all accesses go through raw pointers that the callers
// synchronise.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `len` bytes, rounded up to whole pages, readable and writable.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SyscallError> {
        let len = len.next_multiple_of(page_size());
        // SAFETY: the call makes a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Self { start: first, len }),
            _ => Err(SyscallError::last("mmap")),
        }
    }

    /// Returns a pointer to the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the size of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the mapping is empty. It never is: a mapping has at least one page.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and no borrow of it outlives this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Returns the page size in bytes.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
