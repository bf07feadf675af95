//! Sorting whose code is in the binary once.

use std::cmp::Ordering;

/// Stable sorting of lists that a person will read, which are short.
///
/// The sorts of the standard library are compiled for each type of item and each comparison, which
/// is 5 kB of code each time, and precise sorts in a hundred places. Here, only the comparison and
/// the exchange of two items are compiled for each of them. That takes about twice as long, so what
/// comes by the million (rows, cells, symbols, groups of any key) is for the standard library.
///
/// ```
/// use precise_model::CompactSort as _;
///
/// let mut nodes = ["node-10", "node-2", "node-7"];
/// nodes.compact_sort_by_key(|name| name.len());
/// assert_eq!(nodes, ["node-2", "node-7", "node-10"]);
/// ```
pub trait CompactSort<T> {
    /// Sorts by the natural order of the items, as [`slice::sort`] does.
    fn compact_sort(&mut self)
    where
        T: Ord;

    /// Sorts by a comparison, as [`slice::sort_by`] does.
    fn compact_sort_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key of each item, as [`slice::sort_by_key`] does. The key is made anew for each
    /// comparison.
    fn compact_sort_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> CompactSort<T> for [T] {
    fn compact_sort(&mut self)
    where
        T: Ord,
    {
        self.compact_sort_by(T::cmp);
    }

    fn compact_sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut goals = goals(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        exchange(&mut goals, &mut |a, b| self.swap(a, b));
    }

    fn compact_sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.compact_sort_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Returns where each item belongs, by its place now.
fn goals(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    let mut goals = vec![0; len];
    for (goal, place) in order.into_iter().enumerate() {
        goals[place] = goal;
    }
    goals
}

/// Brings each item to where it belongs. Each exchange brings at least one.
fn exchange(goals: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for place in 0..goals.len() {
        while goals[place] != place {
            let goal = goals[place];
            swap(place, goal);
            goals.swap(place, goal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for len in [0, 1, 2, 3, 7, 20, 21, 64, 1000] {
            for distinct in [1, 2, 10, 65_536] {
                let items: Vec<(u32, usize)> = (0..len).map(|at| (random() % distinct, at)).collect();
                let (mut expected, mut sorted) = (items.clone(), items.clone());
                expected.sort_by_key(|(key, _)| *key);
                sorted.compact_sort_by_key(|(key, _)| *key);
                assert_eq!(sorted, expected, "of {items:?}");
                expected.sort_by(|a, b| b.cmp(a));
                sorted.compact_sort_by(|a, b| b.cmp(a));
                assert_eq!(sorted, expected);
                expected.sort();
                sorted.compact_sort();
                assert_eq!(sorted, expected);
            }
        }
    }
}
