//! Decodes the pages that precise writes: version 1, compressed by zstd or not at all, with the
//! places of values in a dictionary or with the values. A column chunk begins with places, and goes
//! on with values once its dictionary is full.
//!
//! The parquet crate reads any page. For each it makes a decompressor, and it decodes a value at a
//! time; but captures and the tables of fleets have many small pages, and most of what is in them
//! are runs. Column chunks with other pages are left to the crate. The bytes are not trusted.

use bytes::Bytes;
use parquet::basic::{Compression, Type as Physical};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader as _;

use super::claims::{PageKind, PagePlace};
use super::page_zstd::PageZstd;
use super::ranged::Ranged;
use super::text_pages::ChunkTexts;
use super::varint;

/// How the values of a column are turned into numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnKind {
    pub physical: Physical,
    /// Whether numbers below 0 are refused.
    pub signed: bool,
    /// The largest number.
    pub most: u64,
}

/// The pages of a column chunk.
pub(super) struct OwnPages {
    file: Ranged,
    pages: std::vec::IntoIter<PagePlace>,
    /// `None` if pages are not compressed.
    zstd: Option<PageZstd>,
    kind: OwnKind,
    nullable: bool,
    /// The texts that were found, if these are texts.
    texts: ChunkTexts,
    /// The numbers of the dictionary; of texts, their places.
    dictionary: Vec<u64>,
    /// The page that is being read.
    body: Bytes,
    /// The values of it that are left, nulls too.
    left: usize,
    levels: Runs,
    values: PageValues,
    /// Numbers that wait for their rows.
    waiting: Vec<u64>,
}

/// Where the values of a page are.
enum PageValues {
    Places(Runs),
    /// The next value is here, in bytes; of flags, in bits.
    Plain(usize),
    /// The places of the texts that are left.
    Texts(std::vec::IntoIter<u32>),
}

impl OwnPages {
    /// Returns the pages of a chunk; `None` if they are not those that precise writes.
    pub fn of(
        (file, chunk): (&Ranged, &ColumnChunkMetaData),
        pages: Option<Vec<PagePlace>>,
        zstd: &PageZstd,
        (kind, nullable): (OwnKind, bool),
        texts: ChunkTexts,
    ) -> Option<Self> {
        let zstd = match chunk.compression() {
            Compression::ZSTD(_) => Some(zstd.clone()),
            Compression::UNCOMPRESSED => None,
            _ => return None,
        };
        let pages = pages?;
        let of = |kind: PageKind| pages.iter().filter(move |page| page.kind == kind).count();
        match kind.physical {
            Physical::BYTE_ARRAY | Physical::BOOLEAN | Physical::INT32 | Physical::INT64 => {}
            _ => return None,
        }
        let first = pages.first().is_some_and(|page| page.kind == PageKind::Dictionary);
        let missing = of(PageKind::Places) > 0 && !first;
        // A dictionary of flags is nothing that a writer makes.
        let dictionaries = of(PageKind::Dictionary);
        let flags = kind.physical == Physical::BOOLEAN && dictionaries > 0;
        if missing || flags || dictionaries > 1 || (dictionaries == 1 && !first) {
            return None;
        }
        Some(Self {
            file: file.clone(),
            pages: pages.into_iter(),
            zstd,
            kind,
            nullable,
            texts,
            dictionary: Vec::new(),
            body: Bytes::new(),
            left: 0,
            levels: Runs::default(),
            values: PageValues::Plain(0),
            waiting: Vec::new(),
        })
    }

    /// Reads the values of the next rows: of each its number, and 0 in `levels` if it is null.
    /// `levels` is empty if none is null.
    pub fn read(&mut self, rows: usize, values: &mut Vec<u64>, levels: &mut Vec<i16>) -> Result<(), String> {
        values.clear();
        levels.clear();
        while values.len() < rows {
            if self.left == 0 {
                match self.pages.next() {
                    Some(page) => self.open(page)?,
                    None => {
                        return Err(format!(
                            "it has {} of the {rows} values that are left of it",
                            values.len()
                        ));
                    }
                }
                continue;
            }
            let now = self.left.min(rows - values.len());
            self.left -= now;
            let before = values.len();
            let present = if self.nullable { self.read_levels(now, before, levels)? } else { now };
            if present == now {
                self.values(now, values)?;
                continue;
            }
            let mut waiting = std::mem::take(&mut self.waiting);
            waiting.clear();
            self.values(present, &mut waiting)?;
            let mut numbers = waiting.iter();
            values.extend(levels.iter().skip(before).map(|level| match level {
                0 => 0,
                _ => numbers.next().copied().unwrap_or(0),
            }));
            self.waiting = waiting;
        }
        Ok(())
    }

    /// Reads the next levels, before which there are `before` rows. Returns how many of them say
    /// that there is a value.
    fn read_levels(&mut self, count: usize, before: usize, levels: &mut Vec<i16>) -> Result<usize, String> {
        let (mut present, mut end) = (0, before);
        self.levels.take(&self.body, count, |level, times| {
            match level {
                0 => {
                    // The rows before the first null have values.
                    levels.resize(end, 1);
                    levels.resize(end + times, 0);
                }
                1 => {
                    present += times;
                    if !levels.is_empty() {
                        levels.resize(end + times, 1);
                    }
                }
                _ => return Err("a level is neither 0 nor 1"),
            }
            end += times;
            Ok(())
        })?;
        Ok(present)
    }

    /// Adds the numbers of the next values.
    fn values(&mut self, count: usize, numbers: &mut Vec<u64>) -> Result<(), String> {
        let Self { body, dictionary, values, kind, .. } = self;
        match values {
            PageValues::Places(runs) => runs.take(body, count, |place, times| {
                let number = dictionary.get(place as usize);
                let number = number.ok_or("a value is not in the dictionary")?;
                if times == 1 {
                    numbers.push(*number);
                } else {
                    numbers.resize(numbers.len() + times, *number);
                }
                Ok(())
            }),
            PageValues::Plain(at) => plain(body, at, count, *kind, numbers),
            PageValues::Texts(places) => {
                let before = numbers.len();
                numbers.extend(places.by_ref().take(count).map(u64::from));
                if numbers.len() - before == count { Ok(()) } else { Err("a page is cut off".to_owned()) }
            }
        }
    }

    /// Opens the next page.
    fn open(&mut self, page: PagePlace) -> Result<(), String> {
        let bytes = self.file.get_bytes(page.at, page.compressed).map_err(|error| error.to_string())?;
        self.body = match &self.zstd {
            Some(zstd) => {
                // Its bytes may be used again.
                self.body = Bytes::new();
                zstd.decompress(&bytes, page.decompressed)?
            }
            None => bytes,
        };
        if page.kind == PageKind::Dictionary {
            return self.read_dictionary(page.values);
        }
        let mut at = 0;
        if self.nullable {
            let length = self.body.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
            let end = length.and_then(|length| length.checked_add(4)).filter(|end| *end <= self.body.len());
            let end = end.ok_or("a page is cut off")?;
            self.levels = Runs::new(4, end, 1);
            at = end;
        }
        self.values = match page.kind {
            PageKind::Plain if self.kind.physical == Physical::BOOLEAN => {
                PageValues::Plain(at.saturating_mul(8))
            }
            PageKind::Plain if self.kind.physical == Physical::BYTE_ARRAY => {
                // `at` is not behind the end of the page.
                let places = self.texts.plain(self.body.slice(at..)).map_err(|error| error.to_string())?;
                PageValues::Texts(places.into_iter())
            }
            PageKind::Plain => PageValues::Plain(at),
            _ => {
                // A page without values may end here.
                let bits = self.body.get(at).copied().unwrap_or(0);
                if bits > 32 {
                    return Err(format!("the places of values have {bits} bits"));
                }
                PageValues::Places(Runs::new(at + 1, self.body.len(), bits))
            }
        };
        self.left = page.values;
        Ok(())
    }

    fn read_dictionary(&mut self, values: usize) -> Result<(), String> {
        if self.kind.physical == Physical::BYTE_ARRAY {
            let places = self.texts.dictionary(self.body.clone()).map_err(|error| error.to_string())?;
            self.dictionary = places.map(u64::from).collect();
            return Ok(());
        }
        // Its size was checked when the page's header was read, but it may have other bytes.
        plain(&self.body, &mut 0, values, self.kind, &mut self.dictionary)
    }
}

/// Adds numbers that are not encoded. `at` is where the next one is.
fn plain(
    body: &[u8],
    at: &mut usize,
    count: usize,
    kind: OwnKind,
    numbers: &mut Vec<u64>,
) -> Result<(), String> {
    let before = numbers.len();
    let width = match kind.physical {
        Physical::BOOLEAN => 1,
        Physical::INT32 => 4,
        _ => 8,
    };
    let end = count.checked_mul(width).and_then(|length| length.checked_add(*at));
    let end = end.ok_or("a page is cut off")?;
    if kind.physical == Physical::BOOLEAN {
        if end.div_ceil(8) > body.len() {
            return Err("a page is cut off".to_owned());
        }
        let bit = |at: usize| body.get(at / 8).map_or(0, |byte| u64::from(byte >> (at % 8) & 1));
        numbers.extend((*at..end).map(bit));
    } else {
        let bytes = body.get(*at..end).ok_or("a page is cut off")?;
        if width == 4 {
            let (chunks, _) = bytes.as_chunks();
            numbers.extend(chunks.iter().map(|bytes| u64::from(u32::from_le_bytes(*bytes))));
        } else {
            let (chunks, _) = bytes.as_chunks();
            numbers.extend(chunks.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        }
    }
    *at = end;
    for number in numbers.iter().skip(before) {
        if kind.signed && number.cast_signed() < 0 {
            return Err("it has a negative number".to_owned());
        }
        if *number > kind.most {
            return Err(format!("it has {number}, which is too large for it"));
        }
    }
    Ok(())
}

/// Numbers in Parquet's "RLE / bit-packing hybrid": runs of one number, and groups of eight numbers
/// with a fixed number of bits each.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    /// Where the next run begins in the page, and where the last one ends.
    at: usize,
    end: usize,
    bits: u8,
    run: Run,
}

/// What is left of a run.
#[derive(Clone, Copy, Debug)]
enum Run {
    Same {
        number: u32,
        left: usize,
    },
    /// The next number begins at this bit of the page.
    Packed {
        bit: usize,
        left: usize,
    },
}

impl Default for Run {
    fn default() -> Self {
        Self::Same { number: 0, left: 0 }
    }
}

impl Runs {
    fn new(at: usize, end: usize, bits: u8) -> Self {
        Self { at, end, bits, run: Run::default() }
    }

    /// Calls `each` with the next numbers, and how often each comes one after the other, until
    /// there were `count`.
    fn take(
        &mut self,
        page: &[u8],
        mut count: usize,
        mut each: impl FnMut(u32, usize) -> Result<(), &'static str>,
    ) -> Result<(), String> {
        while count > 0 {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.next(page)?,
                Run::Same { number, left } => {
                    let now = count.min(*left);
                    each(*number, now)?;
                    *left -= now;
                    count -= now;
                }
                Run::Packed { bit, left } => {
                    let now = count.min(*left);
                    let bits = usize::from(self.bits);
                    let mask = (1_u64 << bits) - 1;
                    for _ in 0..now {
                        let word = word(page, *bit / 8) >> (*bit % 8);
                        each((word & mask) as u32, 1)?;
                        *bit += bits;
                    }
                    *left -= now;
                    count -= now;
                }
            }
        }
        Ok(())
    }

    /// Begins the next run.
    fn next(&mut self, page: &[u8]) -> Result<(), String> {
        const CUT: &str = "a page is cut off";
        let mut rest = page.get(self.at..self.end).ok_or(CUT)?;
        let header = varint::take(&mut rest).ok_or(CUT)?;
        let length = usize::try_from(header >> 1).map_err(|_| CUT)?;
        let bits = usize::from(self.bits);
        if header & 1 == 0 {
            let (number, after) = rest.split_at_checked(bits.div_ceil(8)).ok_or(CUT)?;
            let number = number.iter().rev().fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
            self.run = Run::Same { number, left: length };
            rest = after;
        } else {
            // Writers may leave out the end of the last group.
            let bit = (self.end - rest.len()) * 8;
            let there = (rest.len() * 8).checked_div(bits).unwrap_or(usize::MAX);
            let left = length.saturating_mul(8).min(there);
            self.run = Run::Packed { bit, left };
            rest = rest.get(length.saturating_mul(bits)..).unwrap_or_default();
        }
        // A run of nothing takes at least its header, so this ends.
        self.at = self.end - rest.len();
        Ok(())
    }
}

/// Returns eight bytes of a page, or those that there are.
fn word(page: &[u8], at: usize) -> u64 {
    let rest = page.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hybrid::{put_hybrid, tests::numbers};
    use super::*;

    /// Takes numbers, some at a time; `None` if they end before.
    fn taken(page: &[u8], bits: u8, count: usize, at_once: usize) -> Option<Vec<u32>> {
        let mut runs = Runs::new(0, page.len(), bits);
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let now = at_once.min(count - numbers.len());
            let each = |number, times| {
                numbers.extend(std::iter::repeat_n(number, times));
                Ok(())
            };
            runs.take(page, now, each).ok()?;
        }
        Some(numbers)
    }

    proptest! {
        #[test]
        fn runs_are_read_as_they_were_written(
            runs in prop::collection::vec((any::<u32>(), 1_usize..40), 1..40),
            bits in 0_u8..=32,
            at_once in 1_usize..50,
        ) {
            let numbers = numbers(&runs, bits);
            let mut page = Vec::new();
            put_hybrid(&mut page, bits, &numbers);
            prop_assert_eq!(taken(&page, bits, numbers.len(), at_once), Some(numbers.clone()));
            // Of a page that is cut off, only what is there.
            for cut in 0..page.len() {
                if let Some(found) = taken(&page[..cut], bits, numbers.len(), at_once) {
                    prop_assert_eq!(&found, &numbers, "{} of {} bytes", cut, page.len());
                }
            }
        }

        #[test]
        fn any_runs_are_an_error_or_numbers(page in prop::collection::vec(any::<u8>(), 0..60), bits in 0_u8..=32) {
            if let Some(numbers) = taken(&page, bits, 1000, 7) {
                prop_assert_eq!(numbers.len(), 1000);
            }
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_an_error() {
        let of = |physical, signed, most| OwnKind { physical, signed, most };
        let read = |kind, body: &[u8], count| {
            let mut numbers = Vec::new();
            plain(body, &mut 0, count, kind, &mut numbers).map(|()| numbers)
        };
        let small = of(Physical::INT32, false, 255);
        assert_eq!(read(small, &[1, 0, 0, 0, 255, 0, 0, 0], 2), Ok(vec![1, 255]));
        assert_eq!(read(small, &[0, 1, 0, 0], 1).unwrap_err(), "it has 256, which is too large for it");
        assert_eq!(read(small, &[0, 0, 0], 1).unwrap_err(), "a page is cut off");
        assert_eq!(read(small, &[], usize::MAX).unwrap_err(), "a page is cut off");
        let signed = of(Physical::INT64, true, i64::MAX.cast_unsigned());
        assert_eq!(read(signed, &[0xff; 8], 1).unwrap_err(), "it has a negative number");
        assert_eq!(read(of(Physical::BOOLEAN, false, 1), &[0b101], 3), Ok(vec![1, 0, 1]));
    }
}
