//! Interning: finding the index of an item in a table without duplicates.

use std::hash::{BuildHasher as _, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Finds the place of an item in a table that has each item once, such as
/// [`Capture::code`](crate::Capture::code). Each interner serves one table: pass the same table
/// each time.
///
/// The items are in the table only; an interner takes 5 to 12 bytes for each.
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
    /// The indices of the items, by the hash of the item.
    places: HashTable<u32>,
}

impl Interner {
    /// The most bytes that an item takes beside the table, also while the index grows.
    pub const BYTES: usize = 24;

    /// Returns the index of an item, which is added to the table if it is new.
    pub fn intern<T: Eq + Hash>(&mut self, table: &mut Vec<T>, item: T) -> u32 {
        let hash = |item: &T| FxBuildHasher.hash_one(item);
        let hashed = hash(&item);
        let same = |place: &u32| table.get(*place as usize) == Some(&item);
        if let Some(place) = self.places.find(hashed, same) {
            return *place;
        }
        let place = table.len() as u32;
        self.places.insert_unique(hashed, place, |place| table.get(*place as usize).map_or(0, hash));
        // By an eighth, not twice as much as before: tables of addresses have millions of items.
        if table.len() == table.capacity() {
            table.reserve_exact((table.len() / 8).max(16));
        }
        table.push(item);
        place
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
