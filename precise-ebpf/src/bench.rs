//! What the program is measured against: nothing at all, and the same work in a per-CPU hash map.
#![no_std]
#![no_main]

use aya_ebpf::{
    EbpfContext as _,
    macros::{map, perf_event},
    maps::PerCpuHashMap,
    programs::PerfEventContext,
};
use precise_common::cell::Key;
use precise_ebpf::{
    key, ledger,
    read::{Direct, Sample},
};

/// The measures of a cell, as a hash map's value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Value {
    latency_sum: u64,
    period_sum: u64,
    count: u32,
    latency_max: u32,
}

#[map]
static HASH: PerCpuHashMap<Key, Value> = PerCpuHashMap::with_max_entries(16384, 0);

/// The floor: what a run of any program costs.
#[perf_event]
pub fn empty(_ctx: PerfEventContext) -> u32 {
    0
}

/// The same sample, key and ledger; the cell is a value of a preallocated per-CPU hash map.
#[perf_event]
pub fn hash(ctx: PerfEventContext) -> u32 {
    let Some(mut ledger) = ledger::row() else { return 0 };
    let Some(sample) = Sample::<Direct>::open(ctx.as_ptr()) else { return 0 };
    ledger.seen(&sample);
    let key = key::of(&sample);
    match HASH.get_ptr_mut(&key) {
        // SAFETY: this CPU's own copy of the value; perf-event programs do not nest on a CPU.
        Some(value) => unsafe {
            (*value).latency_sum += sample.latency as u64;
            (*value).period_sum += sample.period;
            (*value).latency_max = (*value).latency_max.max(sample.latency);
            (*value).count += 1;
        },
        None => {
            let value = Value {
                latency_sum: sample.latency as u64,
                period_sum: sample.period,
                count: 1,
                latency_max: sample.latency,
            };
            let _ = HASH.insert(&key, &value, 1);
        }
    }
    0
}
