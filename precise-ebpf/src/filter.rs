//! Step 2: the filter.
//!
//! The filter is a conjunction of clauses, each a disjunction of slots
//! (`precise_common::config::FilterSlot`). The slots are unrolled by hand, so that the verifier
//! sees each with its own constants and removes every compare that the run does not use.

use core::mem::offset_of;

use aya_ebpf::helpers::{
    bpf_get_current_comm, bpf_get_current_uid_gid,
    generated::{bpf_get_current_ancestor_cgroup_id, bpf_get_smp_processor_id},
};
use precise_common::{
    config::{CONSTANT_WIDE, Config, FilterSlot, MAX_SLOTS, QuestionTest, compare, operand},
    ledger::Counter,
    mode::in_kernel,
};

use crate::{
    read::{KernelRead, SampleContext, asks, constant, guests_may_run},
    watched,
};

/// A constant of slot `I`, or the answer to a question about it.
macro_rules! slot {
    ($index:ident, wide $field:ident) => {
        constant!(slot_offset($index, offset_of!(FilterSlot, $field)) | CONSTANT_WIDE)
    };
    ($index:ident, negated) => {
        asks!(at slot_offset($index, offset_of!(FilterSlot, compare)) as usize, QuestionTest::Bit(compare::NOT.trailing_zeros()))
    };
    ($index:ident, $field:ident is $value:expr) => {
        asks!(at slot_offset($index, offset_of!(FilterSlot, $field)) as usize, QuestionTest::Is($value))
    };
    ($index:ident, $field:ident) => {
        constant!(slot_offset($index, offset_of!(FilterSlot, $field)))
    };
}

const fn slot_offset(index: usize, field: usize) -> u64 {
    (offset_of!(Config, slots) + index * size_of::<FilterSlot>() + field) as u64
}

/// Returns whether the run has no filter.
#[inline(always)]
pub fn is_empty() -> bool {
    asks!(at slot_offset(0, offset_of!(FilterSlot, operand)) as usize, QuestionTest::Is(operand::NONE))
}

/// Runs the filter. The error is a word of the ledger: the counter of the first clause that the
/// sample fails, or of samples that cannot be read.
#[inline(always)]
pub fn pass<A: KernelRead>(sample: &SampleContext<A>) -> Result<(), usize> {
    let mut clause_holds = false;
    macro_rules! unroll {
        ($($index:literal)+) => {
            const { assert!([$($index),+].len() == MAX_SLOTS) };
            $(
                // The code after the last slot in use is unreachable, and the loader removes it.
                if asks!(at slot_offset($index, offset_of!(FilterSlot, operand)) as usize, QuestionTest::Is(operand::NONE)) {
                    return Ok(());
                }
                clause_holds = step::<A, $index>(sample, clause_holds)?;
            )+
        };
    }
    unroll!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let _ = clause_holds;
    Ok(())
}

/// Evaluates slot `I`. `before` is whether an earlier slot of its clause holds.
#[inline(always)]
fn step<A: KernelRead, const I: usize>(sample: &SampleContext<A>, before: bool) -> Result<bool, usize> {
    let now = before || holds::<A, I>(sample).ok_or(Counter::ReadFailed.id())?;
    if slot!(I, ends_clause is 1) {
        if now { Ok(false) } else { Err(slot!(I, clause) as usize) }
    } else {
        Ok(now)
    }
}

#[inline(always)]
fn holds<A: KernelRead, const I: usize>(sample: &SampleContext<A>) -> Option<bool> {
    let holds = if slot!(I, operand is operand::CGROUP_SUBTREE) {
        let level = slot!(I, wide high) as i32;
        // SAFETY: a helper that takes a level and returns 0 for a level that the task's cgroup does
        // not have.
        let ancestor = unsafe { bpf_get_current_ancestor_cgroup_id(level) };
        ancestor == slot!(I, wide low)
    } else if slot!(I, operand is operand::CGROUP_WATCHED) {
        watched::any(slot!(I, wide high))
    } else if slot!(I, operand is operand::COMM) {
        match bpf_get_current_comm() {
            Ok(comm) => {
                let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = comm;
                u64::from_le_bytes([a, b, c, d, e, f, g, h]) == slot!(I, wide low)
                    && u64::from_le_bytes([i, j, k, l, m, n, o, p]) == slot!(I, wide high)
            }
            Err(_) => false,
        }
    } else {
        compares::<I>(value::<A, I>(sample)?)
    };
    Some(if slot!(I, negated) { !holds } else { holds })
}

#[inline(always)]
fn compares<const I: usize>(value: u64) -> bool {
    let (low, high) = (slot!(I, wide low), slot!(I, wide high));
    if slot!(I, compare is compare::RANGE) {
        low <= value && value <= high
    } else if slot!(I, compare is compare::ANY_BIT) {
        value & low != 0
    } else if slot!(I, compare is compare::MASKED) {
        value & low == high
    } else {
        high >> ((value >> (low & 63)) & 63) & 1 != 0
    }
}

#[inline(always)]
fn value<A: KernelRead, const I: usize>(sample: &SampleContext<A>) -> Option<u64> {
    let of_place = if slot!(I, operand is operand::IP) {
        sample.ip()?
    } else if slot!(I, operand is operand::ADDRESS) {
        sample.address()?
    } else if slot!(I, operand is operand::KERNEL) {
        in_kernel(sample.ip()?) as u64
    } else if slot!(I, operand is operand::PHYS_ADDRESS) {
        sample.phys_address()?
    } else if slot!(I, operand is operand::PAGE_SIZE) {
        sample.page_size()?
    } else {
        return value_anywhere::<A, I>(sample);
    };
    if !guests_may_run::<A>() {
        return Some(of_place);
    }
    // Once, because the code for it is in each slot.
    let guest = sample.guest()?;
    Some(if slot!(I, operand is operand::IP) { guest.host_ip(of_place) } else { guest.host_fact(of_place) })
}

/// Returns a value that means the same while a guest runs.
#[inline(always)]
fn value_anywhere<A: KernelRead, const I: usize>(sample: &SampleContext<A>) -> Option<u64> {
    Some(if slot!(I, operand is operand::LATENCY) {
        sample.latency()? as u64
    } else if slot!(I, operand is operand::DATA_SRC) {
        sample.data_src()?
    } else if slot!(I, operand is operand::PID) {
        sample.pid_tid()?.process
    } else if slot!(I, operand is operand::TID) {
        sample.pid_tid()?.thread
    } else if slot!(I, operand is operand::CPU) {
        // SAFETY: a helper without arguments.
        unsafe { bpf_get_smp_processor_id() as u64 }
    } else if slot!(I, operand is operand::UID) {
        bpf_get_current_uid_gid() & 0xffff_ffff
    } else if slot!(I, operand is operand::GID) {
        bpf_get_current_uid_gid() >> 32
    } else if slot!(I, operand is operand::OUTCOME) {
        sample.tagged().map_or(0, |tagged| tagged.outcome.0)
    } else {
        sample.cgroup()
    })
}
