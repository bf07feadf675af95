//! Step 3 as well: the call chain, and the table that it is kept in.
//!
//! Not a map of the kernel's own (`BPF_MAP_TYPE_STACK_TRACE`): reading one is a bpf(2) call for
//! each chain, during which the kernel skips samples on that CPU; its ids are reused; and two
//! chains may fight for one bucket. Here it is as with cells: a partition per CPU, two halves,
//! written only by its own CPU, read by user space through shared memory.

use core::{arch::asm, ffi::c_void};

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::generated::{bpf_get_smp_processor_id, bpf_get_stack, bpf_probe_read_kernel},
    macros::map,
    maps::Array,
};
use precise_common::{
    config::source,
    stack::{ENTRIES, SEED, Slot, id, mix, none},
};

use crate::read::{Access, Sample, asks, config};

/// Two halves of one partition per CPU. The loader sets the number of chains; 1 where the run takes
/// none.
#[map]
static STACKS: Array<Slot> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One chain per CPU, while it is looked at: perf-event programs do not nest on a CPU.
#[map]
static CHAIN: Array<[u64; ENTRIES]> = Array::with_max_entries(1, 0);

/// The id of the sample's call chain, which is in the half of the table that the lease names, when
/// this returns; or why there is none ([`none`]).
#[inline(always)]
pub fn of<A: Access>(sample: &Sample<A>, ctx: *mut c_void, lease: u64) -> u64 {
    let Some(chain) = sample.callchain() else { return none::UNREADABLE };
    if chain == 0 {
        return none::NOT_GIVEN;
    }
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(own) = CHAIN.get_ptr_mut(cpu) else { return none::FULL };
    let own: *mut u64 = own.cast();
    if asks!(source, has source::CALLS_FOR_CHAIN) {
        // Nothing is wanted of it: that the call is there is what makes these kernels take a chain
        // before the program runs (kernel/events/core.c, bpf_overflow_handler). SAFETY: a helper
        // that writes nothing into a buffer of no bytes.
        unsafe { bpf_get_stack(ctx, own.cast(), 0, 0) };
    }
    let mut length = 0u64;
    // SAFETY: the helper checks the source; the target is a word of the stack.
    if unsafe { bpf_probe_read_kernel((&raw mut length).cast(), 8, chain as *const c_void) } != 0 {
        return none::UNREADABLE;
    }
    if length == 0 {
        return none::NOT_GIVEN;
    }
    let length = at_most_entries(length);
    // SAFETY: the helper checks the source, and the verifier that the target has room.
    if unsafe { bpf_probe_read_kernel(own.cast(), bytes(length), (chain + 8) as *const c_void) } != 0 {
        return none::UNREADABLE;
    }
    let mut hash = SEED;
    // As in the table of cells: a constant to the verifier, not to the compiler, which would unroll
    // the loop.
    for entry in 0..config!(stack_entries) {
        if entry >= length {
            break;
        }
        // SAFETY: below `stack_entries`, which is how many there are; the verifier proves it.
        hash = mix(hash, unsafe { own.add(entry as usize).read() });
    }
    keep(lease, cpu, id(hash), own, length)
}

/// No more than a chain can have. In assembly, because the compiler compares a copy of what it
/// keeps on the stack, and the verifier of Linux 6.1 does not conclude from the one to the other.
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

/// Bytes of so many entries, in one register with what [`at_most_entries`] says of them.
#[inline(always)]
fn bytes(length: u64) -> u32 {
    (at_most_entries(length) * 8) as u32
}

/// Looks for a chain in the table, and puts it there if it is new.
#[inline(always)]
fn keep(lease: u64, cpu: u32, id: u64, entries: *const u64, length: u64) -> u64 {
    let cpus = config!(cpus) as u32;
    if cpu >= cpus {
        return none::FULL;
    }
    let mask = config!(stack_mask) as u32;
    let base = ((lease & 1) as u32 * cpus + cpu) * (mask + 1);
    for probe in 0..config!(probes) as u32 {
        let index = base + ((id as u32).wrapping_add(probe) & mask);
        let Some(slot) = STACKS.get_ptr_mut(index) else { return none::FULL };
        // SAFETY: a valid pointer into the map; nobody else touches this partition's current half.
        let slot = unsafe { &mut *slot };
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
