//! The program that runs for every sample: read, filter, key, add, count.
//!
//! One file per step. Two entry points run the same steps and differ in how they read the kernel's structures:
//! [`sample`] by direct loads (6.2 and later), [`sample_probe`] by a helper (every kernel, slower).
//!
//! Both return 0: the sample ends here, and nothing reaches a ring.
#![no_std]
#![no_main]

use aya_ebpf::{EbpfContext as _, macros::perf_event, programs::PerfEventContext};

mod filter;
mod key;
mod ledger;
mod read;
mod table;

use read::{Access, Direct, Probe, Sample};

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

#[inline(always)]
fn run<A: Access>(ctx: &PerfEventContext) -> u32 {
    // A program whose record cannot be found still counts nothing: user space sees it as missing coverage.
    let Some(mut ledger) = ledger::row() else { return 0 };
    let sample = match Sample::<A>::open(ctx.as_ptr()) {
        Some(sample) => sample,
        None => {
            ledger.unreadable();
            return 0;
        }
    };
    ledger.seen(&sample);
    if let Err(clause) = filter::pass(&sample) {
        ledger.rejected(clause);
        return 0;
    }
    let outcome = table::add(&key::of(&sample), &sample);
    ledger.added(outcome, &sample);
    0
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
