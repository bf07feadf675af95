//! A map that forgets what nobody asked for lately.
//!
//! On a machine where processes and containers come and go, most keys are never asked for again. A
//! map that only has a maximum size grows to it, however long that takes. This one keeps what was
//! asked for since the last turn but one, so its size follows what is going on.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A map gives room back if it has room for this many times as many keys as were asked for lately,
/// or as these few.
const ROOMY: usize = 8;
const LEAST: usize = 256;

/// A map of which each [`turn`](Self::turn) discards what was not asked for since the turn before.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    /// What was added or asked for since the last turn.
    recent: FxHashMap<K, V>,
    /// The rest.
    older: FxHashMap<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { recent: FxHashMap::default(), older: FxHashMap::default() }
    }
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// Returns the value, and keeps it over the next turn.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        if let Some((key, value)) = self.older.remove_entry(key) {
            self.recent.insert(key, value);
        }
        self.recent.get(key)
    }

    /// Returns the value, which this call does not keep over the next turn.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.recent.get(key).or_else(|| self.older.get(key))
    }

    /// Adds a value, or replaces it.
    pub fn insert(&mut self, key: K, value: V) {
        self.older.remove(&key);
        self.recent.insert(key, value);
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &K) {
        self.recent.remove(key);
        self.older.remove(key);
    }

    /// Removes all keys whose value is not `wanted`.
    pub fn retain(&mut self, mut wanted: impl FnMut(&V) -> bool) {
        self.recent.retain(|_, value| wanted(value));
        self.older.retain(|_, value| wanted(value));
    }

    /// Discards what was not asked for since the last turn.
    pub fn turn(&mut self) {
        // Both keep their room: each turn would else take it anew, and leave holes in the heap.
        std::mem::swap(&mut self.older, &mut self.recent);
        self.recent.clear();
        if self.recent.capacity() > ROOMY * self.older.len().max(LEAST) {
            self.recent.shrink_to(2 * self.older.len().max(LEAST));
        }
    }

    /// Makes room: a turn, if at least `most` keys were added or asked for since the last one. So
    /// at most twice as many are kept. Returns whether there was a turn.
    pub fn bound(&mut self, most: usize) -> bool {
        let full = self.recent.len() >= most;
        if full {
            self.turn();
        }
        full
    }

    /// Returns the number of keys.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn what_nobody_asks_for_is_gone_at_the_second_turn() {
        let mut map = Recent::default();
        (0..4).for_each(|key| map.insert(key, key * 10));
        map.turn();
        assert_eq!(map.get(&1), Some(&10));
        assert_eq!((map.peek(&2), map.len()), (Some(&20), 4));
        map.insert(3, 31);
        map.turn();
        assert_eq!([0, 1, 2, 3].map(|key| map.peek(&key).copied()), [None, Some(10), None, Some(31)]);
        map.remove(&3);
        map.retain(|value| *value != 10);
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn the_size_is_bounded_by_turns() {
        let mut map = Recent::default();
        for key in 0..1000 {
            map.bound(10);
            map.insert(key, ());
            assert!(map.len() <= 20, "{key}");
        }
        assert!(map.peek(&990).is_some() && map.peek(&979).is_none());
    }
}
