//! Memory that is kept for the compressor.

use std::ptr::null_mut;

/// Address space that is kept for zstd, and never touched. zstd takes its memory from malloc(3),
/// and its crate panics if there is none; Rust's allocator can wait for memory, or report an
/// error. So this is given back before anything is compressed, and taken again afterwards.
#[derive(Default)]
pub struct Reserve(Option<*mut libc::c_void>);

// SAFETY: nothing reads or writes the mapping, and only its owner unmaps it.
unsafe impl Send for Reserve {}

impl Reserve {
    /// Several times what a context of zstd takes at level 3.
    const BYTES: usize = 16 << 20;

    pub fn taken() -> Self {
        let mut new = Self::default();
        new.take();
        new
    }

    pub fn give(&mut self) {
        if let Some(start) = self.0.take() {
            // SAFETY: `start` is of a mapping of this size that `take` made. Nobody else has it.
            let unmapped = unsafe { libc::munmap(start, Self::BYTES) };
            debug_assert_eq!(unmapped, 0, "a mapping of our own");
        }
    }

    pub fn take(&mut self) {
        if self.0.is_some() {
            return;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address that the kernel chooses, changes no other memory.
        let mapped = unsafe { libc::mmap(null_mut(), Self::BYTES, access, flags, -1, 0) };
        // Without it, a later lack of memory may end the run. That is not a reason to end it now.
        self.0 = (mapped != libc::MAP_FAILED).then_some(mapped);
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.give();
    }
}
