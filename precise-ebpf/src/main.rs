//! The entry points. Both run the same steps, and differ in how they read the kernel's structures.
//!
//! They do not use aya's `#[perf_event]`, because its wrapper always returns 0, and a streaming run
//! must return 1 for samples that it keeps.
#![no_std]
#![no_main]

use core::ffi::c_void;

use aya_ebpf::programs::PerfEventContext;
use precise_ebpf::{
    read::{Direct, ProbeReads},
    run,
};

/// The entry point for kernels with the kfunc `bpf_cast_to_kern_ctx` (6.2 and later).
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample(ctx: *mut c_void) -> u32 {
    run::<Direct>(&PerfEventContext::new(ctx.cast()))
}

/// The entry point for kernels without that kfunc.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample_probe(ctx: *mut c_void) -> u32 {
    run::<ProbeReads>(&PerfEventContext::new(ctx.cast()))
}
