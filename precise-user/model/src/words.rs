//! The words for data sources, which are perf's. All output takes them from here.
//!
//! They are the words of `perf mem report` (tools/perf/util/mem-events.c, Linux 6.12), with one
//! difference. perf names an access by the bits that its driver set, so the same access is "RAM
//! hit" on one kernel and "Local RAM hit" on an older one. Here it has one name, that of
//! `mem_lvl_num`.

use std::fmt;

use precise_common::data_src::{DataSource, MemoryLevel, Snoop, Tlb};

/// The place where an access was served, or the level that it missed. Ordered from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Served {
    remote: bool,
    hops: u8,
    level: MemoryLevel,
    miss: bool,
}

impl Served {
    /// Returns where the access was served; `None` if the data source does not say.
    pub fn of(source: DataSource) -> Option<Self> {
        let DataSource { remote, hops, level, miss, .. } = source;
        (level != MemoryLevel::Na).then_some(Self { remote, hops, level, miss })
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.remote {
            f.write_str("Remote ")?;
        }
        f.write_str(match self.hops {
            1 => "core, same node ",
            2 => "node, same socket ",
            3 => "socket, same board ",
            4 => "board ",
            _ => "",
        })?;
        write!(f, "{} {}", self.level.name(), if self.miss { "miss" } else { "hit" })
    }
}

/// Returns what other caches answered; `None` if the data source does not say.
pub fn snoop(source: DataSource) -> Option<Snoop> {
    Some(source.snoop).filter(|snoop| *snoop != Snoop::Na)
}

/// Returns how the address was translated; `None` if the data source does not say.
pub fn tlb(source: DataSource) -> Option<Tlb> {
    Some(source.tlb).filter(|tlb| *tlb != Tlb::Na)
}

/// Returns the operation; `None` if there is none, or several.
pub fn op(source: DataSource) -> Option<&'static str> {
    Some(source.op_name()).filter(|name| *name != "N/A")
}

/// Returns whether a data source word says where the access was served.
pub fn has_source(word: u64) -> bool {
    !DataSource::is_na(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(word: u64) -> String {
        Served::of(DataSource::decode(word)).map_or("N/A".to_owned(), |served| served.to_string())
    }

    // Words from recordings of a Zen 4 and a Coffee Lake, and what perf 6.12 prints for them.
    #[test]
    fn levels_as_perf_has_them() {
        assert_eq!(words(0x1868100242), "LFB/MAB hit");
        assert_eq!(words(0x5080184), "L1 miss");
        assert_eq!(words(0x1a68201042), "RAM hit");
        assert_eq!(words(0x1a29081042), "RAM hit");
        let remote_core = 2 | 2 << 5 | 11 << 33 | 1 << 37 | 1 << 43;
        assert_eq!(words(remote_core), "Remote core, same node Any cache hit");
        assert_eq!(words(0), "N/A");
    }

    // Words without `mem_lvl_num`, as kernels before 6.2 write them for IBS.
    #[test]
    fn old_bits_have_the_same_words() {
        assert_eq!(words(2 | (2 | 0x80) << 5), "RAM hit");
        assert_eq!(words(2 | (2 | 0x100) << 5), "Remote RAM hit");
        assert_eq!(words(2 | (2 | 0x400) << 5), "Remote Any cache hit");
    }

    #[test]
    fn near_comes_before_far() {
        let served = |word| Served::of(DataSource::decode(word));
        let (l1, ram) = (served(2 | 2 << 5 | 1 << 33), served(2 | 2 << 5 | 13 << 33));
        let remote_cache = served(2 | 2 << 5 | 11 << 33 | 1 << 37 | 3 << 43);
        assert!(l1 < ram && ram < remote_cache);
    }
}
