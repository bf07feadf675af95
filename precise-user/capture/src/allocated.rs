//! The bytes that a test has allocated, to compare a bound in bytes with the truth.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The bytes that this thread has allocated and not freed, and the most that they were. A
    /// constant without a destructor, so that counting allocates nothing.
    static ALLOCATED: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends frees what it has after its counter is gone.
    let _ = ALLOCATED.try_with(|allocated| {
        let (now, most) = allocated.get();
        allocated.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call goes to the system's allocator with the arguments of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist for a moment.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: as the caller guarantees.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Runs `work`, and returns its result with the most bytes that this thread had allocated meanwhile
/// beyond those that it had before.
pub(crate) fn most_allocated<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.with(|allocated| {
        let (now, _) = allocated.get();
        allocated.set((now, now));
        now
    });
    let result = work();
    let (_, most) = ALLOCATED.with(Cell::get);
    (result, usize::try_from(most - before).unwrap_or(0))
}

/// Returns the bytes that this thread has allocated and not freed. Compare two of them.
pub(crate) fn allocated() -> isize {
    let (now, _) = ALLOCATED.with(Cell::get);
    now
}
