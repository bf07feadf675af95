//! The entry points. Both run the same steps and differ in how they read the kernel's structures.
//!
//! Not by aya's `#[perf_event]`: its wrapper returns 0 whatever the function returns, and what a
//! streaming run keeps must return 1.
#![no_std]
#![no_main]

use core::ffi::c_void;

use aya_ebpf::programs::PerfEventContext;
use precise_ebpf::{
    read::{Direct, Probe},
    run,
};

/// For kernels with the kfunc `bpf_cast_to_kern_ctx` (6.2 and later).
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample(ctx: *mut c_void) -> u32 {
    run::<Direct>(&PerfEventContext::new(ctx.cast()))
}

/// For kernels without it.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample_probe(ctx: *mut c_void) -> u32 {
    run::<Probe>(&PerfEventContext::new(ctx.cast()))
}
