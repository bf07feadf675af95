//! What a run asks of the C library's allocator, so that it keeps no more than is in use:
//! docs/journal/0004-memory.md.

/// To be called before a run starts its threads.
///
/// One arena, as what one thread allocates another one frees; and large blocks are always mappings
/// of their own, which go back when they are freed. By default the size from which they are grows
/// with each that is freed, up to 32 MiB, and then they lie in the heap, between what stays
/// (mallopt(3)).
pub(super) fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers of the allocator under its lock; both are in the range that it
    // takes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Gives back what was freed and is kept, also inside of the heap. It would be used again, but
/// never quite: what lives for long lies between what does not, and over hours of rows, names and
/// processes the resident memory grows, though no more is in use.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: walks the allocator's own lists under its locks; what is in use stays where it is.
    unsafe {
        libc::malloc_trim(0);
    }
}
