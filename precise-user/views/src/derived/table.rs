//! CodeAnalyst's derived events as a table. Numbers, names and abbreviations are AMD's
//! ("Instruction-Based Sampling Derived Events", in the manual of CodeAnalyst and in the event
//! lists of CodeXL for family 10h). The conditions are those of OProfile's daemon
//! (opd_ibs_trans.c), adapted to the registers of family 17h and later (AMD64 Architecture
//! Programmer's Manual, volume 2; Linux 6.12, arch/x86/include/asm/amd-ibs.h).
//!
//! The numbers that are missing here (0xF00C, 0xF00D, 0xF214, 0xF218) are reserved in AMD's list.

use precise_common::ibs::OutcomeBits as Bits;

/// Properties of a CPU that decide how its IBS registers are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    /// Whether data sources have five bits; `None` if the CPU is unknown.
    pub zen4: Option<bool>,
    /// Whether the state of a line in another cache is valid; `None` if the CPU is unknown.
    pub line_states: Option<bool>,
}

/// Decides whether a sample counts. Returns `None` if the registers of this CPU do not tell.
pub(crate) type SampleTest = fn(Bits, Cpu) -> Option<bool>;

/// What a derived event counts.
#[derive(Clone, Copy)]
pub(crate) enum DerivedUnit {
    /// Samples.
    Samples(SampleTest),
    /// The latencies of samples, in core cycles.
    Cycles(SampleTest),
    /// Nothing, because a capture lacks the data; with the reason.
    Nothing(&'static str),
}

/// A derived event of the list.
pub(crate) struct FigureEntry {
    /// Number of the event in AMD's list.
    pub select: u16,
    /// Name of the event.
    pub name: &'static str,
    /// Abbreviation of the event.
    pub short: &'static str,
    /// What the event counts, in a few words of our own.
    pub meaning: &'static str,
    /// Number of the event that this one is a part of, if any.
    pub of: Option<u16>,
    /// What is counted, and for which samples.
    pub counts: DerivedUnit,
}

impl FigureEntry {
    /// Returns whether the event is about fetches.
    pub const fn of_fetch(&self) -> bool {
        self.select < 0xf100
    }

    /// Returns whether the event can be counted from samples that are only branches, and of which
    /// only the outcome was kept.
    pub const fn of_branch(&self) -> bool {
        matches!(self.select, 0xf103..=0xf108)
    }
}

const ONE_LATENCY: &str = "a cell holds one latency per op, which is that of the data cache miss";
const RESERVED: &str = "the bit is reserved since family 17h (Zen)";

const fn of(
    select: u16,
    name: &'static str,
    short: &'static str,
    meaning: &'static str,
    of: u16,
    counts: DerivedUnit,
) -> FigureEntry {
    FigureEntry { select, name, short, meaning, of: if of == 0 { None } else { Some(of) }, counts }
}

use DerivedUnit::{Cycles, Nothing, Samples};

#[rustfmt::skip]
pub(crate) const TABLE: &[FigureEntry] = &[
    of(0xf000, "IBS fetch samples", "IBS fetch", "all sampled fetches", 0, Samples(|_, _| Some(true))),
    of(0xf001, "IBS fetch killed", "IBS fetch killed", "abandoned before ITLB and cache", 0xf000, Samples(|b, _| Some(b.killed()))),
    of(0xf002, "IBS fetch attempted", "IBS fetch attempt", "not killed", 0xf000, Samples(|b, _| Some(!b.killed()))),
    of(0xf003, "IBS fetch completed", "IBS fetch comp", "delivered to the decoder", 0xf002, Samples(|b, _| Some(b.has(Bits::COMPLETED)))),
    of(0xf004, "IBS fetch aborted", "IBS fetch abort", "attempted, not delivered", 0xf002, Samples(|b, _| Some(!b.killed() && !b.has(Bits::COMPLETED)))),
    of(0xf005, "IBS L1 ITLB hit", "IBS L1 ITLB hit", "L1 ITLB had the page", 0xf002, Samples(|b, _| Some(b.has(Bits::PHYSICAL_VALID) && !b.has(Bits::ITLB_L1_MISS)))),
    of(0xf006, "IBS L1 ITLB miss, L2 ITLB hit", "IBS ITLB L1M L2H", "only the L2 ITLB had the page", 0xf002, Samples(|b, _| Some(b.has(Bits::ITLB_L1_MISS) && !b.has(Bits::ITLB_L2_MISS)))),
    of(0xf007, "IBS L1 ITLB miss, L2 ITLB miss", "IBS ITLB L1M L2M", "no ITLB had it: page walk", 0xf002, Samples(|b, _| Some(b.has(Bits::ITLB_L1_MISS | Bits::ITLB_L2_MISS)))),
    of(0xf008, "IBS instruction cache miss", "IBS IC miss", "missed the instruction cache", 0xf002, Samples(|b, _| ic(b, true))),
    of(0xf009, "IBS instruction cache hit", "IBS IC hit", "completed without an IC miss", 0xf002, Samples(|b, _| ic(b, false))),
    of(0xf00a, "IBS 4K page translation", "IBS 4K page", "code on a page of 4 KiB", 0xf002, Samples(|b, _| Some(code_page(b) == Some(1 << 12)))),
    of(0xf00b, "IBS 2M page translation", "IBS 2M page", "code on a page of 2 MiB", 0xf002, Samples(|b, _| Some(code_page(b) == Some(1 << 21)))),
    of(0xf00e, "IBS fetch latency", "IBS fetch lat", "cycles of attempted fetches", 0xf002, Cycles(|b, _| Some(!b.killed()))),

    of(0xf100, "IBS all op samples", "IBS all ops", "all sampled ops", 0, Samples(|_, _| Some(true))),
    of(0xf101, "IBS tag-to-retire cycles", "IBS tag-to-ret", "cycles from tag to retirement", 0xf100, Nothing(ONE_LATENCY)),
    of(0xf102, "IBS completion-to-retire cycles", "IBS comp-to-ret", "completion-to-retirement cycles", 0xf100, Nothing(ONE_LATENCY)),
    of(0xf103, "IBS branch op", "IBS BR", "branches", 0xf100, Samples(|b, _| Some(b.has(Bits::BRANCH)))),
    of(0xf104, "IBS mispredicted branch op", "IBS misp BR", "mispredicted branches", 0xf103, Samples(|b, _| Some(b.has(Bits::BRANCH | Bits::MISPREDICTED)))),
    of(0xf105, "IBS taken branch op", "IBS taken BR", "taken branches", 0xf103, Samples(|b, _| Some(b.has(Bits::BRANCH | Bits::TAKEN)))),
    of(0xf106, "IBS mispredicted taken branch op", "IBS misp taken BR", "taken and mispredicted", 0xf103, Samples(|b, _| Some(b.has(Bits::BRANCH | Bits::TAKEN | Bits::MISPREDICTED)))),
    of(0xf107, "IBS return op", "IBS RET", "returns", 0xf103, Samples(|b, _| Some(b.has(Bits::BRANCH | Bits::RETURN)))),
    of(0xf108, "IBS mispredicted return op", "IBS misp RET", "mispredicted returns", 0xf107, Samples(|b, _| Some(b.has(Bits::BRANCH | Bits::RETURN | Bits::MISPREDICTED)))),
    of(0xf109, "IBS resync op", "IBS resync", "ops that flush the pipeline", 0xf100, Nothing(RESERVED)),

    of(0xf200, "IBS all load/store ops", "IBS load/store", "ops that load or store", 0xf100, Samples(|b, _| Some(access(b)))),
    of(0xf201, "IBS load ops", "IBS load", "ops that load", 0xf200, Samples(|b, _| Some(b.has(Bits::LOAD)))),
    of(0xf202, "IBS store ops", "IBS store", "ops that store", 0xf200, Samples(|b, _| Some(b.has(Bits::STORE)))),
    of(0xf203, "IBS L1 DTLB hit", "IBS L1 DTLB hit", "L1 DTLB had the page", 0xf200, Samples(|b, _| Some(l1_tlb(b)))),
    of(0xf204, "IBS L1 DTLB miss, L2 DTLB hit", "IBS DTLB L1M L2H", "only the L2 DTLB had the page", 0xf200, Samples(|b, _| Some(l2_tlb(b)))),
    of(0xf205, "IBS L1 DTLB miss, L2 DTLB miss", "IBS DTLB L1M L2M", "no DTLB had it: page walk", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::ADDRESS_VALID | Bits::DTLB_L1_MISS | Bits::DTLB_L2_MISS)))),
    of(0xf206, "IBS DC miss", "IBS DC miss", "missed the data cache", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::L1_MISS)))),
    of(0xf207, "IBS DC hit", "IBS DC hit", "hit the data cache", 0xf200, Samples(|b, _| Some(access(b) && !b.has(Bits::L1_MISS)))),
    of(0xf208, "IBS misaligned access", "IBS misalign acc", "crossed a costly boundary", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::MISALIGNED)))),
    of(0xf209, "IBS bank conflict on load op", "IBS bank conf load", "bank conflicts with a load", 0xf200, Nothing(RESERVED)),
    of(0xf20a, "IBS bank conflict on store op", "IBS bank conf store", "bank conflicts with a store", 0xf200, Nothing(RESERVED)),
    of(0xf20b, "IBS store-to-load forwarded", "IBS forwarded", "loads fed by a store", 0xf200, Nothing(RESERVED)),
    of(0xf20c, "IBS store-to-load cancelled", "IBS STLF cancelled", "failed store-to-load forwards", 0xf200, Nothing(RESERVED)),
    of(0xf20d, "IBS UC memory access", "IBS UC mem acc", "uncacheable memory", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::UNCACHED)))),
    of(0xf20e, "IBS WC memory access", "IBS WC mem acc", "write-combining memory", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::WRITE_COMBINING)))),
    of(0xf20f, "IBS locked operation", "IBS locked op", "locked ops", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::LOCKED)))),
    of(0xf210, "IBS MAB hit", "IBS MAB hit", "hit a miss in flight", 0xf200, Samples(|b, _| Some(access(b) && b.has(Bits::NO_MAB)))),
    of(0xf211, "IBS L1 DTLB 4K page", "IBS L1 DTLB 4K", "L1 DTLB hit, 4 KiB page", 0xf200, Samples(|b, _| Some(l1_tlb(b) && b.data_page() == Some(1 << 12)))),
    of(0xf212, "IBS L1 DTLB 2M page", "IBS L1 DTLB 2M", "L1 DTLB hit, 2 MiB page", 0xf200, Samples(|b, _| Some(l1_tlb(b) && b.data_page() == Some(1 << 21)))),
    of(0xf213, "IBS L1 DTLB 1G page", "IBS L1 DTLB 1G", "L1 DTLB hit, 1 GiB page", 0xf200, Samples(|b, _| Some(l1_tlb(b) && b.data_page() == Some(1 << 30)))),
    of(0xf215, "IBS L2 DTLB 4K page", "IBS L2 DTLB 4K", "L2 DTLB hit, 4 KiB page", 0xf200, Samples(|b, _| Some(l2_tlb(b) && b.data_page() == Some(1 << 12)))),
    of(0xf216, "IBS L2 DTLB 2M page", "IBS L2 DTLB 2M", "L2 DTLB hit, 2 MiB page", 0xf200, Samples(|b, _| Some(l2_tlb(b) && b.data_page() == Some(1 << 21)))),
    of(0xf217, "IBS L2 DTLB 1G page", "IBS L2 DTLB 1G", "L2 DTLB hit, 1 GiB page", 0xf200, Samples(|b, _| Some(l2_tlb(b) && b.data_page() == Some(1 << 30)))),
    of(0xf219, "IBS DC miss load latency", "IBS DC miss lat", "cycles of loads that missed", 0xf206, Cycles(|b, _| Some(b.has(Bits::LOAD | Bits::L1_MISS)))),

    of(0xf240, "IBS NB local", "IBS NB local", "served on this node", 0xf201, Samples(|b, c| nb(b, c, |_, far| !far))),
    of(0xf241, "IBS NB remote", "IBS NB remote", "served by another node", 0xf201, Samples(|b, c| nb(b, c, |_, far| far))),
    of(0xf242, "IBS NB local L3 cache", "IBS NB local L3", "own L3, or a cache behind it", 0xf201, Samples(|b, c| if c.zen4? { nb(b, c, |s, _| s == 1) } else { None })),
    of(0xf243, "IBS NB local core L1 or L2 cache", "IBS NB local cache", "another cache of this node", 0xf201, Samples(|b, c| nb(b, c, |s, far| s == 2 && !far))),
    of(0xf244, "IBS NB remote L1, L2 or L3 cache", "IBS NB remote cache", "a cache of another node", 0xf201, Samples(|b, c| { let zen4 = c.zen4?; nb(b, c, if zen4 { |s, far| far && matches!(s, 1 | 2 | 5) } else { |s, far| far && matches!(s, 2 | 4) }) })),
    of(0xf245, "IBS NB local DRAM", "IBS NB local DRAM", "memory of this node", 0xf201, Samples(|b, c| nb(b, c, |s, far| s == 3 && !far))),
    of(0xf246, "IBS NB remote DRAM", "IBS NB remote DRAM", "memory of another node", 0xf201, Samples(|b, c| nb(b, c, |s, far| s == 3 && far))),
    of(0xf247, "IBS NB local APIC/MMIO/Config/PCI", "IBS NB local other", "devices of this node", 0xf201, Samples(|b, c| nb(b, c, |s, far| s == 7 && !far))),
    of(0xf248, "IBS NB MMIO/Config/PCI", "IBS NB remote other", "devices of another node", 0xf201, Samples(|b, c| nb(b, c, |s, far| s == 7 && far))),
    of(0xf249, "IBS NB cache Modified state", "IBS NB cache Modified", "line Modified in that cache", 0xf201, Samples(|b, c| line_state(b, c, false))),
    of(0xf24a, "IBS NB cache Owned state", "IBS NB cache Owned", "line Owned in that cache", 0xf201, Samples(|b, c| line_state(b, c, true))),
    of(0xf24b, "IBS NB local cache latency", "IBS NB local lat", "cycles of NB local", 0xf240, Cycles(|b, c| nb(b, c, |_, far| !far))),
    of(0xf24c, "IBS NB remote cache latency", "IBS NB remote lat", "cycles of NB remote", 0xf241, Cycles(|b, c| nb(b, c, |_, far| far))),
];

/// Returns whether a fetch hit or missed the instruction cache. Zen 3 cannot tell (erratum 1238);
/// its fetch samples are marked as such.
const fn ic(bits: Bits, missed: bool) -> Option<bool> {
    if bits.has(Bits::UNKNOWN) {
        return None;
    }
    Some(if missed { bits.has(Bits::IC_MISS) } else { bits.has(Bits::COMPLETED) && !bits.has(Bits::IC_MISS) })
}

/// Returns the page size of a fetch in bytes. Zen 3 encodes it differently (erratum 1347); the mark
/// of erratum 1238 identifies a Zen 3.
const fn code_page(bits: Bits) -> Option<u64> {
    if !bits.has(Bits::PHYSICAL_VALID) {
        return None;
    }
    match ((bits.0 & Bits::FETCH_PAGE) >> 4, bits.has(Bits::UNKNOWN)) {
        (0, _) => Some(1 << 12),
        (1, false) | (2, true) => Some(1 << 21),
        (1, true) => Some(1 << 14),
        (2, false) | (3, true) => Some(1 << 30),
        _ => None,
    }
}

const fn access(bits: Bits) -> bool {
    bits.0 & (Bits::LOAD | Bits::STORE) != 0
}

const fn l1_tlb(bits: Bits) -> bool {
    access(bits) && bits.has(Bits::ADDRESS_VALID) && !bits.has(Bits::DTLB_L1_MISS)
}

const fn l2_tlb(bits: Bits) -> bool {
    access(bits) && bits.has(Bits::ADDRESS_VALID | Bits::DTLB_L1_MISS) && !bits.has(Bits::DTLB_L2_MISS)
}

/// Returns the source that answered a load that missed both caches, and whether it is on another
/// node. The register is valid only for such loads.
fn answered(bits: Bits, cpu: Cpu) -> Option<Option<(u32, bool)>> {
    let zen4 = cpu.zen4?;
    let source = if zen4 { bits.source() } else { bits.source() & 7 };
    if source == 0 || !bits.has(Bits::LOAD | Bits::L1_MISS | Bits::L2_MISS) {
        return Some(None);
    }
    let far = bits.has(Bits::REMOTE_NODE) || source == if zen4 { 5 } else { 4 };
    Some(Some((source, far)))
}

fn nb(bits: Bits, cpu: Cpu, test: fn(u32, bool) -> bool) -> Option<bool> {
    answered(bits, cpu).map(|answered| answered.is_some_and(|(source, far)| test(source, far)))
}

/// Returns whether a transfer between caches found the line in the Owned state, or in the Modified
/// state if `owned` is false. Follows the driver's `perf_ibs_get_mem_snoop()`,
/// arch/x86/events/amd/ibs.c.
fn line_state(bits: Bits, cpu: Cpu, owned: bool) -> Option<bool> {
    if !cpu.line_states? {
        return None;
    }
    let zen4 = cpu.zen4?;
    let transfer = nb(bits, cpu, if zen4 { |s, _| matches!(s, 1 | 2 | 5) } else { |s, _| s == 2 })?;
    Some(transfer && bits.has(Bits::OWNED) == owned)
}
