//! The steps of the program that runs for every sample: read, filter, key, add, count. One file per step.
#![no_std]
// Inline assembly for BPF is not stable yet; it is how the constants of the filter block get into the instructions.
#![feature(asm_experimental_arch)]

use aya_ebpf::{EbpfContext as _, programs::PerfEventContext};

mod filter;
pub mod key;
pub mod ledger;
pub mod read;
mod table;

use read::{Access, Sample};

/// All steps for one sample.
///
/// Returns 0: the sample ends here, and nothing reaches a ring.
#[inline(always)]
pub fn run<A: Access>(ctx: &PerfEventContext) -> u32 {
    // A sample without a row is in no counter; user space sees it as missing coverage.
    let Some(mut ledger) = ledger::row() else { return 0 };
    let Some(sample) = Sample::<A>::open(ctx.as_ptr()) else {
        ledger.unreadable();
        return 0;
    };
    ledger.seen(&sample);
    if let Err(clause) = filter::pass(&sample) {
        ledger.rejected(clause);
        return 0;
    }
    let outcome = table::add(ledger.epoch(), &key::of(&sample), &sample);
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
