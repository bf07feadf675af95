//! Writes tables, regions and processes into the arrays that the program reads.
//!
//! Nothing that a program may be reading is overwritten before its process has another generation:
//! a program compares the generation after its last step. Tables only grow; when there is no room
//! for another one, [`Publisher::clear`] begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use precise_common::config::PROBES;
use precise_common::unwind::{MAX_REGIONS, Region, Rule, process_index, program, region, row, span};
use rustc_hash::FxHashMap;

use crate::kernel::unwind::UnwindMemory;
use crate::reader::unwind::UnwindTable;

/// The id of an entry of a process that was removed while a search for others may pass it. No
/// process has it.
const REMOVED: u32 = u32::MAX;

/// Where a table is in the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// The span of its pages.
    pages: u64,
    /// The number of the first page.
    first: u32,
}

impl Installed {
    /// Returns the region of a mapping of the file.
    pub fn region(self, start: u64, end: u64, bias: u64) -> Region {
        Region { start, end, bias, pages: self.pages, first: self.first, kind: region::TABLE }
    }
}

/// A block of regions: its index, and the power of two that is its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    index: u32,
    bits: u32,
}

/// The state of the arrays.
#[derive(Debug)]
pub(super) struct Publisher {
    memory: Arc<UnwindMemory>,
    rules: FxHashMap<Rule, u16>,
    next_page: u32,
    next_row: u32,
    next_region: u32,
    /// Free blocks, by the power of two of their size.
    free: BTreeMap<u32, Vec<u32>>,
    /// The entry and the regions of each published process.
    processes: FxHashMap<u32, (u32, Block)>,
    generation: u32,
}

impl Publisher {
    /// Starts with empty arrays.
    pub fn new(memory: Arc<UnwindMemory>) -> Self {
        Self {
            memory,
            rules: FxHashMap::default(),
            next_page: 0,
            next_row: 0,
            next_region: 0,
            free: BTreeMap::new(),
            processes: FxHashMap::default(),
            generation: 0,
        }
    }

    /// Returns the bytes of the arrays that are in use.
    pub fn used(&self) -> usize {
        self.rules.len() * size_of::<Rule>()
            + self.next_page as usize * size_of::<u64>()
            + self.next_row as usize * size_of::<u32>()
            + self.next_region as usize * size_of::<Region>()
            + self.processes.len() * 16
    }

    /// Returns the size of the arrays in bytes.
    pub fn room(&self) -> usize {
        self.memory.sizes().bytes()
    }

    /// Withdraws all processes and all tables.
    pub fn clear(&mut self) {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.withdraw(pid));
        let generation = self.generation;
        *self = Self { generation, ..Self::new(self.memory.clone()) };
    }

    /// Writes a table, which is checked. Returns where it is; `None` if there is no room.
    pub fn install(&mut self, table: &UnwindTable) -> Option<Installed> {
        let sizes = self.memory.sizes();
        let (pages, rows) = (table.pages.len(), table.rows.len());
        let fits = |next: u32, more: usize, size: u32| next as usize + more <= size as usize;
        if !fits(self.next_page, pages, sizes.pages) || !fits(self.next_row, rows, sizes.rows) {
            return None;
        }
        let numbers: Vec<u16> = table.rules.iter().map(|&rule| self.rule(rule)).collect::<Option<_>>()?;
        for (at, &packed) in table.rows.iter().enumerate() {
            let rule = numbers.get(row::rule(packed) as usize).copied().unwrap_or_default();
            self.memory.set_row(self.next_row + at as u32, row::pack(row::low(packed) as u16, rule));
        }
        let mut first_row = self.next_row;
        for (at, &count) in table.pages.iter().enumerate() {
            self.memory.set_page(self.next_page + at as u32, span::pack(first_row, count));
            first_row += count;
        }
        let installed = Installed { pages: span::pack(self.next_page, pages as u32), first: table.first };
        self.next_page += pages as u32;
        self.next_row += rows as u32;
        Some(installed)
    }

    /// Returns the number of a rule; `None` if there is no room.
    fn rule(&mut self, rule: Rule) -> Option<u16> {
        if let Some(&number) = self.rules.get(&rule) {
            return Some(number);
        }
        let number = u16::try_from(self.rules.len()).ok()?;
        if u32::from(number) >= self.memory.sizes().rules {
            return None;
        }
        self.memory.set_rule(u32::from(number), rule);
        self.rules.insert(rule, number);
        Some(number)
    }

    /// Publishes the regions of a process and the number of its program; the regions are sorted by
    /// address. They take the place of those that it had. Returns whether there was room.
    pub fn publish(&mut self, pid: u32, program: u8, regions: &[Region]) -> bool {
        let regions = regions.get(..regions.len().min(MAX_REGIONS as usize)).unwrap_or_default();
        let Some(block) = self.allocate(regions.len()) else {
            self.withdraw(pid);
            return false;
        };
        for (at, region) in regions.iter().enumerate() {
            self.memory.set_region(block.index + at as u32, *region);
        }
        let known = self.processes.get(&pid).copied();
        let Some(entry) = known.map(|(entry, _)| entry).or_else(|| self.free_entry(pid)) else {
            self.release(block);
            return false;
        };
        self.generation = self.generation.wrapping_add(1);
        let regions = span::pack(block.index, regions.len() as u32);
        self.memory.set_process(entry, pid, program, self.generation, regions);
        if let Some((_, old)) = self.processes.insert(pid, (entry, block)) {
            self.release(old);
        }
        true
    }

    /// Returns the span of the regions of a process; `None` if it is not published.
    pub fn regions(&self, pid: u32) -> Option<u64> {
        let (entry, _) = self.processes.get(&pid)?;
        Some(self.memory.process(*entry).regions)
    }

    /// Removes a process.
    pub fn withdraw(&mut self, pid: u32) {
        let Some((entry, block)) = self.processes.remove(&pid) else { return };
        let mask = self.memory.sizes().processes - 1;
        let pid_at = |at: u32| self.memory.process(at & mask).identity as u32;
        self.generation = self.generation.wrapping_add(1);
        self.memory.set_process(entry, REMOVED, program::NONE, self.generation, 0);
        // No search passes an entry before a free one.
        let mut last = entry;
        while pid_at(last) == REMOVED && self.memory.process(last.wrapping_add(1) & mask).identity == 0 {
            self.memory.free_process(last);
            last = last.wrapping_sub(1) & mask;
        }
        self.release(block);
    }

    /// Returns the first entry where a search for `pid` may end.
    fn free_entry(&self, pid: u32) -> Option<u32> {
        let mask = self.memory.sizes().processes - 1;
        (0..PROBES).map(|probe| process_index(pid, probe, mask)).find(|&entry| {
            let identity = self.memory.process(entry).identity;
            identity == 0 || identity as u32 == REMOVED
        })
    }

    /// Returns a block for this number of regions.
    fn allocate(&mut self, regions: usize) -> Option<Block> {
        let bits = regions.max(4).next_power_of_two().trailing_zeros();
        if let Some(index) = self.free.get_mut(&bits).and_then(Vec::pop) {
            return Some(Block { index, bits });
        }
        let end = self.next_region.checked_add(1 << bits)?;
        if end <= self.memory.sizes().regions {
            let index = std::mem::replace(&mut self.next_region, end);
            return Some(Block { index, bits });
        }
        // A larger block: a part of it stays unused until it is free again.
        let (&bits, _) = self.free.range(bits..).find(|(_, free)| !free.is_empty())?;
        let index = self.free.get_mut(&bits)?.pop()?;
        Some(Block { index, bits })
    }

    fn release(&mut self, block: Block) {
        self.free.entry(block.bits).or_default().push(block.index);
    }
}

#[cfg(test)]
mod tests {
    use precise_common::unwind::{Process, find_region, find_rule};

    use super::*;
    use crate::kernel::unwind::UnwindSizes;

    fn publisher() -> Publisher {
        Publisher::new(Arc::new(UnwindMemory::alone(UnwindSizes::within(0)).unwrap()))
    }

    /// As the program finds it.
    fn find(memory: &UnwindMemory, pid: u32) -> Option<Process> {
        let mask = memory.sizes().processes - 1;
        let all = (0..PROBES).map(|probe| memory.process(process_index(pid, probe, mask)));
        all.take_while(|entry| entry.identity != 0).find(|entry| entry.identity as u32 == pid)
    }

    fn regions(count: u64) -> Vec<Region> {
        (1..=count)
            .map(|at| Region { start: at << 20, end: (at << 20) + 4096, ..Region::default() })
            .collect()
    }

    #[test]
    fn tables_share_their_rules() {
        let mut publisher = publisher();
        let table = |first, rules: &[Rule]| UnwindTable {
            first,
            pages: vec![2, 0, 1],
            rows: vec![row::pack(0, 0), row::pack(0x100, 1), row::pack(7, 0)],
            rules: rules.to_vec(),
        };
        let one = publisher.install(&table(1, &[Rule::GAP, Rule::ROOT])).unwrap();
        let two = publisher.install(&table(0, &[Rule::ROOT, Rule::SIGNAL])).unwrap();
        assert_eq!(publisher.rules.len(), 3);
        let memory = &publisher.memory;
        let rule = |of: Installed, address| find_rule(&**memory, &of.region(0, 1, 0), address);
        assert_eq!(rule(one, 0x1_0100), Some(Rule::ROOT));
        assert_eq!(rule(one, 0x2_ffff), Some(Rule::ROOT), "the page has no row of its own");
        assert_eq!((rule(one, 0x3_0007), rule(one, 0x4_0000), rule(one, 0)), (Some(Rule::GAP), None, None));
        assert_eq!((rule(two, 0), rule(two, 0x101)), (Some(Rule::ROOT), Some(Rule::SIGNAL)));
    }

    #[test]
    fn a_process_has_its_newest_regions() {
        let mut publisher = publisher();
        assert!(publisher.publish(7, 1, &regions(3)));
        let first = find(&publisher.memory, 7).unwrap();
        assert!(publisher.publish(7, 1, &regions(30)));
        let second = find(&publisher.memory, 7).unwrap();
        assert_ne!(first.identity, second.identity, "another generation");
        assert_eq!(second.identity >> 32 & 1, 0, "the entry is complete");
        let found = find_region(&*publisher.memory, second.regions, (30 << 20) + 5).unwrap();
        assert_eq!(found.start, 30 << 20);
        assert_eq!(find_region(&*publisher.memory, second.regions, (30 << 20) + 4096), None);
        publisher.withdraw(7);
        assert_eq!(find(&publisher.memory, 7), None);
        assert_eq!(publisher.memory.region(0).unwrap().start, 1 << 20, "readers may still be there");
    }

    #[test]
    fn processes_come_and_go_and_nothing_is_lost() {
        let mut publisher = publisher();
        for round in 0..50u32 {
            let pids: Vec<u32> = (0..200).map(|at| 1 + at * 37 + round * 10_000).collect();
            for pid in &pids {
                assert!(publisher.publish(*pid, 1, &regions(u64::from(pid % 20))), "{round}: {pid}");
            }
            assert!(pids.iter().all(|pid| find(&publisher.memory, *pid).is_some()));
            pids.iter().for_each(|pid| publisher.withdraw(*pid));
            assert!(pids.iter().all(|pid| find(&publisher.memory, *pid).is_none()));
        }
        let sizes = publisher.memory.sizes();
        let free = (0..sizes.processes).all(|at| publisher.memory.process(at).identity == 0);
        assert!(free, "removed entries are free again");
        assert!(publisher.next_region <= 200 * 32, "blocks are used again");
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut publisher = publisher();
        let published = (1..100_000).take_while(|pid| publisher.publish(*pid, 1, &regions(16))).count();
        assert!(published > 100 && published < 5000, "{published}");
        let rows = publisher.memory.sizes().rows;
        let table = |rows: u32| UnwindTable {
            first: 0,
            pages: vec![rows],
            rows: vec![row::pack(0, 0); rows as usize],
            rules: vec![Rule::GAP],
        };
        assert_eq!(publisher.install(&table(rows + 1)), None);
        assert!(publisher.install(&table(rows)).is_some());
        assert_eq!(publisher.install(&table(1)), None);
        publisher.clear();
        assert_eq!(publisher.used(), 0);
        assert!(publisher.install(&table(rows)).is_some() && publisher.publish(1, 1, &regions(1)));
    }
}
