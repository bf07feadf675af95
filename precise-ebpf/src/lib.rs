//! The steps of the BPF program that runs for every sample: read, filter, key, add, count. Each
//! step has its own file.
#![no_std]
// Inline assembly for BPF is not stable yet. It puts the constants of the filter block into the
// instructions.
#![feature(asm_experimental_arch)]

mod chain;
mod filter;
pub mod key;
pub mod ledger;
mod lines;
pub mod read;
mod stack;
mod table;
mod unwind;
mod watched;

use core::ffi::c_void;

use precise_common::{
    config::{key as by, mode, promote},
    ledger::Counter,
    stack::FIRST_ID,
};
use read::{KernelRead, SampleContext, TaskIds, asks};

/// Runs all steps for one sample.
///
/// Returns 0 if the sample ends here and is not written to a ring buffer. Returns 1 if the kernel
/// should write it to the event's ring buffer: a sample that passes the filter of a streaming run.
#[inline(always)]
pub fn run<A: KernelRead>(ctx: *mut c_void) -> u32 {
    let sample = SampleContext::<A>::arrived(ctx);
    // The filter comes first: most samples end there, and the steps after it need code and memory
    // that are cold by then.
    match filter::pass(&sample) {
        Ok(()) if A::OF_EVENT && asks!(mode, is mode::STREAM) => return stream(&sample),
        // Without a filter no sample is rejected, and the call and its return take a fifth of the
        // program's time.
        Ok(()) if filter::is_empty() => added(&sample, ctx),
        Ok(()) => aggregate::<A>(ctx, sample.kernel_ctx, sample.data, sample.task),
        Err(id) => {
            // A sample on a CPU without a row is in no counter; user space sees it as missing
            // coverage.
            if let Some(mut ledger) = ledger::row() {
                let _period = ledger.seen(&sample);
                ledger.count_at(id);
            }
        }
    }
    0
}

/// Runs the steps for a sample that passed the filter. Not inlined, so that a rejected sample does
/// not touch their code and stack.
#[inline(never)]
fn aggregate<A: KernelRead>(ctx: *mut c_void, kernel_ctx: *const u8, data: *const u8, task: *const u8) {
    added(&SampleContext::<A>::of(ctx, kernel_ctx, data, task), ctx);
}

/// Runs the steps for a sample that passed the filter, or that no filter looked at.
#[inline(always)]
fn added<A: KernelRead>(sample: &SampleContext<A>, ctx: *mut c_void) {
    let Some(mut ledger) = ledger::row() else { return };
    let period = ledger.seen(sample);
    ledger.begin(sample);
    let sample = &sample.kept();
    let Some(ids) = sample.ids() else { return ledger.count(Counter::ReadFailed) };
    if ledger.is_own(ids) {
        return ledger.count(Counter::Own);
    }
    // Read once for both the chain and the cell that contains its id, because both must be in the
    // same half.
    let lease = ledger.lease();
    if !ledger.in_time(lease) {
        // User space has not read the table for longer than an epoch, so it would not read this
        // sample either.
        return ledger.count(Counter::Late);
    }
    let Some(cells) = table::cells(lease) else { return ledger.count(Counter::TableMissing) };
    keep(sample, ctx, (ids, period), (lease, cells), &mut ledger);
    ledger.end();
}

/// Adds a sample to the cells of the half that the lease names.
#[inline(always)]
fn keep<A: KernelRead>(
    sample: &SampleContext<A>,
    ctx: *mut c_void,
    (ids, period): (TaskIds, u64),
    (lease, cells): (u64, table::HalfInUse),
    ledger: &mut ledger::CpuCounters,
) {
    let parts = sample.facts(ids, period).and_then(|facts| Some((key::of(sample, &facts, ledger)?, facts)));
    let Some((mut key, facts)) = parts else { return ledger.count(Counter::ReadFailed) };
    if A::OF_EVENT && asks!(key, has by::STACK) {
        // The instruction of such an event is the first frame of its chain.
        if asks!(key, has by::ADDRESS) {
            key.ip = key.address;
        }
        key.address = stack::of::<A>(ctx, ids.process as u32, lease);
        if asks!(key, has by::ADDRESS) && key.address < FIRST_ID {
            key.ip = facts.ip;
        }
    }
    if !A::OF_EVENT || !asks!(promote, has promote::ON) {
        let outcome = table::add(cells, &key, &facts);
        return ledger.added::<A>(outcome, &key, &facts);
    }
    let dropped = match lines::of(sample, &facts, ledger) {
        Some(lines::LineState::Promoted) => None,
        Some(lines::LineState::Other) => Some(Counter::NotPromoted.id()),
        Some(lines::LineState::Full) => Some(Counter::LinesFull.id()),
        None => return ledger.count(Counter::ReadFailed),
    };
    if dropped.is_some() {
        // Without its address, a sample takes only one cell for its code, however many lines that
        // code accesses.
        key.address = 0;
    }
    let outcome = table::add(cells, &key, &facts);
    if let (table::TableOutcome::Added, Some(id)) = (&outcome, dropped) {
        ledger.count_at(id);
    }
    ledger.added::<A>(outcome, &key, &facts);
}

/// Handles a sample that passed the filter of a streaming run.
#[inline(always)]
fn stream<A: KernelRead>(sample: &SampleContext<A>) -> u32 {
    // On a CPU without a row nothing is written either, because user space compares the records
    // that it reads with the row's count.
    let Some(mut ledger) = ledger::row() else { return 0 };
    let _period = ledger.seen(sample);
    let Some(ids) = sample.kept().ids() else {
        ledger.count(Counter::ReadFailed);
        return 0;
    };
    if ledger.is_own(ids) {
        ledger.count(Counter::Own);
        return 0;
    }
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
