//! The allocator of the binary: the C library's, but it waits for memory that the kernel refuses.
//!
//! A run goes on for days beside programs that take memory and give it back. Rust ends a process
//! with SIGABRT at the first allocation that fails, and the capture of a whole run with it. So a
//! failed allocation is tried again for [`LONGEST`]; then the process says what happened and ends
//! with the exit code for failures. The checkpoints of a capture stay.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How long an allocation is tried again, in milliseconds.
const LONGEST: u32 = 3000;
/// The pause between two attempts, in milliseconds.
const PAUSE: u32 = 10;
/// What the process says before it ends.
const REFUSED: &[u8] = b"error: the kernel gives this process no more memory (3 s after the first \
    refusal): raise its limits (ulimit -v, or those of its cgroup), or sample less (a smaller \
    --table-cells, a longer period). What a capture had at its last checkpoint is in FILE.partial.\n";

/// Whether allocations wait. Not in the process that reads the files of others: there, memory that
/// is refused is the limit of what one file may cost.
static WAITS: AtomicBool = AtomicBool::new(false);

/// Lets allocations that fail wait from now on.
pub fn wait_for_memory() {
    WAITS.store(true, Relaxed);
}

/// Lets the allocator keep what is freed: up to 32 MiB, and blocks of up to 8 MiB. zstd makes
/// contexts of 100 KB and more for each column of a capture, and without this each of them comes
/// from the kernel, page by page, and goes back to it. A run sets both back (`keep_little` of
/// precise-sampling).
pub fn keep_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers of the allocator under its lock; both are within the accepted range.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 8 << 20);
    }
}

/// The allocator.
pub struct Patient;

// SAFETY: every call goes to the C library's allocator with the arguments of the caller, and its
// answer is returned. Waiting and ending allocate nothing and do not unwind.
unsafe impl GlobalAlloc for Patient {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller guarantees.
        or_again(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller guarantees.
        or_again(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: what the caller guarantees; a call that fails leaves the block as it was.
        or_again(|| unsafe { System.realloc(at, layout, size) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: what the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Returns the memory, which usually is there.
#[inline]
fn or_again(attempt: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = attempt();
    if memory.is_null() { again(&attempt) } else { memory }
}

/// Tries again for a while. Ends the process if that does not help, or returns null if it must not
/// wait.
#[cold]
#[inline(never)]
fn again(attempt: &dyn Fn() -> *mut u8) -> *mut u8 {
    if !WAITS.load(Relaxed) {
        return std::ptr::null_mut();
    }
    for _ in 0..LONGEST / PAUSE {
        std::thread::sleep(std::time::Duration::from_millis(PAUSE.into()));
        let memory = attempt();
        if !memory.is_null() {
            return memory;
        }
    }
    // SAFETY: the bytes outlive the call, and neither call has other preconditions. Destructors do
    // not run, because they may allocate.
    unsafe {
        libc::write(libc::STDERR_FILENO, REFUSED.as_ptr().cast(), REFUSED.len());
        libc::_exit(1);
    }
}
