//! Rows of equal keys, added up.
//!
//! A packed key has 128 bits, and sorting rows by it compares two words and moves 32 or 48 bytes at
//! each step. In one list, the parts of keys have few values. So each row gets a number of 64 bits
//! that is in the order of the keys; these are sorted, and each row is then copied once.

use crate::keys::{KeyParts, Widths};

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
/// those once more while they are sorted, or the row in order.
pub(crate) const BESIDE: usize = size_of::<(u64, u32)>() + size_of::<(u128, Sums)>();

/// Returns how many bits numbers below `count` take.
pub(crate) fn bits_below(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// What is known of a part of the keys of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPart<'a> {
    /// How many bits its numbers take.
    pub bits: u32,
    /// What its numbers are replaced by: their places in the order of what they stand for. Empty if
    /// they stay.
    pub places: &'a [u32],
}

impl<'a> KeyPart<'a> {
    /// Returns a part with as many different numbers.
    pub fn of(count: usize, places: Option<&'a Vec<u32>>) -> Self {
        Self { bits: bits_below(count), places: places.map_or(&[], Vec::as_slice) }
    }

    /// Returns a part that says what it is itself, in this many bits.
    pub fn plain(bits: u32) -> Self {
        Self { bits, places: &[] }
    }
}

/// Replaces the numbers in the keys of rows, sorts the rows by their keys, and adds up those of
/// equal ones.
pub(crate) fn sum_up<const N: usize, K: KeyParts<N>, V: Summed>(
    rows: &mut Vec<(u128, V)>,
    parts: [KeyPart<'_>; N],
) {
    let replaced = |key: u128| {
        let mut numbers = K::WIDTHS.parts(key);
        for (number, part) in numbers.iter_mut().zip(&parts) {
            *number = part.places.get(*number as usize).copied().unwrap_or(*number);
        }
        numbers
    };
    let narrow = Widths(parts.map(|part| part.bits));
    if narrow.bits() > u64::BITS || u32::try_from(rows.len()).is_err() {
        rows.iter_mut().for_each(|(key, _)| *key = K::WIDTHS.pack(replaced(*key)));
        rows.sort_unstable_by_key(|(key, _)| *key);
        return sum_equal(rows);
    }
    let short = |((key, _), at): (&(u128, V), u32)| (narrow.pack(replaced(*key)), at);
    let mut order: Vec<(u64, u32)> = rows.iter().zip(0..).map(short).collect();
    sort(&mut order);
    let equal = |(a, _): &(u64, u32), (b, _): &(u64, u32)| a == b;
    // A new list, because rows that change places in the old one wait for each other's memory.
    let mut summed: Vec<(u128, V)> = Vec::with_capacity(order.chunk_by(equal).count());
    for places in order.chunk_by(equal) {
        let mut found = places.iter().filter_map(|(short, at)| Some((*short, rows.get(*at as usize)?.1)));
        let Some((short, mut total)) = found.next() else { continue };
        found.for_each(|(_, more)| total.add(&more));
        summed.push((K::WIDTHS.pack(narrow.parts(short)), total));
    }
    // The old list keeps its room.
    rows.clear();
    rows.extend_from_slice(&summed);
}

/// Sorts rows by their numbers. The rows of a day come from hours in which they are in order, and
/// are merged; those of an hour come in any order, which digits of 8 bits sort faster.
fn sort(order: &mut [(u64, u32)]) {
    /// The length of a run, on average, from which on merging is faster.
    const LONG: usize = 64;
    let ends = order.windows(2).filter(|pair| matches!(pair, [(a, _), (b, _)] if a > b)).count();
    if ends < order.len() / LONG {
        order.sort_by_key(|(short, _)| *short);
    } else {
        radsort::sort_by_key(order, |(short, _)| *short);
    }
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

    struct Pair;

    impl KeyParts<2> for Pair {
        const WIDTHS: Widths<2> = Widths([20, 30]);
    }

    #[test]
    fn rows_are_in_order_and_added_up() {
        let mut random = Random(1);
        let widths = Pair::WIDTHS;
        for (count, different) in [(0, 1), (1, 1), (2, 2), (5, 1), (1000, 30), (1000, 1 << 19), (3000, 900)] {
            let mut rows: Vec<(u128, Sums)> = Vec::new();
            for at in 0..count {
                let parts = [(random.next() % different) as u32, (random.next() % 2) as u32];
                rows.push((
                    widths.pack(parts),
                    Sums { count: 1, weight: at, latency_sum: 0, latency_max: at as u32 },
                ));
            }
            // The larger a number is, the sooner comes what it stands for.
            let places: Vec<u32> = (0..different as u32).rev().collect();
            let mut expected = std::collections::BTreeMap::<u128, Sums>::new();
            for (key, sums) in &rows {
                let [first, second] = widths.parts(*key);
                let key = widths.pack([places[first as usize], second]);
                expected.entry(key).or_default().add(sums);
            }
            let expected: Vec<_> = expected.into_iter().collect();
            let first = KeyPart::of(different as usize, Some(&places));
            // As in an hour, in any order; and as in a day, in the order of what numbers stand for.
            let mut sorted = rows.clone();
            sorted.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
            for rows in [rows, sorted] {
                for second in [KeyPart::plain(1), KeyPart::plain(65)] {
                    let mut summed = rows.clone();
                    sum_up::<2, Pair, _>(&mut summed, [first, second]);
                    assert_eq!(summed, expected, "{count} rows, {second:?}");
                }
            }
        }
    }

    #[test]
    fn bits_hold_what_is_below() {
        for (count, bits) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 19, 19)] {
            assert_eq!(bits_below(count), bits, "{count}");
        }
    }
}
