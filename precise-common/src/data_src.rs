//! Decoder for `perf_mem_data_src`, the word in which the kernel describes a memory access.
//!
//! Bit positions are the kernel ABI of `include/uapi/linux/perf_event.h`. `mem_lvl_num`,
//! `mem_remote`, `mem_snoop(x)` and `mem_hops` are the canonical fields. `mem_lvl` is a legacy
//! field, and the only one that IBS fills before Linux 6.2, so it is the fallback. Values have the
//! names of perf, which its users know.

/// `PERF_MEM_NA` as kernels with `mem_lvl_num` write it: the hardware gave no data source.
pub const NA: u64 = 0x1e_0508_0021;
/// `PERF_MEM_NA` as the IBS driver of Linux 6.1 writes it.
pub const NA_LEGACY: u64 = 0x508_0021;

/// The bits of the word up to and including `mem_hops`. The kernel reserves those above.
pub const MASK: u64 = (1 << 46) - 1;

/// The first bit and the width of each field.
pub mod bits {
    /// `mem_op`, one-hot.
    pub const OP: (u32, u32) = (0, 5);
    /// `mem_lvl`, one-hot, legacy.
    pub const LVL: (u32, u32) = (5, 14);
    /// `mem_snoop`, one-hot.
    pub const SNOOP: (u32, u32) = (19, 5);
    /// `mem_lock`, one-hot.
    pub const LOCK: (u32, u32) = (24, 2);
    /// `mem_dtlb`, one-hot.
    pub const DTLB: (u32, u32) = (26, 7);
    /// `mem_lvl_num`, a number.
    pub const LVL_NUM: (u32, u32) = (33, 4);
    /// `mem_remote`, a flag.
    pub const REMOTE: (u32, u32) = (37, 1);
    /// `mem_snoopx`, one-hot.
    pub const SNOOPX: (u32, u32) = (38, 2);
    /// `mem_blk`, one-hot.
    pub const BLK: (u32, u32) = (40, 3);
    /// `mem_hops`, a number.
    pub const HOPS: (u32, u32) = (43, 3);

    /// Returns the mask of a field in the word.
    pub const fn mask(field: (u32, u32)) -> u64 {
        ((1u64 << field.1) - 1) << field.0
    }
}

/// The level of the memory hierarchy that served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryLevel {
    /// Not given.
    Na,
    /// L1 data cache.
    L1,
    /// Line fill buffer (Intel), miss address buffer (AMD).
    Lfb,
    /// L2 cache.
    L2,
    /// L2 miss handling buffer.
    L2Mhb,
    /// L3 cache.
    L3,
    /// L4 cache.
    L4,
    /// Memory-side cache.
    Msc,
    /// A cache of unknown level; with `remote`, of another core or socket.
    AnyCache,
    /// DRAM.
    Ram,
    /// Persistent memory.
    Pmem,
    /// CXL memory.
    Cxl,
    /// I/O memory.
    Io,
    /// Uncached.
    Uncached,
}

impl MemoryLevel {
    /// All levels, nearest first.
    pub const ALL: [Self; 14] = [
        Self::Na,
        Self::L1,
        Self::Lfb,
        Self::L2,
        Self::L2Mhb,
        Self::L3,
        Self::L4,
        Self::Msc,
        Self::AnyCache,
        Self::Ram,
        Self::Pmem,
        Self::Cxl,
        Self::Io,
        Self::Uncached,
    ];

    /// Returns the name of the level, as perf prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Na => "N/A",
            Self::L1 => "L1",
            Self::Lfb => "LFB/MAB",
            Self::L2 => "L2",
            Self::L2Mhb => "L2 MHB",
            Self::L3 => "L3",
            Self::L4 => "L4",
            Self::Msc => "Memory-side Cache",
            Self::AnyCache => "Any cache",
            Self::Ram => "RAM",
            Self::Pmem => "PMEM",
            Self::Cxl => "CXL",
            Self::Io => "I/O",
            Self::Uncached => "Uncached",
        }
    }
}

/// The snoop result: what other caches answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Snoop {
    /// Not given.
    Na,
    /// There was no snoop.
    None,
    /// Another cache had the line, clean.
    Hit,
    /// No other cache had the line.
    Miss,
    /// There was no snoop, or no other cache had the line: Intel does not report which for some
    /// loads from memory (`SNOOP_NONE_MISS`, arch/x86/events/intel/ds.c).
    NoneOrMiss,
    /// Another cache had the line modified.
    HitM,
    /// Another cache forwarded the line.
    Fwd,
    /// The line came from a peer.
    Peer,
}

impl Snoop {
    /// Returns the name of the snoop result, as perf prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Na => "N/A",
            Self::None => "None",
            Self::Hit => "Hit",
            Self::Miss => "Miss",
            Self::NoneOrMiss => "None or Miss",
            Self::HitM => "HitM",
            Self::Fwd => "Fwd",
            Self::Peer => "Peer",
        }
    }
}

/// The TLB result: how the data address was translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tlb {
    /// Not given.
    Na,
    /// Hit in the first-level data TLB.
    L1Hit,
    /// Hit in the second-level TLB.
    L2Hit,
    /// Hit in the first or second level: Intel does not report which.
    AnyHit,
    /// Miss in the second level: the hardware walked the page table.
    Walk,
    /// Miss, without a reported page walk.
    Miss,
    /// Handled by the operating system.
    Fault,
}

impl Tlb {
    /// Returns the name of the TLB result, as perf prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Na => "N/A",
            Self::L1Hit => "L1 hit",
            Self::L2Hit => "L2 hit",
            Self::AnyHit => "L1 or L2 hit",
            Self::Walk => "Walker hit",
            Self::Miss => "L2 miss",
            Self::Fault => "Fault",
        }
    }
}

/// A decoded data source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataSource {
    /// The `mem_op` bits: [`DataSource::LOAD`], [`DataSource::STORE`], …
    pub op: u8,
    /// The level that served the access, or, with `miss`, that it missed.
    pub level: MemoryLevel,
    /// Whether the access missed `level`; the level that served it is not known then.
    pub miss: bool,
    /// Whether another node or another core's cache served the access.
    pub remote: bool,
    /// The distance of a remote access: 0 not given, 1 other core of the same node, 2 other node of
    /// the same socket, 3 other socket, 4 other board.
    pub hops: u8,
    /// The snoop result.
    pub snoop: Snoop,
    /// The TLB result.
    pub tlb: Tlb,
    /// Whether the instruction was locked; `None` if the hardware does not report it
    /// (`PERF_MEM_LOCK_NA`).
    pub locked: Option<bool>,
    /// Whether the load was blocked by store data that could not be forwarded.
    pub blocked_data: bool,
    /// Whether the load was blocked by a store with an unknown address.
    pub blocked_address: bool,
}

impl DataSource {
    /// `PERF_MEM_OP_LOAD`.
    pub const LOAD: u8 = 2;
    /// `PERF_MEM_OP_STORE`.
    pub const STORE: u8 = 4;
    /// `PERF_MEM_OP_PFETCH`.
    pub const PREFETCH: u8 = 8;
    /// `PERF_MEM_OP_EXEC`.
    pub const EXEC: u8 = 16;

    /// Decodes a word. Every `u64` can be decoded; unknown values become `Na`.
    pub const fn decode(word: u64) -> Self {
        let lvl = take(word, bits::LVL);
        let hit = lvl & 2 != 0;
        let number = take(word, bits::LVL_NUM);
        let from_number = level_of_number(number);
        let (level, legacy_remote) = match from_number {
            // 0 comes from a kernel without `mem_lvl_num`, 15 is "not given". In both cases the
            // legacy bits decide.
            MemoryLevel::Na => level_of_bits(lvl),
            known => (known, false),
        };
        let snoop = take(word, bits::SNOOP);
        let snoopx = take(word, bits::SNOOPX);
        let dtlb = take(word, bits::DTLB);
        let blk = take(word, bits::BLK);
        Self {
            op: take(word, bits::OP) as u8,
            level,
            miss: lvl & 4 != 0 && !hit,
            remote: take(word, bits::REMOTE) != 0 || legacy_remote,
            hops: take(word, bits::HOPS) as u8,
            snoop: if snoop & 0x10 != 0 {
                Snoop::HitM
            } else if snoopx & 1 != 0 {
                Snoop::Fwd
            } else if snoopx & 2 != 0 {
                Snoop::Peer
            } else if snoop & 4 != 0 {
                Snoop::Hit
            } else if snoop & 10 == 10 {
                Snoop::NoneOrMiss
            } else if snoop & 8 != 0 {
                Snoop::Miss
            } else if snoop & 2 != 0 {
                Snoop::None
            } else {
                Snoop::Na
            },
            tlb: tlb_of_bits(dtlb),
            locked: match take(word, bits::LOCK) {
                0 if word != 0 => Some(false),
                0 | 1 => None,
                _ => Some(true),
            },
            blocked_data: blk & 2 != 0,
            blocked_address: blk & 4 != 0,
        }
    }

    /// Returns the corrected word of a sample that is known to be a store. For the store latency
    /// event of small cores, the driver uses its table of loads (`grt_latency_data()`,
    /// arch/x86/events/intel/ds.c, Linux 6.1 and 6.12).
    pub const fn as_store(word: u64) -> u64 {
        let load = Self::LOAD as u64;
        if word & load == 0 { word } else { word & !load | Self::STORE as u64 }
    }

    /// Returns whether the access is a load of a line that another cache had modified. Such a load
    /// promotes the line.
    pub const fn is_hitm_load(word: u64) -> bool {
        const HITM: u64 = 0x10 << bits::SNOOP.0;
        word & HITM != 0 && word & Self::LOAD as u64 != 0
    }

    /// Returns whether the hardware gave no data source at all.
    pub const fn is_na(word: u64) -> bool {
        word == 0 || word == NA || word == NA_LEGACY || word == NA & MASK
    }

    /// Returns the operation, as perf prints it; `N/A` if there is none, or several.
    pub const fn op_name(&self) -> &'static str {
        match self.op {
            Self::LOAD => "LOAD",
            Self::STORE => "STORE",
            6 => "LOAD|STORE",
            Self::PREFETCH => "PFETCH",
            Self::EXEC => "EXEC",
            _ => "N/A",
        }
    }
}

const fn take(word: u64, field: (u32, u32)) -> u64 {
    (word >> field.0) & ((1 << field.1) - 1)
}

const fn level_of_number(number: u64) -> MemoryLevel {
    match number {
        1 => MemoryLevel::L1,
        2 => MemoryLevel::L2,
        3 => MemoryLevel::L3,
        4 => MemoryLevel::L4,
        5 => MemoryLevel::L2Mhb,
        6 => MemoryLevel::Msc,
        8 => MemoryLevel::Uncached,
        9 => MemoryLevel::Cxl,
        10 => MemoryLevel::Io,
        11 => MemoryLevel::AnyCache,
        12 => MemoryLevel::Lfb,
        13 => MemoryLevel::Ram,
        14 => MemoryLevel::Pmem,
        _ => MemoryLevel::Na,
    }
}

/// Converts `mem_lvl` to a level, and whether it is remote. L3 comes before the remote caches,
/// because Zen 1 and 2 set both for one access.
const fn level_of_bits(lvl: u64) -> (MemoryLevel, bool) {
    if lvl & 0x8 != 0 {
        (MemoryLevel::L1, false)
    } else if lvl & 0x10 != 0 {
        (MemoryLevel::Lfb, false)
    } else if lvl & 0x20 != 0 {
        (MemoryLevel::L2, false)
    } else if lvl & 0x40 != 0 {
        (MemoryLevel::L3, false)
    } else if lvl & 0x80 != 0 {
        (MemoryLevel::Ram, false)
    } else if lvl & 0x300 != 0 {
        (MemoryLevel::Ram, true)
    } else if lvl & 0xc00 != 0 {
        (MemoryLevel::AnyCache, true)
    } else if lvl & 0x1000 != 0 {
        (MemoryLevel::Io, false)
    } else if lvl & 0x2000 != 0 {
        (MemoryLevel::Uncached, false)
    } else {
        (MemoryLevel::Na, false)
    }
}

const fn tlb_of_bits(dtlb: u64) -> Tlb {
    let (hit, miss) = (dtlb & 2 != 0, dtlb & 4 != 0);
    if dtlb & 0x40 != 0 {
        Tlb::Fault
    } else if hit && dtlb & 0x18 == 0x18 {
        Tlb::AnyHit
    } else if hit && dtlb & 0x8 != 0 {
        Tlb::L1Hit
    } else if hit && dtlb & 0x10 != 0 {
        Tlb::L2Hit
    } else if dtlb & 0x20 != 0 {
        Tlb::Walk
    } else if miss {
        Tlb::Miss
    } else {
        Tlb::Na
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn na_has_nothing() {
        for word in [0, NA, NA_LEGACY] {
            let d = DataSource::decode(word);
            assert!(DataSource::is_na(word));
            assert_eq!((d.level, d.snoop, d.tlb, d.locked), (MemoryLevel::Na, Snoop::Na, Tlb::Na, None));
        }
    }

    #[test]
    fn a_store_that_is_called_a_load_is_a_store() {
        let word = DataSource::as_store(0x11c68200042);
        assert_eq!(
            (DataSource::decode(word).op, DataSource::decode(word).level),
            (DataSource::STORE, MemoryLevel::Pmem)
        );
        assert_eq!(DataSource::as_store(word), word);
        assert_eq!([NA, NA_LEGACY, 0].map(DataSource::as_store), [NA, NA_LEGACY, 0]);
    }

    // What perf prints for words of recorded samples and of samples from the lab.
    #[test]
    fn words_seen_with_real_drivers() {
        let d = DataSource::decode(0x11c68200042);
        assert_eq!(d.op_name(), "LOAD");
        assert_eq!((d.level, d.snoop, d.tlb), (MemoryLevel::Pmem, Snoop::Hit, Tlb::AnyHit));
        let snoop = |bits: u64| DataSource::decode(bits << bits::SNOOP.0).snoop;
        assert_eq!([2, 8, 10].map(snoop), [Snoop::None, Snoop::Miss, Snoop::NoneOrMiss]);
        let d = DataSource::decode(0x1a29081042);
        assert_eq!((d.op, d.level, d.remote), (DataSource::LOAD, MemoryLevel::Ram, false));
        // The same access as the IBS driver of Linux 6.1 writes it: without `mem_lvl_num`.
        let d = DataSource::decode(0x29081042);
        assert_eq!((d.op, d.level, d.tlb), (DataSource::LOAD, MemoryLevel::Ram, Tlb::L1Hit));
    }

    #[test]
    fn every_one_bit_word_decodes() {
        for bit in 0..64 {
            let _ = DataSource::decode(1 << bit);
        }
        let _ = DataSource::decode(u64::MAX);
    }
}
