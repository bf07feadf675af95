//! Interning: finding the index of an item in a table without duplicates.

use std::hash::{BuildHasher as _, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Finds the place of an item in a table that has each item once, such as
/// [`Capture::code`](crate::Capture::code). Each interner serves one table: pass the same table
/// each time.
///
/// The items are in the table only; an interner takes 10 to 21 bytes for each.
///
/// ```
/// let (mut interner, mut table) = (precise_model::Interner::default(), Vec::new());
/// assert_eq!(interner.intern(&mut table, "a"), 0);
/// assert_eq!(interner.intern(&mut table, "b"), 1);
/// assert_eq!(interner.intern(&mut table, "a"), 0);
/// assert_eq!(table, ["a", "b"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interner {
    places: HashTable<Place>,
}

/// Where an item is in its table, with half of its hash: a table of millions of items is in no
/// cache, and growing would read all of it.
#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    index: u32,
}

impl Place {
    /// Returns the hash for the index: its upper bits tell items apart, and its lower ones say
    /// where they are.
    fn hash(&self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

impl Interner {
    /// The most bytes that an item takes beside the table, also while the index grows.
    pub const BYTES: usize = 36;

    /// Returns the index of an item, which is added to the table if it is new.
    pub fn intern<T: Eq + Hash>(&mut self, table: &mut Vec<T>, item: T) -> u32 {
        let index = self.index(&item, table.len(), |index| table.get(index) == Some(&item));
        if index as usize != table.len() {
            return index;
        }
        // By an eighth, not twice as much as before: tables of addresses have millions of items.
        if table.len() == table.capacity() {
            table.reserve_exact((table.len() / 8).max(16));
        }
        table.push(item);
        index
    }

    /// Returns the index of an item in a table of `len` items, which may be in parts; `is_at` says
    /// whether it is at an index. If the item is new, this is `len`, and the item must be added.
    ///
    /// ```
    /// // Pairs, one after the other.
    /// let (mut interner, mut table) = (precise_model::Interner::default(), vec![1, 2, 3, 4]);
    /// let mut index = |pair: &[u8], table: &[u8]| {
    ///     interner.index(&pair, table.len() / 2, |index| &table[2 * index..][..2] == pair)
    /// };
    /// assert_eq!(index(&[5, 6], &table), 2);
    /// table.extend([5, 6]);
    /// assert_eq!(index(&[5, 6], &table), 2);
    /// assert_eq!(index(&[7, 8], &table), 3);
    /// ```
    pub fn index<T: Hash>(&mut self, item: &T, len: usize, mut is_at: impl FnMut(usize) -> bool) -> u32 {
        let hash = FxBuildHasher.hash_one(item);
        let new = Place { hash: (hash ^ hash >> 32) as u32, index: len as u32 };
        let same = |place: &Place| place.hash == new.hash && is_at(place.index as usize);
        if let Some(place) = self.places.find(new.hash(), same) {
            return place.index;
        }
        self.places.insert_unique(new.hash(), new, Place::hash);
        new.index
    }

    /// Forgets all indices, for a table that was emptied.
    pub fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Interner;

    #[test]
    fn each_of_many_items_has_one_place() {
        let (mut interner, mut table) = (Interner::default(), Vec::new());
        for round in 0..2 {
            for item in 0..10_000_u32 {
                assert_eq!(interner.intern(&mut table, item.to_string()), item, "{round}");
            }
        }
        assert_eq!(table.len(), 10_000);
        assert!(table.capacity() < 10_000 * 9 / 8 + 16, "{}", table.capacity());
        interner.clear();
        table.clear();
        assert_eq!(interner.intern(&mut table, "a".to_owned()), 0);
    }
}
