//! The buffers in which call chains are made, one per CPU.

use aya_ebpf::{macros::map, maps::Array};
use precise_common::stack::{BUFFER, ENTRIES};

/// A buffer for one chain per CPU while it is processed. Perf-event programs do not nest on a CPU.
#[map]
static CHAIN: Array<[u64; BUFFER]> = Array::with_max_entries(1, 0);

/// The word of a buffer that has the number of entries while frames are added. In the memory of a
/// map it is any number to the verifier, each time it is read. In a register, or on the stack, it
/// would be another range after each frame, and the verifier would check what follows for each of
/// them.
pub const LENGTH: usize = BUFFER - 1;

/// Returns the buffer of a CPU, of [`BUFFER`] words.
#[inline(always)]
pub fn buffer(cpu: u32) -> Option<*mut u64> {
    CHAIN.get_ptr_mut(cpu).map(|buffer| buffer.cast())
}

/// The first word of the state between two frames.
const STATE: usize = 160;
const _: () = assert!(STATE >= ENTRIES);

/// Returns the state between two frames in the buffer of a CPU. It is there and not on the stack,
/// because the functions of the program have 512 bytes of stack together.
#[inline(always)]
pub fn state<T>(cpu: u32) -> Option<*mut T> {
    const { assert!(STATE + size_of::<T>().div_ceil(8) <= LENGTH && align_of::<T>() <= 8) };
    // SAFETY: within the buffer, before the word of the length.
    buffer(cpu).map(|buffer| unsafe { buffer.add(STATE) }.cast())
}

/// Adds an entry to the chain in the buffer of a CPU, unless there would be no room for `after`
/// more. Returns whether it did.
#[inline(always)]
pub fn put(cpu: u32, entry: u64, after: u64) -> bool {
    let Some(own) = buffer(cpu) else { return false };
    // SAFETY: a valid pointer into the map, whose element has `BUFFER` words; only this CPU uses
    // it.
    unsafe {
        let length = own.add(LENGTH).read_volatile();
        if length + after >= ENTRIES as u64 {
            return false;
        }
        own.add((length % BUFFER as u64) as usize).write(entry);
        own.add(LENGTH).write_volatile(length + 1);
    }
    true
}
