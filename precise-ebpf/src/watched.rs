//! Part of step 2: cgroups that are watched while the run goes on.
//!
//! A set of ids in shared memory, in open addressing. User space is the only writer; it adds the
//! ids of new cgroups that match a pattern, and removes those of cgroups that are gone. No entry on
//! the way to an id that is in the set is ever free, so readers need no memory ordering.

use core::ptr;

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE, helpers::generated::bpf_get_current_ancestor_cgroup_id, macros::map,
    maps::Array,
};
use precise_common::config::watched;

use crate::read::config;

/// The ids; 0 is a free entry. The loader gives the map [`watched::ROOM`] entries if the filter
/// needs it.
#[map]
static CGROUPS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Returns whether the task's cgroup, or an ancestor of it on these levels, is watched. Not
/// inlined, because sixteen slots may use it.
#[inline(never)]
pub fn any(levels: u64) -> bool {
    for level in 0..watched::LEVELS {
        if level < watched::first(levels) {
            continue;
        }
        if level > watched::last(levels) {
            break;
        }
        // SAFETY: a helper that takes a level and returns 0 for a level that the task's cgroup does
        // not have.
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
    // The bound is a constant to the verifier, but not to the compiler, which would unroll the
    // loop.
    for probe in 0..config!(probes) as u32 {
        let Some(slot) = CGROUPS.get_ptr_mut(watched::place(id, probe)) else { return false };
        // SAFETY: a valid pointer into the map; volatile because user space may write it at any
        // time, each word at once.
        let found = unsafe { ptr::read_volatile(slot) };
        if found == id || found == 0 {
            return found == id;
        }
    }
    false
}
