//! Between the key and the table: the set of promoted cache lines, for runs that keep only some
//! lines in detail.
//!
//! All CPUs, and the programs of all events of a run, share the set. A load that finds a line
//! modified by another core (HITM) adds the line, and from then on every access to the line keeps
//! its address. Entries are added by one compare-and-exchange, and never change or disappear before
//! the run ends. So readers need no memory ordering, an NMI may arrive at any instruction, and the
//! end of an epoch needs no special treatment. Memory is bounded by the map; lines that do not fit
//! are counted.

use core::{arch::asm, ptr};

use aya_ebpf::{macros::map, maps::Array};
use precise_common::{config::promote, data_src::DataSource, ledger::Counter};

use crate::{
    ledger::CpuCounters,
    read::{Facts, KernelRead, SampleContext, asks, config},
};

/// The names of promoted lines, in open addressing; 0 is a free entry. The loader sets the number
/// of entries, and shares the map between all programs of a run.
#[map]
static LINES: Array<u64> = Array::with_max_entries(1, 0);

/// The number of address bits inside of a cache line.
const LINE_SHIFT: u32 = 6;

/// The state of the line of a sample.
pub enum LineState {
    /// The line is promoted: it is kept in detail.
    Promoted,
    /// No HITM load has promoted the line.
    Other,
    /// This load would have promoted the line, but the set is full.
    Full,
}

/// Returns the state of a sample's line, and promotes the line if the sample is a HITM load; `None`
/// if a field cannot be read. A sample without an address counts as promoted, because there is no
/// address to drop.
#[inline(always)]
pub fn of<A: KernelRead>(
    sample: &SampleContext<A>,
    facts: &Facts,
    ledger: &mut CpuCounters,
) -> Option<LineState> {
    if facts.address == 0 {
        return Some(LineState::Promoted);
    }
    let name = name(sample, facts)?;
    let promotes = DataSource::is_hitm_load(facts.data_src);
    let mask = config!(line_mask) as u32;
    let first = (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    for probe in 0..config!(probes) as u32 {
        let slot = LINES.get_ptr_mut(first.wrapping_add(probe) & mask)?;
        // SAFETY: a valid pointer into the map; volatile because other CPUs may write it at any
        // time, each word at once.
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
            return Some(LineState::Promoted);
        }
        if found == 0 {
            return Some(LineState::Other);
        }
    }
    Some(if promotes { LineState::Full } else { LineState::Other })
}

/// Returns the name of a line in the set, which is never 0.
///
/// It is the physical line if it is known, so that processes that share memory promote lines for
/// each other. Otherwise it is the virtual line, combined with the process unless the line is in
/// the kernel. Two lines with the same name, which need an address space of five levels, would be
/// promoted together.
#[inline(always)]
fn name<A: KernelRead>(sample: &SampleContext<A>, facts: &Facts) -> Option<u64> {
    if asks!(promote, has promote::BY_PHYSICAL) {
        let physical = sample.phys_address()?;
        if physical != 0 {
            return Some(physical >> LINE_SHIFT << 1 | 1);
        }
    }
    let process = if (facts.address as i64) < 0 { 0 } else { facts.ids.process };
    Some((facts.address >> LINE_SHIFT ^ process << 41) << 1 | 1 << 63)
}

/// Puts `name` into a free slot. Returns the previous value of the slot.
///
/// # Safety
///
/// `slot` points to eight bytes of a map's value.
#[inline(always)]
unsafe fn take(slot: *mut u64, name: u64) -> u64 {
    let mut found = 0;
    // SAFETY: the caller's pointer. In assembly because rustc's intrinsics have no
    // compare-and-exchange for BPF (Linux 5.12 and later).
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
