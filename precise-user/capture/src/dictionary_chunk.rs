//! Writes a column of a row group as a dictionary and the places of its rows in it, or as its
//! values if that is smaller.
//!
//! The parquet crate looks up each value in its dictionary by hash and by content, compares it with
//! the smallest and the largest so far, and encodes one number at a time. The tables of a fleet are
//! sorted, and most of their columns are runs of a few values, which is known here.

use std::collections::HashMap;
use std::io::Write;
use std::iter::repeat_n;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use parquet::basic::{
    Compression, Encoding, EncodingMask, LogicalType, PageType, Type as Physical, ZstdLevel,
};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use super::hybrid::{bits_below, put_hybrid};

/// The level of zstd.
pub(super) const LEVEL: i32 = 3;
/// The rows of a page.
const PAGE_ROWS: usize = 20_000;
/// The most values of a dictionary of numbers: it has at most 1 MiB.
const MOST_NUMBERS: usize = 128 << 10;
/// Numbers below this are looked up by themselves, and not by a hash.
const SMALL: u64 = 1 << 16;

/// The places of the rows of a column in its dictionary.
#[derive(Default)]
pub(super) struct DictionaryRows {
    /// Of each row that is not null.
    pub places: Vec<u32>,
    /// 1 for each row that has a value, 0 for one that is null; empty if no row is null.
    pub levels: Vec<u32>,
}

impl DictionaryRows {
    /// Notes the place of `length` rows, or null; `rows` is the number of rows before.
    fn push(&mut self, rows: usize, place: Option<u32>, length: usize) {
        match place {
            Some(place) => {
                self.places.resize(self.places.len() + length, place);
                if !self.levels.is_empty() {
                    self.levels.resize(self.levels.len() + length, 1);
                }
            }
            None => {
                if self.levels.is_empty() {
                    self.levels.resize(rows, 1);
                }
                self.levels.resize(self.levels.len() + length, 0);
            }
        }
    }

    /// Makes the places of rows from values and how often each follows in a row; `of` returns the
    /// place of a value, or `None` if there are too many.
    pub fn of<T>(
        runs: impl Iterator<Item = (Option<T>, usize)>,
        mut of: impl FnMut(T) -> Option<u32>,
    ) -> Option<Self> {
        let mut all = Self { places: Vec::with_capacity(runs.size_hint().0), ..Self::default() };
        let mut rows = 0;
        for (value, length) in runs {
            let place = match value {
                Some(value) => Some(of(value)?),
                None => None,
            };
            all.push(rows, place, length);
            rows += length;
        }
        Some(all)
    }

    /// Returns the number of rows that are null.
    pub fn nulls(&self) -> usize {
        self.levels.len().saturating_sub(self.places.len())
    }

    fn rows(&self) -> usize {
        self.places.len().max(self.levels.len())
    }
}

/// The distinct numbers of a column, in the order in which they are met.
#[derive(Default)]
struct DistinctNumbers {
    all: Vec<u64>,
    /// The places of small numbers.
    small: Vec<u32>,
    /// With a seed: who wrote the captures chose the numbers.
    large: HashMap<u64, u32, RandomState>,
    last: Option<(u64, u32)>,
    /// The most numbers.
    most: usize,
}

/// Returns how many different numbers a column of this many rows may have for a dictionary of it to
/// be smaller than its values, of which `largest` is the largest. What it costs are its numbers,
/// and for each row the place of its number. Bytes of a number that are 0 cost nearly nothing: zstd
/// takes them out.
fn most_distinct(rows: usize, largest: u64) -> usize {
    let bits = (u64::BITS - largest.leading_zeros()).next_multiple_of(8).max(8);
    let most = |places: u32| {
        let smaller = rows - rows.saturating_mul(places as usize) / bits as usize;
        smaller.min(1 << places)
    };
    // A place of N bits names one of 2^N numbers, and a dictionary has at most 2^17.
    (0..bits.min(MOST_NUMBERS.ilog2() + 1)).map(most).max().unwrap_or(0)
}

impl DistinctNumbers {
    /// Returns the place of a number; `None` if there are too many.
    fn place(&mut self, number: u64) -> Option<u32> {
        if let Some((last, place)) = self.last
            && last == number
        {
            return Some(place);
        }
        let next = self.all.len() as u32;
        let place = match usize::try_from(number).ok().filter(|_| number < SMALL) {
            Some(at) => {
                if self.small.is_empty() {
                    self.small.resize(SMALL as usize, u32::MAX);
                }
                let slot = self.small.get_mut(at)?;
                if *slot == u32::MAX {
                    *slot = next;
                }
                *slot
            }
            None => *self.large.entry(number).or_insert(next),
        };
        if place == next {
            self.all.push(number);
        }
        self.last = Some((number, place));
        (self.all.len() <= self.most).then_some(place)
    }
}

/// Writes the next column of a row group, of numbers and how often each follows in a row, with a
/// `dictionary` if that is smaller. Returns whether it did: not if there are no numbers.
pub(super) fn write_numbers<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    compressor: &mut Compressor<'_>,
    runs: impl Iterator<Item = (Option<u64>, usize)> + Clone,
    dictionary: bool,
) -> Result<bool> {
    let physical = column.physical_type();
    let width = match physical {
        Physical::INT32 => size_of::<u32>(),
        Physical::INT64 => size_of::<u64>(),
        _ => return Err(ParquetError::General(format!("{} is no column of numbers", column.name()))),
    };
    let plain = |numbers: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        match physical {
            Physical::INT32 => numbers.flat_map(|number| (number as u32).to_le_bytes()).collect(),
            _ => numbers.flat_map(u64::to_le_bytes).collect(),
        }
    };
    let numbers = runs.clone().filter_map(|(number, _)| number);
    let Some((min, max)) = ends(numbers, column) else { return Ok(false) };
    // A negative number has as many bytes as the largest one without a sign.
    let most = most_distinct(runs.clone().map(|(_, length)| length).sum(), min.max(max));
    let mut distinct = DistinctNumbers { most, ..DistinctNumbers::default() };
    let rows = DictionaryRows::of(runs.clone(), |number| distinct.place(number).filter(|_| dictionary));
    let (values, rows) = match rows {
        Some(rows) => {
            let bytes = plain(&mut distinct.all.iter().copied());
            let page = Page::DictionaryPage {
                buf: compressor.compress(&bytes)?.into(),
                num_values: distinct.all.len() as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let values = ChunkValues::Places(CompressedPage::new(page, bytes.len()));
            (values, rows)
        }
        None => {
            let all = runs.clone().flat_map(|(number, length)| repeat_n(number, length));
            let bytes = plain(&mut all.flatten());
            let rows = DictionaryRows::of(runs, |_| Some(0)).unwrap_or_default();
            (ChunkValues::Plain { bytes, width }, rows)
        }
    };
    let nulls = Some(rows.nulls() as u64);
    let statistics = match physical {
        Physical::INT32 => {
            // None of these columns has a sign.
            let (min, max) = (min as u32 as i32, max as u32 as i32);
            Statistics::Int32(ValueStatistics::new(Some(min), Some(max), None, nulls, false))
        }
        _ => {
            let (min, max) = (min.cast_signed(), max.cast_signed());
            Statistics::Int64(ValueStatistics::new(Some(min), Some(max), None, nulls, false))
        }
    };
    let chunk = OwnChunk { values, rows, statistics: Some(statistics) };
    write_chunk(group, column, compressor, chunk)?;
    Ok(true)
}

/// Returns the smallest and the largest number of a column; `None` if there are none.
fn ends(numbers: impl Iterator<Item = u64>, column: &ColumnDescPtr) -> Option<(u64, u64)> {
    let unsigned = matches!(column.logical_type_ref(), Some(LogicalType::Integer(of)) if !of.is_signed);
    // The order of numbers with a sign is that of others, once the sign is flipped.
    let flip = if unsigned || column.physical_type() == Physical::INT32 { 0 } else { 1 << 63 };
    let keys = numbers.map(|number| (number ^ flip, number ^ flip));
    let (min, max) = keys.reduce(|(min, max), (number, _)| (min.min(number), max.max(number)))?;
    Some((min ^ flip, max ^ flip))
}

/// A column chunk that is to be written.
pub(super) struct OwnChunk {
    pub values: ChunkValues,
    pub rows: DictionaryRows,
    pub statistics: Option<Statistics>,
}

/// The values of a column chunk.
pub(super) enum ChunkValues {
    /// A dictionary, in which rows have places.
    Places(CompressedPage),
    /// All values that are not null, each of this many bytes.
    Plain { bytes: Vec<u8>, width: usize },
}

/// Writes the next column of a row group.
pub(super) fn write_chunk<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    compressor: &mut Compressor<'_>,
    chunk: OwnChunk,
) -> Result<()> {
    let OwnChunk { values, rows, statistics } = chunk;
    let nullable = column.max_def_level() > 0;
    if !nullable && rows.nulls() > 0 {
        return Err(ParquetError::General(format!("{} has a null", column.name())));
    }
    let mut bytes = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut bytes);
    let (mut written, mut bits, mut plain) = (Vec::new(), 0, None);
    match values {
        ChunkValues::Places(dictionary) => {
            bits = bits_below(dictionary.num_values() as usize);
            written.push(pages.write_page(dictionary)?);
        }
        ChunkValues::Plain { bytes, width } => plain = Some((bytes, width)),
    }
    let dictionaries = written.len();
    let encoding = if dictionaries > 0 { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN };
    let (mut value, mut body) = (0, Vec::new());
    for start in (0..rows.rows()).step_by(PAGE_ROWS) {
        let count = PAGE_ROWS.min(rows.rows() - start);
        body.clear();
        let levels = rows.levels.get(start..start + count);
        let present = levels.map_or(count, |levels| levels.iter().filter(|level| **level == 1).count());
        if nullable {
            body.extend_from_slice(&[0; 4]);
            match levels {
                Some(levels) => put_hybrid(&mut body, 1, levels),
                None => put_hybrid(&mut body, 1, &vec![1; count]),
            }
            let length = (body.len() - 4) as u32;
            if let Some(prefix) = body.first_chunk_mut() {
                *prefix = length.to_le_bytes();
            }
        }
        let now = value..value + present;
        value = now.end;
        match &plain {
            None => {
                body.push(bits);
                put_hybrid(&mut body, bits, rows.places.get(now).unwrap_or_default());
            }
            Some((bytes, width)) => {
                let bytes = bytes.get(now.start * width..now.end * width);
                body.extend_from_slice(bytes.unwrap_or_default());
            }
        }
        let page = Page::DataPage {
            buf: compressor.compress(&body)?.into(),
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        written.push(pages.write_page(CompressedPage::new(page, body.len()))?);
    }
    pages.close()?;
    let sum = |of: fn(&PageWriteSpec) -> usize| written.iter().map(of).sum::<usize>();
    // A dictionary is the first page.
    let offset = |page: usize| written.get(page).map_or(0, |page| page.offset) as i64;
    let stats =
        |page_type, encoding, count: usize| PageEncodingStats { page_type, encoding, count: count as i32 };
    let of_pages = [
        stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, dictionaries),
        stats(PageType::DATA_PAGE, encoding, written.len() - dictionaries),
    ];
    let mut builder = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_encodings_mask(EncodingMask::new_from_encodings(
            [Encoding::PLAIN, Encoding::RLE, encoding].iter(),
        ))
        .set_total_compressed_size(sum(|page| page.compressed_size) as i64)
        .set_total_uncompressed_size(sum(|page| page.uncompressed_size) as i64)
        .set_num_values(rows.rows() as i64)
        .set_dictionary_page_offset((dictionaries > 0).then(|| offset(0)))
        .set_data_page_offset(offset(dictionaries))
        .set_page_encoding_stats(of_pages.into_iter().filter(|of| of.count > 0).collect());
    if let Some(statistics) = statistics {
        builder = builder.set_statistics(statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: bytes.bytes_written() as u64,
        rows_written: rows.rows() as u64,
        metadata: builder.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&Bytes::from(bytes.into_inner()?), close)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_different_numbers_have_no_dictionary() {
        for (rows, largest, most) in [
            (0, u64::MAX, 0),
            (1, u64::MAX, 1),
            (2, u64::MAX, 2),
            (10_000, u64::MAX, 7969),
            (100_000, u64::from(u32::MAX), 50_000),
            // Numbers of 3 bytes, and of 1: small numbers need few places to be worth it.
            (48_000, 70_000, 18_000),
            (48_000, 200, 128),
            (48_000, 0, 128),
            (1 << 20, u64::MAX, 1 << 17),
        ] {
            assert_eq!(most_distinct(rows, largest), most, "{rows} rows up to {largest}");
            let mut distinct = DistinctNumbers { most, ..DistinctNumbers::default() };
            let all = (0..rows as u64).map(|number| (Some(number), 1));
            assert_eq!(DictionaryRows::of(all, |number| distinct.place(number)).is_some(), rows <= most);
        }
    }
}
