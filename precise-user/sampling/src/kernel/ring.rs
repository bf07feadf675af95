//! The ring buffer of a perf event, read by user space.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::map_memory::{SharedMemory, page_size};
use crate::error::SyscallError;

/// A ring of `1 + 2ⁿ` pages.
#[derive(Debug)]
pub struct Ring {
    memory: SharedMemory,
    data_len: usize,
}

impl Ring {
    /// Maps the ring of an event. `data_pages` must be a power of two.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2): `EPERM` if the ring would exceed `kernel.perf_event_mlock_kb`.
    pub fn map(event: BorrowedFd<'_>, data_pages: usize) -> Result<Self, SyscallError> {
        debug_assert!(data_pages.is_power_of_two());
        let memory = SharedMemory::map(event, (1 + data_pages) * page_size())?;
        Ok(Self { memory, data_len: data_pages * page_size() })
    }

    /// Returns the records that arrived since the last call, whole and one after the other, and
    /// frees their space in the ring.
    pub fn take(&mut self) -> Bytes {
        let page = self.memory.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the first page of the mapping is the control page. Both positions are aligned u64
        // values, updated atomically: the head by the kernel, the tail by this thread.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(&raw mut (*page).data_head), AtomicU64::from_ptr(&raw mut (*page).data_tail))
        };
        // Acquire: the kernel wrote the records before it advanced `head` (the barrier in
        // perf_output_put_handle).
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        // The kernel never lets the head run ahead of the tail by more than the size of the ring.
        let len = usize::try_from(end.wrapping_sub(begin)).unwrap_or(0).min(self.data_len);
        let records = self.copy(begin, len);
        // Release: the copy is complete before the kernel may overwrite the records.
        tail.store(end, Ordering::Release);
        Bytes::from(records)
    }

    fn copy(&self, at: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        let start = (at % self.data_len as u64) as usize;
        let first = len.min(self.data_len - start);
        // SAFETY: the data area is `data_len` bytes long and follows the control page. Both parts
        // lie in it, because `len` is at most `data_len`.
        unsafe {
            let data = self.memory.as_ptr().add(page_size());
            std::ptr::copy_nonoverlapping(data.add(start), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().add(first), len - first);
        }
        out
    }
}
