//! Writes a column of a row group as a dictionary and the places of its rows in it.
//!
//! The parquet crate looks up each value in its dictionary by hash and by content, compares it with
//! the smallest and the largest so far, and encodes one number at a time. The tables of a fleet are
//! sorted, and most of their columns are runs of a few values, which is known here.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
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
    /// Notes the place of a row, or null; `rows` is the number of rows before.
    fn push(&mut self, rows: usize, place: Option<u32>) {
        match place {
            Some(place) => {
                self.places.push(place);
                if !self.levels.is_empty() {
                    self.levels.push(1);
                }
            }
            None => {
                if self.levels.is_empty() {
                    self.levels.resize(rows, 1);
                }
                self.levels.push(0);
            }
        }
    }

    /// Makes the places of rows; `of` returns the place of a value, or `None` if there are too
    /// many.
    pub fn of<T>(
        values: impl Iterator<Item = Option<T>>,
        mut of: impl FnMut(T) -> Option<u32>,
    ) -> Option<Self> {
        let mut all = Self::default();
        for (rows, value) in values.enumerate() {
            let place = match value {
                Some(value) => Some(of(value)?),
                None => None,
            };
            all.push(rows, place);
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
    large: HashMap<u64, u32>,
    last: Option<(u64, u32)>,
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
        (self.all.len() <= MOST_NUMBERS).then_some(place)
    }
}

/// Writes the next column of a row group, of numbers. Returns whether it did: if there are no
/// numbers, or too many different ones, there is no dictionary.
pub(super) fn write_numbers<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    compressor: &mut Compressor<'_>,
    numbers: impl Iterator<Item = Option<u64>>,
) -> Result<bool> {
    let mut distinct = DistinctNumbers::default();
    let Some(rows) = DictionaryRows::of(numbers, |number| distinct.place(number)) else { return Ok(false) };
    let all = distinct.all;
    if all.is_empty() {
        return Ok(false);
    }
    let nulls = Some(rows.nulls() as u64);
    let (plain, statistics): (Vec<u8>, _) = match column.physical_type() {
        Physical::INT32 => {
            // None of these columns has a sign.
            let ends = all.iter().min().zip(all.iter().max());
            let ends = ends.map(|(min, max)| (*min as u32 as i32, *max as u32 as i32));
            let of = ValueStatistics::new(ends.map(|e| e.0), ends.map(|e| e.1), None, nulls, false);
            (all.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect(), Statistics::Int32(of))
        }
        Physical::INT64 => {
            let signed = !matches!(
                column.logical_type_ref(),
                Some(LogicalType::Integer(of)) if !of.is_signed
            );
            // The order of numbers with a sign is that of others, once the sign is flipped.
            let flip = if signed { 1 << 63 } else { 0 };
            let key = |number: &&u64| **number ^ flip;
            let ends = all.iter().min_by_key(key).zip(all.iter().max_by_key(key));
            let ends = ends.map(|(min, max)| (min.cast_signed(), max.cast_signed()));
            let of = ValueStatistics::new(ends.map(|e| e.0), ends.map(|e| e.1), None, nulls, false);
            (all.iter().flat_map(|number| number.to_le_bytes()).collect(), Statistics::Int64(of))
        }
        _ => return Err(ParquetError::General(format!("{} is no column of numbers", column.name()))),
    };
    let dictionary = Page::DictionaryPage {
        buf: compressor.compress(&plain)?.into(),
        num_values: all.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let dictionary = CompressedPage::new(dictionary, plain.len());
    write_chunk(
        group,
        column,
        compressor,
        DictionaryChunk { dictionary, rows, statistics: Some(statistics) },
    )?;
    Ok(true)
}

/// A column chunk that is to be written.
pub(super) struct DictionaryChunk {
    pub dictionary: CompressedPage,
    pub rows: DictionaryRows,
    pub statistics: Option<Statistics>,
}

/// Writes the next column of a row group.
pub(super) fn write_chunk<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    compressor: &mut Compressor<'_>,
    chunk: DictionaryChunk,
) -> Result<()> {
    let DictionaryChunk { dictionary, rows, statistics } = chunk;
    let nullable = column.max_def_level() > 0;
    if !nullable && rows.nulls() > 0 {
        return Err(ParquetError::General(format!("{} has a null", column.name())));
    }
    let bits = bits_below(dictionary.num_values() as usize);
    let mut bytes = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut bytes);
    let mut written = vec![pages.write_page(dictionary)?];
    let (mut places, mut body) = (&rows.places[..], Vec::new());
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
        let (now, later) = places.split_at(present.min(places.len()));
        places = later;
        body.push(bits);
        put_hybrid(&mut body, bits, now);
        let page = Page::DataPage {
            buf: compressor.compress(&body)?.into(),
            num_values: count as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        written.push(pages.write_page(CompressedPage::new(page, body.len()))?);
    }
    pages.close()?;
    let sum = |of: fn(&PageWriteSpec) -> usize| written.iter().map(of).sum::<usize>();
    // The dictionary is the first page.
    let offset = |page: usize| written.get(page).map_or(0, |page| page.offset) as i64;
    let stats = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
    let mut builder = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_encodings_mask(EncodingMask::new_from_encodings(
            [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY].iter(),
        ))
        .set_total_compressed_size(sum(|page| page.compressed_size) as i64)
        .set_total_uncompressed_size(sum(|page| page.uncompressed_size) as i64)
        .set_num_values(rows.rows() as i64)
        .set_dictionary_page_offset(Some(offset(0)))
        .set_data_page_offset(offset(1))
        .set_page_encoding_stats(vec![
            stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, written.len() as i32 - 1),
        ]);
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
