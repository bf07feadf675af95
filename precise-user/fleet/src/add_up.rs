//! Rows of equal keys, added up.
//!
//! A packed key has 128 bits, and sorting rows by it compares two words and moves 32 or 48 bytes at
//! each step. In one list, the parts of keys have few values. So each row gets a number of 64 bits
//! that is in the order of the keys; these are sorted, and each row is then copied once.

use rustc_hash::FxHashMap;

/// What rows of one key add up to.
pub(crate) trait Summed: Copy {
    /// Adds another row.
    fn add(&mut self, other: &Self);
}

/// What samples of one key add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub count: u64,
    pub weight: u64,
    pub latency_sum: u64,
    pub latency_max: u32,
}

impl Summed for Sums {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.weight = self.weight.saturating_add(other.weight);
        self.latency_sum = self.latency_sum.saturating_add(other.latency_sum);
        self.latency_max = self.latency_max.max(other.latency_max);
    }
}

impl Summed for [u64; 2] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(total, more)| *total = total.saturating_add(*more));
    }
}

/// The most bytes that [`sum_up`] takes for a row beside the list: its number and place, and either
/// those once more while they are sorted, or the row in order; and the number of its function.
pub(crate) const BESIDE: usize = size_of::<(u64, u32)>() + size_of::<(u128, Sums)>() + size_of::<u32>();

/// Returns how many bits numbers below `count` take.
pub(crate) fn bits_below(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// Large numbers, one for each row, by their rank among all of them.
pub(crate) struct Ranks {
    /// The number of each row's number.
    of_rows: Vec<u32>,
    /// Ranks by these.
    ranks: Vec<u32>,
}

impl Ranks {
    /// Ranks the numbers of rows.
    pub fn of(all: impl Iterator<Item = u64>) -> Self {
        let (mut known, mut distinct) = (FxHashMap::default(), Vec::new());
        let mut last = None;
        let mut number = |of: u64| match last {
            Some((before, number)) if before == of => number,
            _ => {
                let number = *known.entry(of).or_insert_with(|| {
                    distinct.push(of);
                    distinct.len() as u32 - 1
                });
                last = Some((of, number));
                number
            }
        };
        let of_rows = all.map(&mut number).collect();
        let mut order: Vec<(u64, u32)> = distinct.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for ((_, number), rank) in order.into_iter().zip(0..) {
            if let Some(of) = ranks.get_mut(number as usize) {
                *of = rank;
            }
        }
        Self { of_rows, ranks }
    }

    /// Returns the rank of a row's number.
    pub fn rank(&self, row: usize) -> u64 {
        let number = self.of_rows.get(row).copied().unwrap_or(0);
        self.ranks.get(number as usize).copied().unwrap_or(0).into()
    }

    /// Returns how many bits ranks take.
    pub fn bits(&self) -> u32 {
        bits_below(self.ranks.len())
    }
}

/// Returns parts of a key as one number, the first one in its highest bits. Each comes with the
/// bits that it takes.
pub(crate) fn joined<const N: usize>(parts: [(u64, u32); N]) -> u64 {
    // The first part may have all bits, but nothing is above it.
    parts.into_iter().fold(0, |all: u64, (part, bits)| all.wrapping_shl(bits) | part)
}

/// Sorts rows by their keys, and adds up those of equal ones. `short` returns for a row and its key
/// a number in the same order as keys, which takes this many bits: it is used if they are at most
/// 64.
pub(crate) fn sum_up<V: Summed>(rows: &mut Vec<(u128, V)>, bits: u32, short: impl Fn(usize, u128) -> u64) {
    if bits > u64::BITS || u32::try_from(rows.len()).is_err() {
        rows.sort_unstable_by_key(|(key, _)| *key);
        return sum_equal(rows);
    }
    let mut order: Vec<(u64, u32)> =
        rows.iter().enumerate().map(|(at, (key, _))| (short(at, *key), at as u32)).collect();
    // The rows of a day come from hours in which they are in order: this sort merges them.
    order.sort_by_key(|(short, _)| *short);
    let equal = |(a, _): &(u64, u32), (b, _): &(u64, u32)| a == b;
    // A new list, because rows that change places in the old one wait for each other's memory.
    let mut summed: Vec<(u128, V)> = Vec::with_capacity(order.chunk_by(equal).count());
    for places in order.chunk_by(equal) {
        let mut found = places.iter().filter_map(|(_, at)| rows.get(*at as usize));
        let Some((key, mut total)) = found.next().copied() else { continue };
        found.for_each(|(_, more)| total.add(more));
        summed.push((key, total));
    }
    // The old list keeps its room.
    rows.clear();
    rows.extend_from_slice(&summed);
}

/// Adds up rows of equal keys that follow one another.
pub(crate) fn sum_equal<K: PartialEq, V: Summed>(rows: &mut Vec<(K, V)>) {
    rows.dedup_by(|(key, sums), (into, total)| {
        let same = key == into;
        if same {
            total.add(sums);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Random;

    #[test]
    fn rows_are_in_order_and_added_up() {
        let mut random = Random(1);
        for (count, different) in [(0, 1), (1, 1), (2, 2), (5, 1), (1000, 30), (1000, 1 << 40), (3000, 900)] {
            let mut rows: Vec<(u128, Sums)> = Vec::new();
            for at in 0..count {
                let key = u128::from(random.next() % different) << 64 | u128::from(random.next() % 2);
                rows.push((key, Sums { count: 1, weight: at, latency_sum: 0, latency_max: at as u32 }));
            }
            let mut expected = std::collections::BTreeMap::<u128, Sums>::new();
            for (key, sums) in &rows {
                expected.entry(*key).or_default().add(sums);
            }
            let expected: Vec<_> = expected.into_iter().collect();
            let (mut long, mut short) = (rows.clone(), rows);
            let ranks = Ranks::of(short.iter().map(|(key, _)| (key >> 64) as u64));
            sum_up(&mut long, 65, |_, _| 0);
            sum_up(&mut short, ranks.bits() + 1, |at, key| {
                joined([(ranks.rank(at), 63), (key as u64 & 1, 1)])
            });
            assert_eq!(long, expected, "{count} rows");
            assert_eq!(short, expected, "{count} rows");
        }
    }

    #[test]
    fn bits_hold_what_is_below() {
        for (count, bits) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 19, 19)] {
            assert_eq!(bits_below(count), bits, "{count}");
        }
        assert_eq!(joined([(5, 61), (3, 2), (1, 1)]), 5 << 3 | 3 << 1 | 1);
    }
}
