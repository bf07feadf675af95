//! Some columns of a row group in batches of rows, as numbers and texts.

use super::flat::{ColumnType, FlatColumn};
use super::read_columns::{GroupReader, OpenColumn, utf8};
use super::read_error::Stop;

/// The values of a column for the rows of a batch.
pub struct FlatValues {
    open: OpenColumn,
    /// The texts of the row group so far.
    texts: Vec<String>,
}

impl FlatValues {
    /// Returns the number of a row: of a flag 0 or 1, of a text its place in [`Self::texts`];
    /// `None` if it is null.
    #[inline]
    pub fn number(&self, row: usize) -> Option<u64> {
        self.open.get(row)
    }

    /// Returns the text of a row; `None` if it is null, or a number.
    pub fn text(&self, row: usize) -> Option<&str> {
        self.texts.get(usize::try_from(self.number(row)?).ok()?).map(String::as_str)
    }

    /// Returns the texts of this batch and of those of the row group before it, by their places.
    /// Those of a row group that follows have other places.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// Calls `each` with a number of rows and the values of these columns, in their order, until all
/// rows of a row group were read, at most `most` at a time. Returns the number of rows.
pub(super) fn batches(
    group: &GroupReader<'_>,
    columns: &[FlatColumn],
    most: usize,
    mut each: impl FnMut(usize, &[&FlatValues]) -> Result<(), String>,
) -> Result<u64, Stop> {
    let (mut values, mut places): (Vec<FlatValues>, Vec<usize>) = (Vec::new(), Vec::new());
    for column in columns {
        // A column is read once, even if it is asked for twice.
        let known = values.iter().position(|of| of.open.name() == column.name);
        places.push(known.unwrap_or(values.len()));
        if known.is_none() {
            values.push(FlatValues { open: group.open(*column)?, texts: Vec::new() });
        }
    }
    let mut left = group.rows();
    while left > 0 {
        let rows = left.min(most.max(1));
        left -= rows;
        for FlatValues { open, texts } in &mut values {
            open.read(rows)?;
            if open.kind() == ColumnType::Text {
                let name = open.name();
                open.texts(texts, |text| utf8(name, text).map(str::to_owned))?;
            }
        }
        let asked: Vec<&FlatValues> = places.iter().filter_map(|place| values.get(*place)).collect();
        each(rows, &asked)?;
    }
    Ok(group.rows() as u64)
}
