//! The values of a column that wait until their row group is complete.

use super::batch::ColumnValues;
use super::file::Column;
use super::flat::ColumnType;
use super::varint::{put, take};
use super::waiting_texts::{TextTable, WaitingTexts};

/// The values of one column in few bytes: runs of equal values. Each run has its length, and the
/// distance of its value from the one before it. So a column with one value takes nothing for each
/// row, and a column of numbers that are near each other takes two bytes.
#[derive(Default)]
pub(super) struct Waiting {
    /// The runs before the current one.
    runs: Vec<u8>,
    /// The current run: its value and its length.
    run: Option<(Option<u64>, u64)>,
    /// The last value in `runs` that is not null.
    last: u64,
    texts: WaitingTexts,
}

impl Waiting {
    /// Adds the values of `rows` rows. The error says why they cannot be those of the column.
    pub fn add(&mut self, column: Column, rows: usize, values: &ColumnValues) -> Result<(), String> {
        let added = match (column.kind(), values) {
            (ColumnType::Bool, ColumnValues::Flags(flags)) => {
                self.push(flags.iter().map(|flag| flag.map(u64::from)))
            }
            (ColumnType::U8 | ColumnType::U16 | ColumnType::U32, ColumnValues::Small(numbers)) => {
                self.push(numbers.iter().map(|number| number.map(u64::from)))
            }
            (ColumnType::U64 | ColumnType::I64, ColumnValues::Large(numbers)) => {
                self.push(numbers.iter().copied())
            }
            (ColumnType::Time, ColumnValues::Times(times)) => {
                self.push(times.iter().map(|time| time.map(i64::cast_unsigned)))
            }
            (ColumnType::Text, ColumnValues::Texts(texts)) => {
                let indexes = self.texts.add(texts, column.dictionary());
                self.push(indexes.into_iter())
            }
            (_, values) => return Err(format!("values of another type than their column's: {values:?}")),
        };
        let values = if column.nullable() { added.rows } else { added.present };
        if values != rows || added.rows != rows {
            return Err(format!("the column {} has {values} values for {rows} rows", column.name()));
        }
        Ok(())
    }

    fn push(&mut self, values: impl Iterator<Item = Option<u64>>) -> Added {
        let mut added = Added::default();
        for value in values {
            added.rows += 1;
            added.present += usize::from(value.is_some());
            match &mut self.run {
                Some((same, length)) if *same == value => *length += 1,
                run => {
                    let ended = run.replace((value, 1));
                    self.end(ended);
                }
            }
        }
        added
    }

    /// Appends a run that has ended.
    fn end(&mut self, ended: Option<(Option<u64>, u64)>) {
        let Some((value, length)) = ended else { return };
        put(&mut self.runs, length << 1 | u64::from(value.is_some()));
        if let Some(value) = value {
            let distance = value.wrapping_sub(self.last).cast_signed();
            put(&mut self.runs, (distance << 1 ^ distance >> 63).cast_unsigned());
            self.last = value;
        }
    }

    /// Returns the values, and how often each follows in a row.
    pub fn runs(&self) -> impl Iterator<Item = (Option<u64>, usize)> + Clone {
        let (mut rest, mut last) = (&self.runs[..], 0_u64);
        let ended = std::iter::from_fn(move || {
            let head = take(&mut rest)?;
            if head & 1 == 0 {
                return Some((None, head >> 1));
            }
            let folded = take(&mut rest)?;
            let distance = folded >> 1 ^ (folded & 1).wrapping_neg();
            last = last.wrapping_add(distance);
            Some((Some(last), head >> 1))
        });
        ended.chain(self.run).map(|(value, length)| (value, length as usize))
    }

    /// Takes the texts, by index. Give them to [`Self::clear`] afterwards.
    pub fn take_texts(&mut self) -> TextTable {
        self.texts.take()
    }

    /// Forgets the values, and keeps the memory that they took.
    pub fn clear(&mut self, texts: TextTable) {
        self.runs.clear();
        (self.run, self.last) = (None, 0);
        self.texts.clear(texts);
    }

    /// Returns about how many bytes of memory the column has, with what it keeps.
    pub fn kept(&self) -> usize {
        self.runs.capacity() + self.texts.kept()
    }

    /// Returns the bytes that the column takes in the file before compression, without those of a
    /// dictionary that is not full and of what refers to it.
    pub fn bytes(&self) -> usize {
        self.texts.beyond()
    }
}

/// What was added to a column: the number of values, with and without nulls.
#[derive(Default)]
struct Added {
    rows: usize,
    present: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Waiting;
    use crate::batch::{ColumnValues, DistinctTexts};
    use crate::file::Column;

    proptest! {
        #[test]
        fn values_come_back_as_they_were(
            batches in prop::collection::vec(
                prop::collection::vec(prop_oneof![Just(None), Just(Some(7)), any::<Option<u64>>()], 0..30),
                0..10,
            ),
        ) {
            let mut waiting = Waiting::default();
            for batch in &batches {
                waiting.add(Column::Address, batch.len(), &ColumnValues::Large(batch.clone())).unwrap();
            }
            let back: Vec<_> =
                waiting.runs().flat_map(|(value, length)| std::iter::repeat_n(value, length)).collect();
            prop_assert_eq!(back, batches.concat());
        }
    }

    #[test]
    fn a_text_is_kept_once_and_counted_when_no_dictionary_has_it() {
        let mut waiting = Waiting::default();
        let long = "x".repeat(Column::Process.dictionary());
        let short = DistinctTexts { keys: vec![Some(0), None, Some(0)], distinct: vec!["a".to_owned()] };
        waiting.add(Column::Process, 3, &ColumnValues::Texts(short.clone())).unwrap();
        assert_eq!(waiting.bytes(), 0);
        let texts = DistinctTexts { keys: vec![Some(0)], distinct: vec![long.clone()] };
        waiting.add(Column::Process, 1, &ColumnValues::Texts(texts)).unwrap();
        waiting.add(Column::Process, 3, &ColumnValues::Texts(short)).unwrap();
        assert_eq!(waiting.bytes(), (4 + 1) + (4 + long.len()) + 2 * (4 + 1));
        let table = waiting.take_texts();
        let texts: Vec<_> = waiting
            .runs()
            .map(|(value, length)| (value.map(|index| table.text(index).len()), length))
            .collect();
        let expected = [(Some(1), 1), (None, 1), (Some(1), 1), (Some(long.len()), 1), (Some(1), 1)];
        assert_eq!(texts, [&expected[..], &[(None, 1), (Some(1), 1)]].concat());
    }

    #[test]
    fn what_is_not_of_the_column_is_refused() {
        let mut waiting = Waiting::default();
        let error = waiting.add(Column::Count, 2, &ColumnValues::Large(vec![Some(1), None])).unwrap_err();
        assert!(error.contains("count has 1 values for 2 rows"), "{error}");
        let error = waiting.add(Column::Count, 1, &ColumnValues::Small(vec![Some(1)])).unwrap_err();
        assert!(error.contains("another type"), "{error}");
    }
}
