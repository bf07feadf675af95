//! Between the key and the table, where a run keeps only some cache lines in detail: which lines
//! those are.
//!
//! A set of lines that all CPUs, and the programs of all events of a run, share: a load that finds
//! a line modified by another core (HITM) puts it there, and from then on every access of the line
//! keeps its address. Entries are added by one compare-and-exchange and never change or go before
//! the run ends, so readers need no order, an NMI can come at any instruction, and an epoch's end
//! is nothing special. Memory is bounded by the map; what finds no room is counted.

use core::{arch::asm, ptr};

use aya_ebpf::{macros::map, maps::Array};
use precise_common::{config::promote, data_src::DataSource, ledger::Counter};

use crate::{
    ledger::Row,
    read::{Access, Facts, Sample, asks, config},
};

/// Names of promoted lines, open addressing; 0 is free. The loader sets their number, and makes it
/// one map for all programs of a run.
#[map]
static LINES: Array<u64> = Array::with_max_entries(1, 0);

/// Bits of an address inside of a cache line.
const LINE_SHIFT: u32 = 6;

/// What is known of the line of a sample.
pub enum Line {
    /// It is kept in detail.
    Promoted,
    /// No HITM load has shown it.
    Other,
    /// This load would have, and there is no room.
    Full,
}

/// The line of a sample, promoted where this sample is what promotes it; `None` when a field cannot
/// be read. A sample without an address has no line to be kept in detail: it counts as promoted, as
/// there is nothing to drop.
#[inline(always)]
pub fn of<A: Access>(sample: &Sample<A>, facts: &Facts, ledger: &mut Row) -> Option<Line> {
    if facts.address == 0 {
        return Some(Line::Promoted);
    }
    let name = name(sample, facts)?;
    let promotes = DataSource::is_hitm_load(facts.data_src);
    let mask = config!(line_mask) as u32;
    let first = (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    for probe in 0..config!(probes) as u32 {
        let slot = LINES.get_ptr_mut(first.wrapping_add(probe) & mask)?;
        // SAFETY: a valid pointer into the map; volatile as other CPUs write it at any time, each
        // word whole.
        let mut found = unsafe { ptr::read_volatile(slot) };
        if found == 0 && promotes {
            // SAFETY: as above.
            found = unsafe { take(slot, name) };
            if found == 0 {
                ledger.count(Counter::Promoted);
                found = name;
            }
        }
        if found == name {
            return Some(Line::Promoted);
        }
        if found == 0 {
            return Some(Line::Other);
        }
    }
    Some(if promotes { Line::Full } else { Line::Other })
}

/// What the set calls a line: never 0.
///
/// The physical line where it is known, so that processes that share memory promote for each other.
/// Otherwise the virtual one, with the process where it is not the kernel's; two lines of one name,
/// which takes an address space of five levels, would be promoted together.
#[inline(always)]
fn name<A: Access>(sample: &Sample<A>, facts: &Facts) -> Option<u64> {
    if asks!(promote, has promote::BY_PHYSICAL) {
        let physical = sample.phys_address()?;
        if physical != 0 {
            return Some(physical >> LINE_SHIFT << 1 | 1);
        }
    }
    let process = if (facts.address as i64) < 0 { 0 } else { sample.pid_tid()? >> 32 };
    Some((facts.address >> LINE_SHIFT ^ process << 41) << 1 | 1 << 63)
}

/// Puts `name` into a free slot; what was there.
///
/// # Safety
///
/// `slot` points to eight bytes of a map's value.
#[inline(always)]
unsafe fn take(slot: *mut u64, name: u64) -> u64 {
    let mut found = 0;
    // SAFETY: the caller's pointer; rustc's intrinsics know no compare-and-exchange for BPF (Linux
    // 5.12 and later).
    unsafe {
        asm!(
            "r0 = cmpxchg_64({slot} + 0, r0, {name})",
            slot = in(reg) slot,
            name = in(reg) name,
            inlateout("r0") found,
            options(nostack),
        );
    }
    found
}
