//! Part of step 3: the call chain, and the table that stores it.
//!
//! This does not use the kernel's own map (`BPF_MAP_TYPE_STACK_TRACE`): reading one is a bpf(2)
//! call per chain, during which the kernel skips samples on that CPU; its ids are reused; and two
//! chains may compete for one bucket. The table works like that of the cells: one partition per
//! CPU, two halves, written only by its own CPU, read by user space through shared memory.

use core::{arch::asm, ffi::c_void};

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::generated::{bpf_get_smp_processor_id, bpf_get_stack, bpf_probe_read_kernel},
    macros::map,
    maps::Array,
};
use precise_common::{
    config::source,
    ledger::lease as part,
    stack::{CONTEXT_USER, ENTRIES, SEED, StackSlot, id, mix, none},
};

use crate::{
    chain,
    read::{KernelRead, SampleContext, asks, config},
    unwind,
};

/// The table of chains: two halves of one partition per sampled CPU. Each is an element, whose
/// number of chains the loader sets, as it sets the number of elements: one of one chain, if the
/// run takes none.
#[map]
static STACKS: Array<StackSlot> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Returns the id of the call chain of a sample of the process `pid`, after adding it to the half
/// of the table that the lease names. If there is no chain, returns the reason ([`none`]).
///
/// Not inlined, so that runs without chains have the registers of `aggregate` for themselves.
#[inline(never)]
pub fn of<A: KernelRead>(ctx: *mut c_void, pid: u32, lease: u64) -> u64 {
    let sample = SampleContext::<A>::open(ctx);
    let Some(kernels) = sample.callchain() else { return none::UNREADABLE };
    if kernels == 0 {
        return none::NOT_GIVEN;
    }
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(own) = chain::buffer(cpu) else { return none::FULL };
    if asks!(source, has source::CALLS_FOR_CHAIN) {
        // The result is not used. On these kernels, the call alone makes the kernel take a chain
        // before the program runs (kernel/events/core.c, bpf_overflow_handler). SAFETY: a helper
        // that writes nothing into a buffer of no bytes.
        unsafe { bpf_get_stack(ctx, own.cast(), 0, 0) };
    }
    let mut length = 0u64;
    // SAFETY: the helper checks the source; the target is a word of the stack.
    if unsafe { bpf_probe_read_kernel((&raw mut length).cast(), 8, kernels as *const c_void) } != 0 {
        return none::UNREADABLE;
    }
    if length == 0 && !asks!(source, has source::UNWIND) {
        return none::NOT_GIVEN;
    }
    let mut length = at_most_entries(length);
    // SAFETY: the helper checks the source, and the verifier that the target has room.
    if unsafe { bpf_probe_read_kernel(own.cast(), bytes(length), (kernels + 8) as *const c_void) } != 0 {
        return none::UNREADABLE;
    }
    if asks!(source, has source::UNWIND) {
        if asks!(source, has source::CALLS_FOR_CHAIN) {
            length = kernel_part(own, length);
        }
        // SAFETY: in the buffer, as above.
        unsafe { own.add(chain::LENGTH).write(length) };
        unwind::add(cpu, pid);
        // SAFETY: as above; volatile because the call has written it.
        length = at_most_entries(unsafe { own.add(chain::LENGTH).read_volatile() });
    }
    let mut hash = SEED;
    // As in the table of cells, the bound is a constant to the verifier, but not to the compiler,
    // which would unroll the loop.
    let end = unrelated(length);
    for entry in 0..config!(stack_entries) {
        if entry >= end {
            break;
        }
        // SAFETY: below `stack_entries`, which is the number of words; the verifier proves it.
        hash = mix(hash, unsafe { own.add(entry as usize).read() });
    }
    keep(lease, id(hash), own, length)
}

/// Returns the number of entries before the user's part of a chain, for kernels that cannot leave
/// it out for a program that calls `bpf_get_stack` (`EPROTO` with `exclude_callchain_user`).
#[inline(always)]
fn kernel_part(own: *const u64, length: u64) -> u64 {
    for entry in 0..config!(stack_entries) {
        // SAFETY: below `stack_entries`, as below.
        if entry >= length || unsafe { own.add(entry as usize).read() } == CONTEXT_USER {
            return entry;
        }
    }
    length
}

/// Limits a length to the largest number of entries of a chain. In assembly, because the compiler
/// compares a copy of the value that it keeps on the stack, and the verifier of Linux 6.1 does not
/// apply the result to the other copy.
#[inline(always)]
fn at_most_entries(length: u64) -> u64 {
    let mut least = length;
    // SAFETY: compares and sets its own register.
    unsafe {
        asm!(
            "if {length} < {entries} goto +1",
            "{length} = {entries}",
            length = inlateout(reg) least,
            entries = const ENTRIES as i32,
            options(pure, nomem, nostack),
        );
    }
    least
}

/// Returns the same number in a register of which the verifier does not know that it is the same.
/// Otherwise each end of a loop over the entries would be another length to it, and it would check
/// what follows for each of them.
#[inline(always)]
fn unrelated(length: u64) -> u64 {
    let mut other = length;
    // SAFETY: shifts its own register; no length has the upper bit.
    unsafe {
        asm!("{other} <<= 1", "{other} >>= 1", other = inlateout(reg) other, options(pure, nomem, nostack));
    }
    other
}

/// Returns the size of `length` entries in bytes, in the same register as the limit from
/// [`at_most_entries`].
#[inline(always)]
fn bytes(length: u64) -> u32 {
    (at_most_entries(length) * 8) as u32
}

/// Looks up a chain in the table, and adds it if it is new. Returns its id, or why it is not there.
#[inline(always)]
fn keep(lease: u64, id: u64, entries: *const u64, length: u64) -> u64 {
    let Some(first) = STACKS.get_ptr_mut(part::place(lease)) else { return none::FULL };
    let mask = config!(stack_mask) as u32;
    for probe in 0..config!(probes) as u32 {
        // SAFETY: the element has a chain for each value of the mask, as the verifier checks;
        // nobody else touches this partition's current half.
        let slot = unsafe { &mut *first.add(((id as u32).wrapping_add(probe) & mask) as usize) };
        if slot.id == id {
            return id;
        }
        if slot.id != 0 {
            continue;
        }
        // SAFETY: copies between two maps; the verifier checks both, the helper the source.
        let copied =
            unsafe { bpf_probe_read_kernel((&raw mut slot.entries).cast(), bytes(length), entries.cast()) };
        if copied != 0 {
            return none::UNREADABLE;
        }
        slot.length = length;
        slot.id = id;
        return id;
    }
    none::FULL
}
