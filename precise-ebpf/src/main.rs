//! A placeholder for the eBPF program: it counts samples, so that the build of the object can be worked on.
#![no_std]
#![no_main]

use aya_ebpf::{
    macros::{map, perf_event},
    maps::PerCpuArray,
    programs::PerfEventContext,
};

#[map]
static SEEN: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

#[perf_event]
pub fn on_sample(_ctx: PerfEventContext) -> u32 {
    if let Some(seen) = SEEN.get_ptr_mut(0) {
        // SAFETY: the map is per CPU, and samples on one CPU do not nest.
        unsafe { *seen += 1 }
    }
    0
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
