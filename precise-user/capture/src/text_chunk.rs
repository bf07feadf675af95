//! Writes a column of texts that are known by number.
//!
//! The parquet crate looks up the text of each row in its dictionary, by hash and by content, and
//! compares it with the smallest and the largest so far. The rows of a table have few different
//! texts, and know them by number. So each text is encoded once, which gives the dictionary and the
//! statistics; the rows are encoded as a column of numbers, whose dictionary is then replaced. The
//! reader does the same the other way round (`text_pages`).

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::PageType;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;

use super::batch::DistinctTexts;
use super::text_pages::as_numbers;

/// The most texts of a dictionary, and the most bytes: the crate's columns have no longer ones.
const MOST_TEXTS: usize = 128 << 10;
const MOST_BYTES: usize = 900 << 10;

/// Writes the next column of a row group. Returns whether it did: if there are too many texts, or
/// too long ones, they need no dictionary.
pub(super) fn write_texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    texts: &DistinctTexts,
) -> Result<bool> {
    let Some(rows) = NumberedRows::of(texts) else { return Ok(false) };
    let nullable = column.max_def_level() > 0;
    if !nullable && rows.levels.contains(&0) {
        return Err(ParquetError::General(format!("{} has a null", column.name())));
    }
    let found = Arc::new(Mutex::new(None));
    let taking = Box::new(DictionaryTaker(Arc::clone(&found)));
    let ColumnWriter::ByteArrayColumnWriter(mut writer) =
        get_column_writer(Arc::clone(column), Arc::clone(properties), taking)
    else {
        return Err(other_type(column));
    };
    let levels = vec![1; rows.texts.len()];
    writer.write_batch(&rows.texts, nullable.then_some(&levels[..]), None)?;
    let of_texts = writer.close()?.metadata;
    let dictionary = found.lock().unwrap_or_else(PoisonError::into_inner).take();

    let mut bytes = TrackedWrite::new(Vec::new());
    let pages = DictionaryReplacer { to: SerializedPageWriter::new(&mut bytes), dictionary };
    let descriptor = Arc::new(as_numbers(column)?);
    let ColumnWriter::Int32ColumnWriter(mut writer) =
        get_column_writer(descriptor, Arc::clone(properties), Box::new(pages))
    else {
        return Err(other_type(column));
    };
    writer.write_batch(&rows.numbers, nullable.then_some(&rows.levels[..]), None)?;
    let of_rows = writer.close()?;

    let close = ColumnCloseResult {
        metadata: chunk(column, &of_rows.metadata, of_texts.statistics())?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
        ..of_rows
    };
    group.append_column(&Bytes::from(bytes.into_inner()?), close)?;
    Ok(true)
}

/// Returns the description of a chunk of texts: that of the rows, with the statistics of the texts.
fn chunk(
    column: &ColumnDescPtr,
    rows: &ColumnChunkMetaData,
    texts: Option<&Statistics>,
) -> Result<ColumnChunkMetaData> {
    let mut builder = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_compression_codec(rows.compression_codec())
        .set_encodings_mask(*rows.encodings_mask())
        .set_total_compressed_size(rows.compressed_size())
        .set_total_uncompressed_size(rows.uncompressed_size())
        .set_num_values(rows.num_values())
        .set_data_page_offset(rows.data_page_offset())
        .set_dictionary_page_offset(rows.dictionary_page_offset());
    if let Some(stats) = rows.page_encoding_stats() {
        builder = builder.set_page_encoding_stats(stats.clone());
    }
    if let Some(Statistics::ByteArray(of)) = texts {
        let nulls = rows.statistics().and_then(Statistics::null_count_opt);
        let (min, max) = (of.min_opt().cloned(), of.max_opt().cloned());
        let statistics = ValueStatistics::new(min, max, None, nulls, false)
            .with_min_is_exact(of.min_is_exact())
            .with_max_is_exact(of.max_is_exact());
        builder = builder.set_statistics(Statistics::ByteArray(statistics));
    }
    builder.build()
}

fn other_type(column: &ColumnDescPtr) -> ParquetError {
    ParquetError::General(format!("{} is no column of texts", column.name()))
}

/// The rows of a column as numbers of texts, in the order in which the texts are met.
struct NumberedRows {
    texts: Vec<ByteArray>,
    numbers: Vec<i32>,
    /// 0 is null.
    levels: Vec<i16>,
}

impl NumberedRows {
    /// Numbers the texts; `None` if there are too many, or too long ones.
    fn of(texts: &DistinctTexts) -> Option<Self> {
        let mut known: FxHashMap<&str, i32> = FxHashMap::default();
        let mut places: Vec<Option<i32>> = vec![None; texts.distinct.len()];
        let (mut found, mut bytes) = (Vec::new(), 0);
        let (mut numbers, mut levels) = (Vec::new(), Vec::with_capacity(texts.keys.len()));
        for key in &texts.keys {
            let text = key.and_then(|key| Some((key as usize, texts.distinct.get(key as usize)?)));
            levels.push(i16::from(text.is_some()));
            let Some((key, text)) = text else { continue };
            let number = match places.get(key).copied().flatten() {
                Some(number) => number,
                None => {
                    // Two numbers of the caller may have the same text.
                    let number = *known.entry(text).or_insert_with(|| {
                        bytes += 4 + text.len();
                        found.push(ByteArray::from(text.as_str()));
                        found.len() as i32 - 1
                    });
                    if found.len() > MOST_TEXTS || bytes > MOST_BYTES {
                        return None;
                    }
                    if let Some(place) = places.get_mut(key) {
                        *place = Some(number);
                    }
                    number
                }
            };
            numbers.push(number);
        }
        Some(Self { texts: found, numbers, levels })
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

/// Writes the pages of a column with another dictionary.
struct DictionaryReplacer<'a> {
    to: SerializedPageWriter<'a, Vec<u8>>,
    dictionary: Option<CompressedPage>,
}

impl PageWriter for DictionaryReplacer<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        if page.page_type() != PageType::DICTIONARY_PAGE {
            return self.to.write_page(page);
        }
        let missing = || ParquetError::General("a column of texts has two dictionaries".to_owned());
        self.to.write_page(self.dictionary.take().ok_or_else(missing)?)
    }

    fn close(&mut self) -> Result<()> {
        self.to.close()
    }
}
