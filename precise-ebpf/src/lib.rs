//! The steps of the program that runs for every sample: read, filter, key, add, count. One file per
//! step.
#![no_std]
// Inline assembly for BPF is not stable yet; it is how the constants of the filter block get into
// the instructions.
#![feature(asm_experimental_arch)]

use aya_ebpf::{EbpfContext as _, programs::PerfEventContext};

mod filter;
mod ibs;
pub mod key;
pub mod ledger;
mod lines;
pub mod read;
mod stack;
mod table;
mod watched;

use core::ffi::c_void;

use precise_common::{
    config::{key as by, mode, promote},
    ledger::Counter,
};
use read::{Access, Sample, asks};

/// All steps for one sample.
///
/// Returns 0 where the sample ends here and nothing reaches a ring, and 1 where the kernel is to
/// write it to the event's ring: what passes the filter of a streaming run.
#[inline(always)]
pub fn run<A: Access>(ctx: &PerfEventContext) -> u32 {
    let ctx = ctx.as_ptr();
    let sample = Sample::<A>::open(ctx);
    // The filter comes first: most samples end there, and what follows is code and memory that is
    // cold by then.
    match filter::pass(&sample) {
        Ok(()) if asks!(mode, is mode::STREAM) => return stream(&sample),
        Ok(()) => aggregate::<A>(ctx),
        Err(id) => {
            // A sample without a row is in no counter; user space sees it as missing coverage.
            if let Some(mut ledger) = ledger::row() {
                ledger.seen(&sample);
                ledger.count_at(id);
            }
        }
    }
    0
}

/// The steps for a sample that passed the filter: a function of its own, whose code and stack a
/// rejected one does not touch.
#[inline(never)]
fn aggregate<A: Access>(ctx: *mut c_void) {
    let sample = Sample::<A>::open(ctx);
    let Some(mut ledger) = ledger::row() else { return };
    ledger.seen(&sample);
    let Some(time) = sample.time() else { return ledger.count(Counter::ReadFailed) };
    // Once, for the chain and the cell that holds its id: both must be in the same half.
    let lease = ledger.lease();
    if time > lease {
        // Nobody has read the table for longer than an epoch: who would read this?
        return ledger.count(Counter::Late);
    }
    keep(&sample, ctx, lease, &mut ledger);
    ledger.time(time);
}

/// Puts a sample into the table, in the half that the lease names.
#[inline(always)]
fn keep<A: Access>(sample: &Sample<A>, ctx: *mut c_void, lease: u64, ledger: &mut ledger::Row) {
    let parts = sample.facts().and_then(|facts| Some((key::of(sample, &facts)?, facts)));
    let Some((mut key, facts)) = parts else { return ledger.count(Counter::ReadFailed) };
    if asks!(key, has by::STACK) {
        key.address = stack::of(sample, ctx, lease);
    }
    if !asks!(promote, has promote::ON) {
        let outcome = table::add(lease, &key, &facts);
        return ledger.added(outcome, &key, &facts);
    }
    let dropped = match lines::of(sample, &facts, ledger) {
        Some(lines::Line::Promoted) => None,
        Some(lines::Line::Other) => Some(Counter::NotPromoted.id()),
        Some(lines::Line::Full) => Some(Counter::LinesFull.id()),
        None => return ledger.count(Counter::ReadFailed),
    };
    if dropped.is_some() {
        // Without its address, a sample takes a cell of its code and no more, however many lines
        // that touches.
        key.address = 0;
    }
    let outcome = table::add(lease, &key, &facts);
    if let (table::Outcome::Added, Some(id)) = (&outcome, dropped) {
        ledger.count_at(id);
    }
    ledger.added(outcome, &key, &facts);
}

/// What a streaming run does with a sample that passed the filter.
#[inline(always)]
fn stream<A: Access>(sample: &Sample<A>) -> u32 {
    // On a CPU without a row nothing is written either: user space checks what it reads against the
    // row's count.
    let Some(mut ledger) = ledger::row() else { return 0 };
    ledger.seen(sample);
    ledger.count(Counter::Streamed);
    1
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
