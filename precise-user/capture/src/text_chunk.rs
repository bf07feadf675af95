//! Writes a column of texts that are known by number.
//!
//! The parquet crate looks up the text of each row in its dictionary, by hash and by content, and
//! compares it with the smallest and the largest so far. The rows of a table have few different
//! texts, and know them by number. So each text is encoded once, which gives the dictionary and the
//! statistics; the rows are places in it. The reader does the same the other way round
//! (`text_pages`).

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::PageType;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use super::batch::DistinctTexts;
use super::dictionary_chunk::{ChunkValues, DictionaryRows, OwnChunk, write_chunk};
use super::waiting_texts::{LENGTH, TextTable};

/// The most texts of a dictionary, and the most bytes: the crate's columns have no longer ones.
const MOST_TEXTS: usize = 128 << 10;
const MOST_BYTES: usize = 900 << 10;

/// A column of texts: each text once, and the places of the rows.
pub(super) struct NumberedTexts {
    distinct: Vec<ByteArray>,
    rows: DictionaryRows,
}

/// Writes the next column of a row group. Returns whether it did: not without numbered texts, and
/// not if the crate makes no dictionary of them.
pub(super) fn write_texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    compressor: &mut Compressor<'_>,
    texts: Option<NumberedTexts>,
) -> Result<bool> {
    let Some(NumberedTexts { distinct, rows }) = texts else { return Ok(false) };
    let found = Arc::new(Mutex::new(None));
    let taking = Box::new(DictionaryTaker(Arc::clone(&found)));
    let ColumnWriter::ByteArrayColumnWriter(mut writer) =
        get_column_writer(Arc::clone(column), Arc::clone(properties), taking)
    else {
        return Err(ParquetError::General(format!("{} is no column of texts", column.name())));
    };
    let levels = vec![1; distinct.len()];
    let nullable = column.max_def_level() > 0;
    writer.write_batch(&distinct, nullable.then_some(&levels[..]), None)?;
    let of_texts = writer.close()?.metadata;
    let dictionary = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(dictionary) = dictionary else { return Ok(false) };
    let statistics = match of_texts.statistics() {
        Some(Statistics::ByteArray(of)) => {
            let nulls = Some(rows.nulls() as u64);
            let (min, max) = (of.min_opt().cloned(), of.max_opt().cloned());
            let statistics = ValueStatistics::new(min, max, None, nulls, false)
                .with_min_is_exact(of.min_is_exact())
                .with_max_is_exact(of.max_is_exact());
            Some(Statistics::ByteArray(statistics))
        }
        _ => None,
    };
    let values = ChunkValues::Places(dictionary);
    write_chunk(group, column, compressor, OwnChunk { values, rows, statistics })?;
    Ok(true)
}

impl NumberedTexts {
    /// Returns the texts of a column in the order in which they are met; `None` if there are none,
    /// too many, or too long ones for a dictionary.
    pub fn of(texts: &DistinctTexts) -> Option<Self> {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut places: Vec<Option<u32>> = vec![None; texts.distinct.len()];
        let (mut found, mut bytes) = (Vec::new(), 0);
        let there = |key: &Option<u32>| (*key).filter(|key| (*key as usize) < texts.distinct.len());
        let rows = DictionaryRows::of(texts.keys.iter().map(|key| (there(key), 1)), |key| {
            let place = places.get_mut(key as usize)?;
            if let Some(place) = *place {
                return Some(place);
            }
            let text = texts.distinct.get(key as usize)?;
            // Two numbers of the caller may have the same text.
            let number = *known.entry(text).or_insert_with(|| {
                bytes += LENGTH + text.len();
                found.push(ByteArray::from(text.as_str()));
                found.len() as u32 - 1
            });
            *place = Some(number);
            (found.len() <= MOST_TEXTS && bytes <= MOST_BYTES).then_some(number)
        })?;
        (!found.is_empty()).then_some(Self { distinct: found, rows })
    }

    /// Returns the texts of a column whose values are runs of places in `texts`, in which each text
    /// is once; `None` if there are none, or too many for a dictionary of `most` bytes.
    pub fn of_runs(
        texts: &TextTable,
        runs: impl Iterator<Item = (Option<u64>, usize)>,
        most: usize,
    ) -> Option<Self> {
        // The crate ends a dictionary that reaches its limit.
        let fits = texts.bytes() + LENGTH * texts.len() < most - most / 8;
        if texts.len() == 0 || texts.len() > MOST_TEXTS || !fits {
            return None;
        }
        let there = |place| u32::try_from(place).ok().filter(|place| (*place as usize) < texts.len());
        let rows = DictionaryRows::of(runs, there)?;
        let distinct = (0..texts.len()).map(|place| ByteArray::from(texts.text(place as u64))).collect();
        Some(Self { distinct, rows })
    }
}

/// Takes the dictionary of a column, and nothing else.
struct DictionaryTaker(Arc<Mutex<Option<CompressedPage>>>);

impl PageWriter for DictionaryTaker {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let page_type = page.page_type();
        if page_type == PageType::DICTIONARY_PAGE {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(page);
        }
        Ok(PageWriteSpec { page_type, ..PageWriteSpec::default() })
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting_texts::WaitingTexts;

    #[test]
    fn texts_that_fill_a_dictionary_have_none() {
        let mut waiting = WaitingTexts::default();
        let distinct: Vec<_> = (0..8).map(|number| format!("{number:096}")).collect();
        waiting.add(&DistinctTexts { keys: Vec::new(), distinct }, usize::MAX);
        let table = waiting.take();
        let made = |runs: &[(Option<u64>, usize)], most| {
            NumberedTexts::of_runs(&table, runs.iter().copied(), most).map(|made| made.rows)
        };
        let runs = [(Some(7), 2), (None, 3), (Some(0), 1)];
        // 8 texts of 100 bytes, of which an eighth stays free.
        assert!(made(&runs, 914).is_none());
        let rows = made(&runs, 916).unwrap();
        assert_eq!(rows.places, [7, 7, 0]);
        assert_eq!(rows.levels, [1, 1, 0, 0, 0, 1]);
        assert!(made(&[(Some(8), 1)], 916).is_none(), "a text that is not there");
        let none = WaitingTexts::default().take();
        assert!(NumberedTexts::of_runs(&none, [(None, 3)].into_iter(), 916).is_none());
    }
}
