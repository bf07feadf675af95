//! The unwind tables in memory shared with the program: [`precise_common::unwind`] describes them.
//!
//! One thread of user space writes them while the programs of a run read. So each word is written
//! at once, and what a word refers to is written before it. An entry of a process has two words;
//! its generation is odd while they may not belong together.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use precise_common::unwind::{Process, Region, Rule, program};

use super::map_memory::{SharedMemory, page_size};
use super::object::ArraySize;
use crate::error::SyscallError;

/// The names of the maps in the object.
const PROCESSES: &str = "PROCESSES";
const REGIONS: &str = "REGIONS";
const PAGES: &str = "PAGES";
const ROWS: &str = "ROWS";
const RULES: &str = "RULES";

/// The maps that all programs of a run share.
pub(super) const MAPS: [&str; 5] = [PROCESSES, REGIONS, PAGES, ROWS, RULES];

/// The sizes of the arrays, in elements. The kernel allocates all of it when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindSizes {
    /// The number of entries for processes, a power of two.
    pub processes: u32,
    /// The number of regions of all processes.
    pub regions: u32,
    /// The number of pages of all tables.
    pub pages: u32,
    /// The number of rows of all tables, an even number.
    pub rows: u32,
    /// The number of rules.
    pub rules: u32,
}

impl UnwindSizes {
    /// The least memory that is worth having, in bytes.
    pub const LEAST: usize = 1 << 20;

    /// Returns the sizes that take about this number of bytes, at least [`Self::LEAST`]: most of it
    /// is for rows.
    pub fn within(bytes: usize) -> Self {
        let bytes = bytes.clamp(Self::LEAST, 1 << 30);
        // An eighth of it for regions. A process has two dozen on average, and the table of
        // processes is at most half full.
        let regions = bytes / 8 / size_of::<Region>();
        let processes = (regions / 6).next_power_of_two().min(1 << 16);
        let pages = (bytes / 32 / size_of::<u64>()).min(1 << 18);
        // A row has the number of its rule in 16 bits.
        let rules = (bytes / 32 / size_of::<Rule>()).min(1 << 16);
        let others = regions * size_of::<Region>()
            + processes * size_of::<Process>()
            + pages * size_of::<u64>()
            + rules * size_of::<Rule>();
        let rows = (bytes.saturating_sub(others) / size_of::<u32>()) & !1;
        let [processes, regions, pages, rows, rules] =
            [processes, regions, pages, rows, rules].map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        Self { processes, regions, pages, rows, rules }
    }

    /// Returns the memory of the arrays in bytes.
    pub fn bytes(&self) -> usize {
        self.processes as usize * size_of::<Process>()
            + self.regions as usize * size_of::<Region>()
            + self.pages as usize * size_of::<u64>()
            + self.rows as usize * size_of::<u32>()
            + self.rules as usize * size_of::<Rule>()
    }

    /// Returns the numbers of elements of the maps.
    pub(super) fn arrays(sizes: Option<&Self>) -> [(&'static str, ArraySize); 5] {
        let one = Self { processes: 1, regions: 1, pages: 1, rows: 2, rules: 1 };
        let Self { processes, regions, pages, rows, rules } = *sizes.unwrap_or(&one);
        // Two rows share an element.
        [(PROCESSES, processes), (REGIONS, regions), (PAGES, pages), (ROWS, rows / 2), (RULES, rules)]
            .map(|(name, elements)| (name, ArraySize::Elements(elements)))
    }
}

/// The arrays of a run. Writes beyond an array's end do nothing.
#[derive(Debug)]
pub struct UnwindMemory {
    sizes: UnwindSizes,
    processes: SharedMemory,
    regions: SharedMemory,
    pages: SharedMemory,
    rows: SharedMemory,
    rules: SharedMemory,
}

impl UnwindMemory {
    /// Maps the maps of a loaded program; `map` maps one, by its name and size in bytes.
    pub(super) fn map<E>(
        sizes: UnwindSizes,
        map: impl Fn(&str, usize) -> Result<SharedMemory, E>,
    ) -> Result<Self, E> {
        let of = |name, elements: u32, bytes: usize| map(name, elements as usize * bytes);
        Ok(Self {
            sizes,
            processes: of(PROCESSES, sizes.processes, size_of::<Process>())?,
            regions: of(REGIONS, sizes.regions, size_of::<Region>())?,
            pages: of(PAGES, sizes.pages, size_of::<u64>())?,
            rows: of(ROWS, sizes.rows, size_of::<u32>())?,
            rules: of(RULES, sizes.rules, size_of::<Rule>())?,
        })
    }

    /// Returns the sizes of the arrays.
    pub fn sizes(&self) -> UnwindSizes {
        self.sizes
    }

    /// Writes a rule.
    pub fn set_rule(&self, index: u32, rule: Rule) {
        if index < self.sizes.rules {
            self.word(&self.rules, index as usize * 8).store(rule.0, Ordering::Relaxed);
        }
    }

    /// Writes a page: the index of its first row, and the number of its rows.
    pub fn set_page(&self, index: u32, page: u64) {
        if index < self.sizes.pages {
            self.word(&self.pages, index as usize * 8).store(page, Ordering::Relaxed);
        }
    }

    /// Writes a row.
    pub fn set_row(&self, index: u32, row: u32) {
        if index < self.sizes.rows {
            // SAFETY: the place lies inside of the mapping, and is aligned; programs read it, so it
            // is written at once.
            let place = unsafe { AtomicU32::from_ptr(self.rows.as_ptr().add(index as usize * 4).cast()) };
            place.store(row, Ordering::Relaxed);
        }
    }

    /// Writes a region.
    pub fn set_region(&self, index: u32, region: Region) {
        if index >= self.sizes.regions {
            return;
        }
        let Region { start, end, bias, pages, first, kind } = region;
        let last = u64::from(first) | u64::from(kind) << 32;
        for (at, word) in [start, end, bias, pages, last].into_iter().enumerate() {
            let place = index as usize * size_of::<Region>() + at * 8;
            self.word(&self.regions, place).store(word, Ordering::Relaxed);
        }
    }

    /// Returns the entry of a process at an index of the table; an empty one beyond its end.
    pub fn process(&self, index: u32) -> Process {
        if index >= self.sizes.processes {
            return Process::default();
        }
        let place = index as usize * size_of::<Process>();
        Process {
            identity: self.word(&self.processes, place).load(Ordering::Relaxed),
            regions: self.word(&self.processes, place + 8).load(Ordering::Relaxed),
        }
    }

    /// Replaces the entry of a process at an index. Programs see the old entry, or the new one, or
    /// that it changes; if they see the new one, they see all that was written before.
    pub fn set_process(&self, index: u32, pid: u32, program: u8, generation: u32, regions: u64) {
        if index >= self.sizes.processes {
            return;
        }
        let place = index as usize * size_of::<Process>();
        let (identity, content) = (self.word(&self.processes, place), self.word(&self.processes, place + 8));
        let of = |generation: u32| {
            let generation = u64::from(generation) << 32 & ((1 << program::SHIFT) - 1);
            u64::from(pid) | generation | u64::from(program) << program::SHIFT
        };
        // Odd: the entry changes.
        identity.store(of(generation.wrapping_mul(2) | 1), Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Release);
        content.store(regions, Ordering::Relaxed);
        identity.store(of(generation.wrapping_mul(2)), Ordering::Release);
    }

    /// Makes an entry free that no search passes. It must not be that of a process.
    pub fn free_process(&self, index: u32) {
        if index < self.sizes.processes {
            let place = index as usize * size_of::<Process>();
            self.word(&self.processes, place).store(0, Ordering::Relaxed);
        }
    }

    /// Creates arrays that no program reads. They take memory only where they are written.
    ///
    /// # Errors
    ///
    /// Returns the error of the call that failed.
    pub fn alone(sizes: UnwindSizes) -> Result<Self, SyscallError> {
        let map = |_: &str, bytes: usize| {
            let length = bytes.next_multiple_of(page_size());
            let fd = rustix::fs::memfd_create(c"unwind", rustix::fs::MemfdFlags::CLOEXEC)
                .map_err(|error| SyscallError { call: "memfd_create", source: error.into() })?;
            rustix::fs::ftruncate(&fd, length as u64)
                .map_err(|error| SyscallError { call: "ftruncate", source: error.into() })?;
            SharedMemory::map(fd.as_fd(), bytes)
        };
        Self::map(sizes, map)
    }

    /// Returns a region; `None` beyond the end of the array.
    pub fn region(&self, index: u32) -> Option<Region> {
        let word = |at: usize| {
            self.word(&self.regions, index as usize * size_of::<Region>() + at * 8).load(Ordering::Relaxed)
        };
        (index < self.sizes.regions).then(|| Region {
            start: word(0),
            end: word(1),
            bias: word(2),
            pages: word(3),
            first: word(4) as u32,
            kind: (word(4) >> 32) as u32,
        })
    }

    /// Returns a page; `None` beyond the end of the array.
    pub fn page(&self, index: u32) -> Option<u64> {
        let at = index as usize * 8;
        (index < self.sizes.pages).then(|| self.word(&self.pages, at).load(Ordering::Relaxed))
    }

    /// Returns the two rows of an element; `None` beyond the end of the array.
    pub fn rows(&self, index: u32) -> Option<u64> {
        let at = index as usize * 8;
        (index < self.sizes.rows / 2).then(|| self.word(&self.rows, at).load(Ordering::Relaxed))
    }

    /// Returns a rule; `None` beyond the end of the array.
    pub fn rule(&self, index: u32) -> Option<Rule> {
        let at = index as usize * 8;
        (index < self.sizes.rules).then(|| Rule(self.word(&self.rules, at).load(Ordering::Relaxed)))
    }

    fn word<'a>(&self, memory: &'a SharedMemory, place: usize) -> &'a AtomicU64 {
        debug_assert!(place + 8 <= memory.len());
        // SAFETY: the callers have compared the place with the size of the array; it is aligned,
        // and the mapping lives as long as the reference. Programs read it at any time, so it is
        // written at once.
        unsafe { AtomicU64::from_ptr(memory.as_ptr().add(place).cast()) }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use precise_common::unwind::Memory;

    /// The arrays as the program reads them, without the memory of a task.
    impl Memory for UnwindMemory {
        fn region(&self, index: u32) -> Option<Region> {
            Self::region(self, index)
        }

        fn page(&self, index: u32) -> Option<u64> {
            Self::page(self, index)
        }

        fn rows(&self, index: u32) -> Option<u64> {
            Self::rows(self, index)
        }

        fn rule(&self, index: u32) -> Option<Rule> {
            Self::rule(self, index)
        }

        fn word(&self, _address: u64) -> Option<u64> {
            None
        }

        fn words(&self, _address: u64) -> Option<[u64; 2]> {
            None
        }
    }

    #[test]
    fn sizes_are_within_the_bytes() {
        for bytes in [0, 1 << 20, 32 << 20, 1 << 30, usize::MAX] {
            let sizes = UnwindSizes::within(bytes);
            let wanted = bytes.clamp(UnwindSizes::LEAST, 1 << 30);
            assert!(sizes.bytes() <= wanted && sizes.bytes() > wanted * 9 / 10, "{bytes}: {sizes:?}");
            assert!(
                sizes.processes.is_power_of_two() && sizes.rows.is_multiple_of(2) && sizes.rules <= 1 << 16
            );
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let memory = UnwindMemory::alone(UnwindSizes::within(0)).unwrap();
        let region = Region { start: 1, end: 2, bias: 3, pages: 4, first: 5, kind: 6 };
        memory.set_region(7, region);
        memory.set_row(9, 0xdead_beef);
        memory.set_process(3, 4711, 0, 5, 77);
        assert_eq!(memory.region(7), Some(region));
        assert_eq!(memory.rows(4), Some(0xdead_beef << 32));
        assert_eq!(memory.process(3), Process { identity: 4711 | 10 << 32, regions: 77 });
        memory.set_process(3, 4711, 63, u32::MAX, 77);
        assert_eq!(memory.process(3).identity, 4711 | 0xffff_fffe << 32);
        // Beyond the ends nothing happens.
        memory.set_region(u32::MAX, region);
        memory.set_row(u32::MAX, 1);
        memory.set_process(u32::MAX, 1, 1, 1, 1);
        assert_eq!(memory.process(u32::MAX), Process::default());
    }
}
