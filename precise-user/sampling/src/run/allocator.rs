//! Settings of the C library's allocator that keep unused memory small:
//! docs/journal/0004-memory.md and docs/journal/0009-waiting-rows.md.

use std::time::{Duration, Instant};

/// The shortest time between two returns of freed memory: the shortest epoch. With a second, every
/// other epoch of a second kept what it had freed until the next one, as chance would have it.
const SHORTEST: Duration = Duration::from_millis(100);
/// The pause after a return is at least this many times as long as the return took, which is a
/// thousandth of a CPU for a heap of any size.
const PAUSES: u32 = 1000;

/// Configures the allocator to keep little unused memory. Call it before a run starts its threads.
///
/// Uses one arena, because one thread often frees what another allocated. Fixes the size from which
/// blocks get mappings of their own, which are returned to the kernel when freed. By default that
/// threshold grows with each such block that is freed, up to 32 MiB, and large blocks then lie in
/// the heap between blocks that stay (mallopt(3)).
pub(super) fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets three numbers of the allocator under its lock, each within the accepted range.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 128 << 10);
    }
}

/// Decides when freed memory is returned to the kernel while epochs are named.
#[derive(Debug)]
pub(super) struct Returning {
    next: Instant,
}

impl Returning {
    /// Starts the first pause.
    pub fn start() -> Self {
        Self { next: Instant::now() + SHORTEST }
    }

    /// Returns freed memory if the last return is long enough ago.
    pub fn after_epoch(&mut self) {
        let begin = Instant::now();
        if begin >= self.next {
            give_back();
            self.next = begin + pause(begin.elapsed());
        }
    }
}

/// Returns the time from the start of a return that took this long to the next one.
fn pause(took: Duration) -> Duration {
    took.saturating_mul(PAUSES).max(SHORTEST)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_heap_is_returned_less_often() {
        assert_eq!(pause(Duration::from_micros(80)), SHORTEST);
        assert_eq!(pause(Duration::from_millis(20)), Duration::from_secs(20));
    }
}
