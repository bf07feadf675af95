//! The entry points. All run the same steps, and differ in how they read the kernel's structures.
//!
//! They do not use aya's `#[perf_event]`, because its wrapper always returns 0, and a streaming run
//! must return 1 for samples that it keeps.
#![no_std]
#![no_main]

use core::ffi::c_void;

use precise_ebpf::{
    read::{
        Direct, ProbeReads,
        fault::{self, AtFault},
    },
    run,
};

/// The entry point for kernels with the kfunc `bpf_cast_to_kern_ctx` (6.2 and later).
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample(ctx: *mut c_void) -> u32 {
    run::<Direct>(ctx)
}

/// The entry point for kernels without that kfunc.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample_probe(ctx: *mut c_void) -> u32 {
    run::<ProbeReads>(ctx)
}

/// The entry point at the tracepoints of page faults, in place of a perf event that would sample
/// each of them.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub fn fault(ctx: *mut c_void) -> u32 {
    if fault::counts(ctx) { run::<AtFault>(ctx) } else { 0 }
}
