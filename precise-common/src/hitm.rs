//! Classes of HITM loads, which c2c tells apart: where the modified line was, by vendor.

use crate::data_src::{DataSource, bits};

/// The place of the cache that had the line modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hitm {
    /// Intel: another core of the same socket.
    Local,
    /// AMD: the same core complex: its L3 cache, or an L1 or L2 cache behind it.
    SameCcx,
    /// AMD before Zen 4: a cache of the same node. Whether it belongs to the same core complex is
    /// not reported.
    SameNode,
    /// AMD: another core complex of the same node.
    OtherCcx,
    /// AMD: another node.
    OtherNode,
    /// Intel: another socket.
    Remote,
}

impl Hitm {
    /// All classes, nearest first.
    pub const ALL: [Self; 6] =
        [Self::Local, Self::SameCcx, Self::SameNode, Self::OtherCcx, Self::OtherNode, Self::Remote];

    /// Returns the class of an access; `None` if it is not a load that found its line modified.
    ///
    /// `amd`: the data source is from the IBS driver (`g_data_src`, `g_zen4_data_src`,
    /// arch/x86/events/amd/ibs.c). The driver sets REM_CCE1 for another core complex of the *same*
    /// node, which perf counts as remote. Before Zen 4 it sets L3 and REM_CCE1 at once, which perf
    /// counts twice. The one-hot bits are all that kernels before 6.2 set.
    pub const fn of(word: u64, amd: bool) -> Option<Self> {
        const L3: u64 = 0x40 << bits::LVL.0;
        const REM_CCE1: u64 = 0x400 << bits::LVL.0;
        const REM_CCE2: u64 = 0x800 << bits::LVL.0;
        if !DataSource::is_hitm_load(word) {
            return None;
        }
        let source = DataSource::decode(word);
        Some(match amd {
            true if source.hops >= 2 || word & REM_CCE2 != 0 => Self::OtherNode,
            true if word & L3 != 0 && word & REM_CCE1 != 0 => Self::SameNode,
            true if source.remote || word & REM_CCE1 != 0 => Self::OtherCcx,
            true if word & L3 != 0 => Self::SameCcx,
            true => Self::SameNode,
            false if source.remote || word & (REM_CCE1 | REM_CCE2) != 0 => Self::Remote,
            false => Self::Local,
        })
    }

    /// Returns the name of the class in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::SameCcx => "same CCX",
            Self::SameNode => "same node",
            Self::OtherCcx => "other CCX",
            Self::OtherNode => "other node",
            Self::Remote => "remote",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u64 = 2 | 2 << 5 | 0x10 << 19;

    const fn word(lvl: u64, number: u64, remote: u64, hops: u64) -> u64 {
        LOAD | lvl << 5 | number << 33 | remote << 37 | hops << 43
    }

    // Words from the tables of the drivers.
    #[test]
    fn classes_of_both_vendors() {
        for (word, amd, class) in [
            (word(0x40, 3, 0, 0), true, Hitm::SameCcx),
            (word(0x400, 11, 1, 1), true, Hitm::OtherCcx),
            (word(0x800, 11, 1, 2), true, Hitm::OtherNode),
            (word(0x440, 11, 0, 1), true, Hitm::SameNode),
            // Linux 6.1 sets no numbers.
            (word(0x40, 0, 0, 0), true, Hitm::SameCcx),
            (word(0x400, 0, 0, 0), true, Hitm::OtherCcx),
            (word(0x800, 0, 0, 0), true, Hitm::OtherNode),
            (word(0x40, 3, 0, 0), false, Hitm::Local),
            (word(0x400, 11, 1, 0), false, Hitm::Remote),
            (word(0, 11, 1, 0), false, Hitm::Remote),
        ] {
            assert_eq!(Hitm::of(word, amd), Some(class), "{word:#x} {amd}");
        }
        assert_eq!(Hitm::of(LOAD & !(0x10 << 19), true), None);
        assert_eq!(Hitm::of(LOAD & !2 | 4, false), None);
    }
}
