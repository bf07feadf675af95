//! Finds rows of a row group that are equal in all columns that are read.

use hashbrown::HashTable;
use precise_model::Row;

use super::file::ROW_GROUP_ROWS;
use super::read_columns::OpenColumn;

/// The different rows of a row group, each with how often it comes.
///
/// A capture of many rows has few different ones once their addresses are left out. To compare
/// their columns is cheaper than to make rows of them.
#[derive(Default)]
pub(super) struct Repeats {
    /// The rows by their hash: the place in the lists below.
    places: HashTable<(u64, u32)>,
    /// The values of these rows by column.
    values: Vec<Vec<Option<u64>>>,
    rows: Vec<(Row, u64)>,
    /// Of each of the last rows: its hash, the place of the row that it may be equal to, and
    /// whether it is not.
    hashes: Vec<u64>,
    found: Vec<u32>,
    differs: Vec<bool>,
}

impl Repeats {
    /// Finds the last rows of these columns, which are the same columns each time. Returns those
    /// that are new, for [`Self::insert`], and then those that are no repeats, although their hash
    /// is known.
    pub fn find(&mut self, columns: &[&OpenColumn], rows: usize) -> [Vec<usize>; 2] {
        let Self { places, values, hashes, found, differs, .. } = self;
        values.resize(columns.len(), Vec::new());
        hashes.clear();
        hashes.resize(rows, 0);
        columns.iter().for_each(|column| column.mix(hashes));
        found.clear();
        let mut new = Vec::new();
        let mut next = self.rows.len() as u32;
        for (i, hash) in hashes.iter().enumerate() {
            // The low bits of a product depend on the low bits of its factors only.
            let hash = hash ^ (hash >> 32);
            let place = match places.find(hash, |(known, _)| *known == hash) {
                Some((_, place)) => *place,
                None => {
                    places.insert_unique(hash, (hash, next), |(known, _)| *known);
                    columns.iter().zip(&mut *values).for_each(|(column, of)| of.push(column.get(i)));
                    new.push(i);
                    next += 1;
                    next - 1
                }
            };
            found.push(place);
        }
        differs.clear();
        differs.resize(rows, false);
        for (column, of) in columns.iter().zip(&*values) {
            column.compare(of, found, differs);
        }
        let alone = differs.iter().enumerate().filter(|(_, differs)| **differs);
        [new, alone.map(|(i, _)| i).collect()]
    }

    /// Adds the new rows of the last call of [`Self::find`], in their order, and counts the
    /// repeats.
    pub fn insert(&mut self, new: impl IntoIterator<Item = Row>) {
        self.rows.extend(new.into_iter().map(|row| (row, 0)));
        for (place, differs) in self.found.iter().zip(&self.differs) {
            if let (false, Some((_, times))) = (*differs, self.rows.get_mut(*place as usize)) {
                *times += 1;
            }
        }
    }

    /// Returns whether the rows must be taken, because they are many.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= ROW_GROUP_ROWS
    }

    /// Takes the rows, each with how often it came, in the order of their first ones.
    pub fn take(&mut self) -> Vec<(Row, u64)> {
        self.places.clear();
        self.values.clear();
        std::mem::take(&mut self.rows)
    }
}
