//! Part of step 2: cgroups that are watched while the run goes on.
//!
//! A set of ids that user space adds to, as cgroups are made that match a pattern: shared memory
//! with one writer, open addressing. Entries never change or go before the run ends, so that a
//! reader needs no order.

use core::ptr;

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE, helpers::generated::bpf_get_current_ancestor_cgroup_id, macros::map,
    maps::Array,
};
use precise_common::config::watched;

use crate::read::config;

/// Ids; 0 is free. The loader gives it [`watched::ROOM`] entries where the filter asks for it.
#[map]
static CGROUPS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Whether the task's cgroup, or one above it on these levels, is watched. A function of its own:
/// sixteen slots may ask.
#[inline(never)]
pub fn any(levels: u64) -> bool {
    for level in 0..watched::LEVELS {
        if level < watched::first(levels) {
            continue;
        }
        if level > watched::last(levels) {
            break;
        }
        // SAFETY: a helper that takes a level and returns 0 for one that the task's cgroup does not
        // have.
        let id = unsafe { bpf_get_current_ancestor_cgroup_id(level as i32) };
        if id == 0 {
            break;
        }
        if contains(id) {
            return true;
        }
    }
    false
}

#[inline(always)]
fn contains(id: u64) -> bool {
    // The bound is a constant to the verifier, not to the compiler, which would unroll the loop.
    for probe in 0..config!(probes) as u32 {
        let Some(slot) = CGROUPS.get_ptr_mut(watched::place(id, probe)) else { return false };
        // SAFETY: a valid pointer into the map; volatile as user space writes it at any time, each
        // word whole.
        let found = unsafe { ptr::read_volatile(slot) };
        if found == id || found == 0 {
            return found == id;
        }
    }
    false
}
