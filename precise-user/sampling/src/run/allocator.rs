//! Settings of the C library's allocator that keep unused memory small:
//! docs/journal/0004-memory.md.

/// Configures the allocator to keep little unused memory. Call it before a run starts its threads.
///
/// Uses one arena, because one thread often frees what another allocated. Fixes the size from which
/// blocks get mappings of their own, which are returned to the kernel when freed. By default that
/// threshold grows with each such block that is freed, up to 32 MiB, and large blocks then lie in
/// the heap between blocks that stay (mallopt(3)).
pub(super) fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers of the allocator under its lock; both are within the accepted range.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Returns freed memory to the kernel, also from inside the heap. The allocator would reuse it, but
/// never all of it: long-lived blocks lie between short-lived ones, and over hours of rows, names
/// and processes the resident memory grows although no more is in use.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: walks the allocator's own lists under its locks; blocks in use are not moved.
    unsafe {
        libc::malloc_trim(0);
    }
}
