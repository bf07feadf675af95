//! Baselines for benchmarks of the BPF program: an empty program, and the same work in a per-CPU
//! hash map.
#![no_std]
#![no_main]

use aya_ebpf::{
    EbpfContext as _,
    macros::{map, perf_event},
    maps::PerCpuHashMap,
    programs::PerfEventContext,
};
use precise_common::cell::CellKey;
use precise_ebpf::{
    key, ledger,
    read::{Direct, SampleContext},
};

/// The measures of a cell, as the value of a hash map.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BenchMeasures {
    latency_sum: u64,
    period_sum: u64,
    count: u32,
    latency_max: u32,
}

#[map]
static HASH: PerCpuHashMap<CellKey, BenchMeasures> = PerCpuHashMap::with_max_entries(16384, 0);

/// The baseline: the cost of running any program.
#[perf_event]
#[inline(always)]
pub fn empty(_ctx: PerfEventContext) -> u32 {
    0
}

/// The cost of the ledger alone: three counters; one of them is a sum of periods.
#[perf_event]
#[inline(always)]
pub fn count(ctx: PerfEventContext) -> u32 {
    let sample = SampleContext::<Direct>::arrived(ctx.as_ptr());
    let Some(mut ledger) = ledger::row() else { return 0 };
    let _period = ledger.seen(&sample);
    ledger.count_at(precise_common::ledger::REJECTED_FIRST);
    0
}

/// The same sample, map key and ledger, with the cell as a value of a preallocated per-CPU hash
/// map.
#[perf_event]
#[inline(always)]
pub fn hash(ctx: PerfEventContext) -> u32 {
    let Some(mut ledger) = ledger::row() else { return 0 };
    let sample = SampleContext::<Direct>::arrived(ctx.as_ptr());
    let period = ledger.seen(&sample);
    let sample = sample.kept();
    let Some(facts) = sample.ids().and_then(|ids| sample.facts(ids, period)) else { return 0 };
    let Some(key) = key::of(&sample, &facts, &mut ledger) else { return 0 };
    match HASH.get_ptr_mut(&key) {
        // SAFETY: this CPU's own copy of the value; perf-event programs do not nest on a CPU.
        Some(value) => unsafe {
            (*value).latency_sum += facts.latency as u64;
            (*value).period_sum += facts.period;
            (*value).latency_max = (*value).latency_max.max(facts.latency);
            (*value).count += 1;
        },
        None => {
            let value = BenchMeasures {
                latency_sum: facts.latency as u64,
                period_sum: facts.period,
                count: 1,
                latency_max: facts.latency,
            };
            let _ = HASH.insert(&key, &value, 1);
        }
    }
    0
}
