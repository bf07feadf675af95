//! Step 3: the key, the dimensions that the run groups by.

use precise_common::{
    cell::{Class, Key},
    config::{field, key},
    latency,
};

use crate::read::{Access, Sample, config};

/// The key of a sample. What the run does not group by stays zero.
#[inline(always)]
pub fn of<A: Access>(sample: &Sample<A>) -> Key {
    let wants = config!(key) as u32;
    let mut result = Key::default();
    if wants & key::IP != 0 {
        result.ip = sample.ip;
    }
    if wants & key::ADDRESS != 0 {
        result.address = sample.address & config!(wide address_mask);
    }
    if wants & key::CGROUP != 0 {
        result.cgroup = sample.cgroup();
    }
    if wants & (key::PID | key::TID) != 0 {
        let mut process = sample.pid_tid();
        if wants & key::TID == 0 {
            process &= !0xffff_ffff;
        }
        result.process = process;
    }
    let mut class = 0;
    if wants & key::DATA_SRC != 0 {
        class |= sample.data_src & config!(wide data_src_mask);
    }
    if wants & key::LATENCY != 0 && sample.latency != 0 {
        class |= Class::HAS_LATENCY | (latency::bucket(sample.latency) as u64) << Class::LATENCY_SHIFT;
    }
    if sample.in_kernel() {
        class |= Class::KERNEL;
    }
    if config!(fields) & field::EXACT as u64 != 0 && sample.exact {
        class |= Class::EXACT;
    }
    result.class = class;
    result
}
