//! Rows of a capture as columns: the intermediate form between the rows of the model and the pages
//! of the file.

use std::borrow::Cow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A batch of rows, stored by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of rows.
    pub rows: usize,
    /// The values of each of [`super::Column::ALL`], in that order.
    pub columns: Vec<ColumnValues>,
}

/// The values of one column, one per row. `None` is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnValues {
    /// The values of a column of [`super::ColumnType::Bool`].
    Flags(Vec<Option<bool>>),
    /// The values of a column of [`super::ColumnType::U8`], [`super::ColumnType::U16`] or
    /// [`super::ColumnType::U32`].
    Small(Vec<Option<u32>>),
    /// The values of a column of [`super::ColumnType::U64`] or [`super::ColumnType::I64`]; those of
    /// the latter are at most `i64::MAX`.
    Large(Vec<Option<u64>>),
    /// The values of a column of [`super::ColumnType::Text`].
    Texts(DistinctTexts),
    /// The values of a column of [`super::ColumnType::Time`], in microseconds since the Unix epoch.
    Times(Vec<Option<i64>>),
}

/// A column of text. Each distinct text is stored once, because the names of a capture repeat in
/// many rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinctTexts {
    /// The index of each row's text in `distinct`.
    pub keys: Vec<Option<u32>>,
    /// The distinct texts of all rows.
    pub distinct: Vec<String>,
}

impl DistinctTexts {
    /// Builds a column from the reference of each row. `text` is called once per distinct
    /// reference.
    pub(super) fn of<'a, K: Copy + Eq + Hash>(
        references: impl Iterator<Item = Option<K>>,
        mut text: impl FnMut(K) -> Cow<'a, str>,
    ) -> Self {
        let mut known = FxHashMap::default();
        let mut distinct = Vec::new();
        // Most rows have the reference of the row before.
        let mut last: Option<(K, u32)> = None;
        let mut key = |reference| {
            if let Some((_, key)) = last.filter(|(last, _)| *last == reference) {
                return key;
            }
            let key = *known.entry(reference).or_insert_with(|| {
                distinct.push(text(reference).into_owned());
                distinct.len() as u32 - 1
            });
            last = Some((reference, key));
            key
        };
        let keys = references.map(|reference| reference.map(&mut key)).collect();
        Self { keys, distinct }
    }

    /// Returns the text of a row; `None` if it is null.
    pub fn get(&self, row: usize) -> Option<&str> {
        let key = (*self.keys.get(row)?)?;
        self.distinct.get(key as usize).map(String::as_str)
    }
}
