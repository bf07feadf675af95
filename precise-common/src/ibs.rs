//! Decoder for AMD's IBS registers, which describe a tagged op or fetch.
//!
//! `perf_mem_data_src` describes loads and stores only, not branches and fetches. The driver
//! delivers the registers as `PERF_SAMPLE_RAW`: four bytes of capabilities (CPUID Fn8000_001B EAX),
//! followed by registers of eight bytes in a fixed order ([`op`], [`fetch`]). Bit positions: AMD64
//! Architecture Programmer's Manual, volume 2, "Instruction-Based Sampling", and Linux 6.12,
//! arch/x86/include/asm/amd-ibs.h.
//!
//! The bits that distinguish kinds of samples are packed into one word, the [`OutcomeBits`],
//! unchanged from the hardware. The BPF program packs them, groups by them and filters by them;
//! user space and tests read them with the same functions.

/// The number of bytes before the first register.
pub const HEADER: usize = 4;

/// The registers of an op's record, by index.
pub mod op {
    /// IbsOpCtl.
    pub const CTL: usize = 0;
    /// IbsOpRip.
    pub const RIP: usize = 1;
    /// IbsOpData: retirement and branches.
    pub const DATA: usize = 2;
    /// IbsOpData2: the data source of a load.
    pub const DATA2: usize = 3;
    /// IbsOpData3: data cache and TLB.
    pub const DATA3: usize = 4;
    /// IbsDcLinAd: data address.
    pub const LINEAR: usize = 5;
    /// IbsDcPhysAd: physical data address.
    pub const PHYSICAL: usize = 6;
    /// IbsBrTarget: branch target, present if the capabilities have [`super::caps::BRANCH_TARGET`].
    pub const TARGET: usize = 7;
    /// The number of registers that every record has.
    pub const ALWAYS: usize = 7;
}

/// The registers of a fetch's record, by index.
pub mod fetch {
    /// IbsFetchCtl.
    pub const CTL: usize = 0;
    /// IbsFetchLinAd.
    pub const LINEAR: usize = 1;
    /// IbsFetchPhysAd.
    pub const PHYSICAL: usize = 2;
    /// IcIbsExtdCtl, present if the capabilities have [`super::caps::FETCH_EXTENDED`].
    pub const EXTENDED: usize = 3;
    /// The number of registers that every record has.
    pub const ALWAYS: usize = 3;
}

/// Capability bits, which tell which registers a record has.
pub mod caps {
    /// Records of ops have the branch target.
    pub const BRANCH_TARGET: u32 = 1 << 5;
    /// Records of fetches have the ITLB refill latency.
    pub const FETCH_EXTENDED: u32 = 1 << 9;
    /// The data source of ops has five bits instead of three: Zen 4 and later.
    pub const ZEN4: u32 = 1 << 11;
}

/// Returns the core cycles from the tag to retirement, from IbsOpData.
pub const fn tag_to_retire(data: u64) -> u32 {
    (data >> 16) as u32 & 0xffff
}

/// Returns the core cycles from completion to retirement, from IbsOpData.
pub const fn completion_to_retire(data: u64) -> u32 {
    data as u32 & 0xffff
}

/// Returns the core cycles until the data of a load that missed the L1 data cache arrived, from
/// IbsOpData3.
pub const fn miss_latency(data3: u64) -> u32 {
    (data3 >> 32) as u32 & 0xffff
}

/// Returns the core cycles of the L1 data TLB's refill, from IbsOpData3.
pub const fn tlb_refill_latency(data3: u64) -> u32 {
    (data3 >> 48) as u32
}

/// Returns the core cycles from the start of the fetch until it was delivered or abandoned, from
/// IbsFetchCtl.
pub const fn fetch_latency(ctl: u64) -> u32 {
    (ctl >> 32) as u32 & 0xffff
}

/// Returns the core cycles of the L1 instruction TLB's refill, from IcIbsExtdCtl.
pub const fn itlb_refill_latency(extended: u64) -> u32 {
    extended as u32 & 0xffff
}

/// The outcome of a tagged op or fetch, in 46 bits.
///
/// For an op: bits 0–25 are those of IbsOpData3, bits 26–32 are bits 34–40 of IbsOpData, bits 33–42
/// are bits 0–9 of IbsOpData2. For a fetch: bits 0–12 are bits 49–61 of IbsFetchCtl. Bit 45 is
/// defined here: an erratum makes some of the bits unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OutcomeBits(pub u64);

macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)+) => {
        impl OutcomeBits {
            $($(#[$doc])* pub const $name: u64 = 1 << $bit;)+
        }
    };
}

bits! {
    /// The op is a load.
    LOAD = 0;
    /// The op is a store.
    STORE = 1;
    /// The L1 data TLB missed.
    DTLB_L1_MISS = 2;
    /// The L2 data TLB missed as well: a page walk.
    DTLB_L2_MISS = 3;
    /// The L1 data TLB hit a page of 2 MiB.
    DTLB_L1_2M = 4;
    /// The L1 data TLB hit a page of 1 GiB.
    DTLB_L1_1G = 5;
    /// The L2 data TLB hit a page of 2 MiB.
    DTLB_L2_2M = 6;
    /// The L1 data cache missed.
    L1_MISS = 7;
    /// The access crosses a boundary that costs time.
    MISALIGNED = 8;
    /// The access is to write-combining memory.
    WRITE_COMBINING = 13;
    /// The access is to uncacheable memory.
    UNCACHED = 14;
    /// The op is locked.
    LOCKED = 15;
    /// The access missed, and a miss to the same line was already pending.
    NO_MAB = 16;
    /// The data address is valid.
    ADDRESS_VALID = 17;
    /// The L2 data TLB hit a page of 1 GiB.
    DTLB_L2_1G = 19;
    /// The L2 cache missed.
    L2_MISS = 20;
    /// The op is a software prefetch.
    PREFETCH = 21;
    /// The branch is a return.
    RETURN = 26;
    /// The branch was taken.
    TAKEN = 27;
    /// The branch was mispredicted.
    MISPREDICTED = 28;
    /// The op is a branch.
    BRANCH = 29;
    /// The instruction address is not the address of the op.
    RIP_INVALID = 30;
    /// The branch is fused with the compare before it.
    FUSED = 31;
    /// The op comes from microcode.
    MICROCODE = 32;
    /// The data came from another node.
    REMOTE_NODE = 37;
    /// The line that another cache transferred was Owned; otherwise it was Modified. Valid for
    /// cache-to-cache transfers only.
    OWNED = 38;
    /// Some bits are unknown because of an erratum of the CPU: the data source and the L2 miss
    /// (ops), the instruction cache miss (fetches).
    UNKNOWN = 45;
}

bits! {
    /// Fetch: it was delivered to the decoder. If not set, it was aborted.
    COMPLETED = 1;
    /// Fetch: the instruction cache missed.
    IC_MISS = 2;
    /// Fetch: the physical address is valid, so the TLB answered.
    PHYSICAL_VALID = 3;
    /// Fetch: the L1 instruction TLB missed.
    ITLB_L1_MISS = 6;
    /// Fetch: the L2 instruction TLB missed as well: a page walk.
    ITLB_L2_MISS = 7;
    /// Fetch: the L2 cache missed.
    FETCH_L2_MISS = 9;
    /// Fetch: it did not come from the op cache (Zen 4 and later).
    OP_CACHE_MISS = 11;
    /// Fetch: the L3 cache missed (Zen 4 and later).
    FETCH_L3_MISS = 12;
}

impl OutcomeBits {
    /// The bits of a branch.
    pub const OF_BRANCH: u64 =
        Self::RETURN | Self::TAKEN | Self::MISPREDICTED | Self::BRANCH | Self::FUSED | Self::MICROCODE;
    /// Fetch: the page size, if the physical address is valid.
    pub const FETCH_PAGE: u64 = 0b11 << 4;
    /// The bits of an op that a run can group by: all except those with too many values and those
    /// that are of no interest, such as the access width and whether the op is a prefetch.
    pub const OF_OP: u64 =
        Self::MASK & !(0xf << 22 | Self::PREFETCH | Self::RIP_INVALID | 0xf << 9 | 1 << 18);
    /// The bits of a fetch that a run can group by.
    pub const OF_FETCH: u64 = 0x1fff & !1 & !(1 << 8) & !(1 << 10) | Self::UNKNOWN;
    /// The data source of IbsOpData2, at its place in an outcome; see [`Self::source`].
    pub const SOURCE: u64 = 0b1100_0111 << 33;
    /// Data source of Zen 4 and later: the L3 cache of the same core complex, or another L1 or L2
    /// cache behind it.
    pub const SOURCE_SAME_CCX: u64 = 1 << 33;
    /// Data source of Zen 4 and later: a cache of another core complex of this node.
    pub const SOURCE_OTHER_CCX: u64 = 2 << 33;
    /// Data source of Zen 4 and later: a cache of another core complex of another node.
    pub const SOURCE_OTHER_NODE: u64 = 5 << 33;
    /// All bits that an outcome may have.
    pub const MASK: u64 = (1 << 46) - 1;

    /// Packs an op's registers. `zen3`: erratum 1293 applies (family 19h, models 00h–0Fh): for
    /// software prefetches, and for misses that found another one pending, IbsOpData2 and the L2
    /// miss are not valid.
    #[inline(always)]
    pub const fn of_op(data: u64, data2: u64, data3: u64, zen3: bool) -> Self {
        let access = data3 & 0x3ff_ffff;
        let retired = (data >> 34 & 0x7f) << 26;
        if zen3 && data3 & (Self::PREFETCH | Self::NO_MAB) != 0 {
            return Self(access & !Self::L2_MISS | retired | Self::UNKNOWN);
        }
        Self(access | retired | (data2 & 0x3ff) << 33)
    }

    /// Packs a fetch's register. `zen3`: erratum 1238 applies (family 19h, models 00h–0Fh): the
    /// instruction cache miss is not reliable.
    #[inline(always)]
    pub const fn of_fetch(ctl: u64, zen3: bool) -> Self {
        let bits = ctl >> 49 & 0x1fff;
        if zen3 { Self(bits & !Self::IC_MISS | Self::UNKNOWN) } else { Self(bits) }
    }

    /// Returns whether all of these bits are set.
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// Returns whether a fetch was killed: abandoned before it accessed the instruction TLB and
    /// cache, so that it has no information about them. All other fetches were attempted. (The term
    /// is CodeAnalyst's, the test is OProfile's: no bit shows that the fetch got further.)
    pub const fn killed(self) -> bool {
        const FURTHER: u64 = OutcomeBits::COMPLETED
            | OutcomeBits::IC_MISS
            | OutcomeBits::PHYSICAL_VALID
            | OutcomeBits::ITLB_L1_MISS
            | OutcomeBits::ITLB_L2_MISS;
        self.0 & FURTHER == 0
    }

    /// Returns the number of bytes that a load or store accessed; `None` if the hardware does not
    /// report it.
    pub const fn width(self) -> Option<u32> {
        match self.width_code() {
            0 => None,
            log => Some(1 << (log - 1)),
        }
    }

    /// Returns the access width as encoded in the register: its power of two, plus 1; 0 if the
    /// hardware does not report it.
    #[inline(always)]
    pub const fn width_code(self) -> u32 {
        (self.0 >> 22) as u32 & 0xf
    }

    /// Returns the page size in bytes, from the data TLB that hit; `None` if both missed, or there
    /// was no access.
    pub const fn data_page(self) -> Option<u64> {
        if !self.has(Self::ADDRESS_VALID) || self.has(Self::DTLB_L1_MISS | Self::DTLB_L2_MISS) {
            return None;
        }
        Some(if self.0 & (Self::DTLB_L1_1G | Self::DTLB_L2_1G) != 0 {
            1 << 30
        } else if self.0 & (Self::DTLB_L1_2M | Self::DTLB_L2_2M) != 0 {
            1 << 21
        } else {
            1 << 12
        })
    }

    /// Returns the data source of IbsOpData2, with all five bits (the upper two exist since Zen 4,
    /// and are zero before).
    pub const fn source(self) -> u32 {
        let data2 = (self.0 >> 33) as u32;
        data2 & 7 | (data2 >> 6 & 3) << 3
    }
}

/// Returns the `perf_mem_data_src` of an op, as the driver computes it from the same registers, for
/// samples that have the registers but not the word. `caps` are the record's capabilities;
/// `no_hitm`: this CPU cannot detect modified lines in other caches.
///
/// Source: `perf_ibs_parse_ld_st_data()`, arch/x86/events/amd/ibs.c of Linux 6.12.
pub fn data_source(op: OutcomeBits, caps: u32, no_hitm: bool) -> u64 {
    use crate::data_src::{NA, bits};
    let (load, store) = (op.has(OutcomeBits::LOAD), op.has(OutcomeBits::STORE));
    if !load && !store {
        return NA;
    }
    let number = |number: u64| number << bits::LVL_NUM.0;
    let hit = |legacy: u64, of_number: u64| (2 | legacy) << bits::LVL.0 | number(of_number);
    let remote = |hops: u64| 1 << bits::REMOTE.0 | hops << bits::HOPS.0;
    let zen4 = caps & caps::ZEN4 != 0;
    let answered = if zen4 { op.source() } else { op.source() & 7 };
    let far = if op.has(OutcomeBits::REMOTE_NODE) { remote(2) } else { 0 };
    let (l1, l2) = (hit(0x8, 1), hit(0x20, 2));
    let served = if op.has(OutcomeBits::UNCACHED) && answered != 7 {
        hit(0x2000, 8)
    } else if !op.has(OutcomeBits::L1_MISS) {
        l1
    } else if !op.has(OutcomeBits::L2_MISS) && !op.has(OutcomeBits::UNKNOWN) {
        l2
    } else {
        match (load, zen4, answered) {
            (true, true, 1) => hit(0x40, 3),
            (true, true, 2) => hit(0x400, 11) | remote(1),
            (true, true, 5) => hit(0x800, 11) | remote(2),
            (true, true, 6) => number(14) | far,
            (true, true, 8) => number(9) | far,
            (true, false, 1) => hit(0x440, 11) | 1 << bits::HOPS.0,
            (true, false, 2) => hit(0x800, 11) | remote(2),
            (true, _, 3) if far != 0 => hit(0x100, 13) | far,
            (true, _, 3) => hit(0x80, 13),
            (true, _, 7) => hit(0x1000, 10),
            // A miss that found another one to the same line pending.
            _ if op.has(OutcomeBits::NO_MAB) => hit(0x10, 12),
            _ => 1 << bits::LVL.0 | number(15),
        }
    };
    let from_cache = if zen4 { matches!(answered, 1 | 2 | 5) } else { answered == 1 };
    let modified =
        load && from_cache && served != l1 && served != l2 && !op.has(OutcomeBits::OWNED) && !no_hitm;
    let tlb = if !op.has(OutcomeBits::ADDRESS_VALID) {
        1
    } else if !op.has(OutcomeBits::DTLB_L1_MISS) {
        0x8 | 2
    } else if !op.has(OutcomeBits::DTLB_L2_MISS) {
        0x10 | 2
    } else {
        0x10 | 4
    };
    let operation = if load { 2 } else { 4 };
    let snoop = if modified { 0x10 } else { 1 };
    let lock = if op.has(OutcomeBits::LOCKED) { 2 } else { 1 };
    operation | served | snoop << bits::SNOOP.0 | tlb << bits::DTLB.0 | lock << bits::LOCK.0
}

/// Returns a register of a raw record in the format of `PERF_SAMPLE_RAW` (capabilities first);
/// `None` if the record is too short.
pub fn register(raw: &[u8], index: usize) -> Option<u64> {
    let at = HEADER + 8 * index;
    let bytes = raw.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_is_packed_without_loss() {
        let data = 1 << 36 | 1 << 37 | 1 << 35 | 10 << 16 | 5;
        let outcome = OutcomeBits::of_op(data, 0, 0, false);
        assert_eq!(outcome.0, OutcomeBits::BRANCH | OutcomeBits::MISPREDICTED | OutcomeBits::TAKEN);
        assert_eq!((tag_to_retire(data), completion_to_retire(data)), (10, 5));

        let data3 = 1 | 1 << 7 | 1 << 20 | 1 << 17 | 4 << 22 | 321 << 32 | 77 << 48;
        let outcome = OutcomeBits::of_op(0, 2 | 1 << 4 | 1 << 6, data3, false);
        assert!(
            outcome.has(
                OutcomeBits::LOAD | OutcomeBits::L1_MISS | OutcomeBits::L2_MISS | OutcomeBits::REMOTE_NODE
            )
        );
        assert_eq!(outcome.source(), 0b01_010);
        for (bits, number) in [
            (OutcomeBits::SOURCE_SAME_CCX, 1),
            (OutcomeBits::SOURCE_OTHER_CCX, 2),
            (OutcomeBits::SOURCE_OTHER_NODE, 5),
        ] {
            assert_eq!(
                (OutcomeBits(bits).source(), OutcomeBits::of_op(0, number, 0, false).0),
                (number as u32, bits)
            );
        }
        assert_eq!(OutcomeBits(OutcomeBits::SOURCE).source(), 31);
        assert_eq!(outcome.width(), Some(8));
        assert_eq!(outcome.data_page(), Some(4096));
        assert_eq!((miss_latency(data3), tlb_refill_latency(data3)), (321, 77));
        assert!(outcome.0 <= OutcomeBits::MASK);
        assert_eq!(OutcomeBits::of_op(u64::MAX, u64::MAX, u64::MAX, false).0 & OutcomeBits::UNKNOWN, 0);
    }

    #[test]
    fn pages_come_from_the_tlb_that_hit() {
        let page =
            |data3: u64| OutcomeBits::of_op(0, 0, data3 | OutcomeBits::ADDRESS_VALID, false).data_page();
        assert_eq!(page(1 << 4), Some(2 << 20));
        assert_eq!(page(1 << 2 | 1 << 19), Some(1 << 30));
        assert_eq!(page(1 << 2 | 1 << 3), None, "both missed");
        assert_eq!(OutcomeBits::of_op(0, 0, 1 << 4, false).data_page(), None, "no address");
    }

    #[test]
    fn errata_take_back_what_is_not_valid() {
        let data3 = 1 | 1 << 7 | 1 << 20 | 1 << 16;
        let outcome = OutcomeBits::of_op(0, 3, data3, true);
        assert!(
            outcome.has(OutcomeBits::UNKNOWN | OutcomeBits::NO_MAB) && !outcome.has(OutcomeBits::L2_MISS)
        );
        assert_eq!(outcome.source(), 0);
        assert!(OutcomeBits::of_op(0, 3, data3 & !(1 << 16), true).has(OutcomeBits::L2_MISS));

        let ctl = 1 << 49 | 1 << 50 | 1 << 51 | 1 << 55;
        let fetch = OutcomeBits::of_fetch(ctl, false);
        assert!(fetch.has(OutcomeBits::COMPLETED | OutcomeBits::IC_MISS | OutcomeBits::ITLB_L1_MISS));
        assert!(!OutcomeBits::of_fetch(ctl, true).has(OutcomeBits::IC_MISS));
    }

    #[test]
    fn the_data_source_is_what_the_driver_makes_of_the_registers() {
        let zen4 =
            |bits: u64, data2: u64| data_source(OutcomeBits::of_op(0, data2, bits, false), caps::ZEN4, false);
        let valid = OutcomeBits::ADDRESS_VALID;
        // Words that the driver of Linux 6.8 wrote on a Zen 4.
        assert_eq!(zen4(OutcomeBits::LOAD | valid, 0), 0x2_2908_0142);
        assert_eq!(zen4(OutcomeBits::STORE | valid, 0), 0x2_2908_0144);
        assert_eq!(zen4(OutcomeBits::LOAD | OutcomeBits::L1_MISS | valid, 0), 0x4_2908_0442);
        let missed = OutcomeBits::LOAD | OutcomeBits::L1_MISS | OutcomeBits::L2_MISS | valid;
        assert_eq!(zen4(missed, 2), 0x836_2980_8042);
        assert_eq!(zen4(missed, 2 | 1 << 5), 0x836_2908_8042);
        assert_eq!(zen4(missed, 3), 0x1a_2908_1042);
        assert_eq!(zen4(missed, 1), 0x6_2980_0842);
        assert_eq!(
            zen4(OutcomeBits::STORE | OutcomeBits::L1_MISS | OutcomeBits::L2_MISS | valid, 0),
            0x1e_2908_0024
        );
        assert_eq!(zen4(0, 0), crate::data_src::NA);
    }

    #[test]
    fn a_short_record_has_no_more_registers() {
        let mut raw = [0; HEADER + 16];
        raw[HEADER + 8] = 7;
        assert_eq!(register(&raw, 1), Some(7));
        assert_eq!(register(&raw, 2), None);
        assert_eq!(register(&[], 0), None);
    }
}
