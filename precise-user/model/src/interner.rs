//! Interning: finding the index of an item in a table without duplicates.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Finds the place of an item in a table that has each item once, such as
/// [`Capture::code`](crate::Capture::code). Each interner serves one table: pass the same table
/// each time.
///
/// ```
/// let (mut interner, mut table) = (precise_model::Interner::default(), Vec::new());
/// assert_eq!(interner.intern(&mut table, "a"), 0);
/// assert_eq!(interner.intern(&mut table, "b"), 1);
/// assert_eq!(interner.intern(&mut table, "a"), 0);
/// assert_eq!(table, ["a", "b"]);
/// ```
#[derive(Clone, Debug)]
pub struct Interner<T>(FxHashMap<T, u32>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Returns the index of an item, which is added to the table if it is new.
    pub fn intern(&mut self, table: &mut Vec<T>, item: T) -> u32 {
        *self.0.entry(item).or_insert_with_key(|item| {
            table.push(item.clone());
            table.len() as u32 - 1
        })
    }

    /// Forgets all indices, for a table that was emptied.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
