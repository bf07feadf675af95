//! The memory that other programs can make a run take: one budget, and the parts that it has.

use std::sync::OnceLock;

use crate::machine::Root;

/// How many bytes a run may take for what other programs do, however many processes they start and
/// whatever these map. Each part is the limit of one place, so the sum is never exceeded. The rows
/// of the epoch that is being named, the row group that is not written yet and the symbols of
/// programs come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesBudget {
    /// For the history of processes: their names, mappings and files.
    pub processes: usize,
    /// For the cells and call chains of epochs that wait to be named.
    pub cells: usize,
    /// For the cells and call chains that were read before the end of their epoch.
    pub early: usize,
    /// For the records of processes that wait.
    pub sideband: usize,
    /// For the locations, chains and names that are kept from epoch to epoch.
    pub remembered: usize,
}

impl NamesBudget {
    /// The least that is divided: 20,000 programs that start and end within one epoch, and 300,000
    /// cells that wait, fit into it.
    pub const LEAST: usize = 128 << 20;
    /// The most that is divided: 100,000 such programs, or 10,000 processes with 400 mappings.
    pub const MOST: usize = 512 << 20;
    /// The part of the machine's memory that is divided: a machine with more memory runs more
    /// programs.
    const PART: usize = 256;

    /// Returns the budget on a machine with this memory in bytes.
    pub fn of(memory: usize) -> Self {
        let unit = (memory / Self::PART).clamp(Self::LEAST, Self::MOST) / 16;
        Self { processes: 8 * unit, cells: 3 * unit, early: unit, sideband: 2 * unit, remembered: 2 * unit }
    }

    /// Returns the budget on this machine, which is the same in the whole run.
    pub fn of_this_machine() -> Self {
        static BUDGET: OnceLock<NamesBudget> = OnceLock::new();
        *BUDGET.get_or_init(|| Self::of(memory(&Root::default()).unwrap_or(0)))
    }

    /// Returns the sum of the parts in bytes.
    pub fn sum(&self) -> usize {
        let Self { processes, cells, early, sideband, remembered } = self;
        processes + cells + early + sideband + remembered
    }
}

/// Returns the memory of the machine in bytes; `None` if it is not known.
fn memory(root: &Root) -> Option<usize> {
    let text = root.read("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_sum() {
        const GIB: usize = 1 << 30;
        for (memory, sum) in [(0, 128), (32 * GIB, 128), (64 * GIB, 256), (usize::MAX, 512)] {
            assert_eq!(NamesBudget::of(memory).sum(), sum << 20, "{memory} bytes");
        }
        let odd = NamesBudget::of(40 * GIB + 12_345);
        assert!((160 << 20) - 16 <= odd.sum() && odd.sum() <= 161 << 20, "{odd:?}");
        assert!(memory(&Root::default()).is_some_and(|bytes| bytes > 64 << 20));
    }
}
