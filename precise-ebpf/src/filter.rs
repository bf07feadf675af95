//! Step 2: the filter.
//!
//! A conjunction of clauses, each a disjunction of slots (`precise_common::config::Slot`). The slots are unrolled by
//! hand, so that the verifier sees each with its own constants and removes every compare that the run does not use.

use core::mem::offset_of;

use aya_ebpf::helpers::{
    bpf_get_current_comm, bpf_get_current_uid_gid,
    generated::{bpf_get_current_ancestor_cgroup_id, bpf_get_smp_processor_id},
};
use precise_common::config::{CONSTANT_WIDE, Config, MAX_SLOTS, Slot, compare, operand};

use crate::read::{Access, Sample, config, constant};

/// A constant of slot `I`.
macro_rules! slot {
    ($index:ident, wide $field:ident) => {
        constant!(slot_offset($index, offset_of!(Slot, $field)) | CONSTANT_WIDE)
    };
    ($index:ident, $field:ident) => {
        constant!(slot_offset($index, offset_of!(Slot, $field)))
    };
}

const fn slot_offset(index: usize, field: usize) -> u64 {
    (offset_of!(Config, slots) + index * size_of::<Slot>() + field) as u64
}

/// `Err` names the first clause that the sample fails.
#[inline(always)]
pub fn pass<A: Access>(sample: &Sample<A>) -> Result<(), u64> {
    let mut clause_holds = false;
    macro_rules! unroll {
        ($($index:literal)+) => {
            const { assert!([$($index),+].len() == MAX_SLOTS) };
            $(
                // Behind the last slot in use nothing can be reached, and the verifier removes it all.
                if config!(slots_used) <= $index {
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

/// Evaluates slot `I`; `before` says whether an earlier slot of its clause holds.
#[inline(always)]
fn step<A: Access, const I: usize>(sample: &Sample<A>, before: bool) -> Result<bool, u64> {
    let now = before || holds::<A, I>(sample);
    if slot!(I, ends_clause) == 0 {
        Ok(now)
    } else if now {
        Ok(false)
    } else {
        Err(slot!(I, clause))
    }
}

#[inline(always)]
fn holds<A: Access, const I: usize>(sample: &Sample<A>) -> bool {
    let (low, high) = (slot!(I, wide low), slot!(I, wide high));
    let negated = slot!(I, compare) & compare::NOT as u64 != 0;
    let holds = match slot!(I, operand) as u32 {
        operand::CGROUP_SUBTREE => {
            // SAFETY: a helper that takes a level and returns 0 for one that the task's cgroup does not have.
            unsafe { bpf_get_current_ancestor_cgroup_id(high as i32) == low }
        }
        operand::COMM => match bpf_get_current_comm() {
            Ok(comm) => {
                let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = comm;
                u64::from_le_bytes([a, b, c, d, e, f, g, h]) == low
                    && u64::from_le_bytes([i, j, k, l, m, n, o, p]) == high
            }
            Err(_) => false,
        },
        other => compares::<I>(value(other, sample), low, high),
    };
    holds != negated
}

#[inline(always)]
fn compares<const I: usize>(value: u64, low: u64, high: u64) -> bool {
    match slot!(I, compare) as u32 & !compare::NOT {
        compare::RANGE => low <= value && value <= high,
        compare::ANY_BIT => value & low != 0,
        compare::MASKED => value & low == high,
        _ => high >> ((value >> (low & 63)) & 63) & 1 != 0,
    }
}

#[inline(always)]
fn value<A: Access>(operand: u32, sample: &Sample<A>) -> u64 {
    match operand {
        operand::IP => sample.ip,
        operand::ADDRESS => sample.address,
        operand::LATENCY => sample.latency as u64,
        operand::DATA_SRC => sample.data_src,
        operand::PID => sample.pid_tid() >> 32,
        operand::TID => sample.pid_tid() & 0xffff_ffff,
        // SAFETY: a helper without arguments.
        operand::CPU => unsafe { bpf_get_smp_processor_id() as u64 },
        operand::KERNEL => sample.in_kernel() as u64,
        operand::PHYS_ADDRESS => sample.phys_address(),
        operand::PAGE_SIZE => sample.page_size(),
        operand::UID => bpf_get_current_uid_gid() & 0xffff_ffff,
        operand::GID => bpf_get_current_uid_gid() >> 32,
        _ => sample.cgroup(),
    }
}
