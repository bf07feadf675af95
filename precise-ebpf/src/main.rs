//! The entry points. Both run the same steps and differ in how they read the kernel's structures.
#![no_std]
#![no_main]

use aya_ebpf::{macros::perf_event, programs::PerfEventContext};
use precise_ebpf::{
    read::{Direct, Probe},
    run,
};

/// For kernels with the kfunc `bpf_cast_to_kern_ctx` (6.2 and later).
#[perf_event]
pub fn sample(ctx: PerfEventContext) -> u32 {
    run::<Direct>(&ctx)
}

/// For kernels without it.
#[perf_event]
pub fn sample_probe(ctx: PerfEventContext) -> u32 {
    run::<Probe>(&ctx)
}
