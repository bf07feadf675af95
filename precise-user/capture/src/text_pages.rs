//! Pages of a column of text whose values become numbers: the place of each text in a list.
//!
//! The parquet crate gives each row a text of its own, which counts references. The rows of a
//! capture name the same texts again and again, and their pages mostly contain numbers anyway: the
//! places of texts in a dictionary. So these pages are changed before the crate decodes them: it
//! reads a column of numbers.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{ColumnDescriptor, Type};
use rustc_hash::FxHashMap;

/// The bytes that a text of a page without a dictionary takes beside its own.
const EACH: u64 = 128;

/// The texts of a column chunk that were found so far and not yet taken.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundTexts(Arc<Mutex<Vec<Bytes>>>);

impl FoundTexts {
    /// Returns one text, whose place is 0.
    pub fn only(text: Bytes) -> Self {
        Self(Arc::new(Mutex::new(vec![text])))
    }

    /// Takes the texts. The places of those that are found later go on after them.
    pub fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds texts.
    pub fn add(&self, texts: Vec<Bytes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
    }
}

/// The bytes that the open columns of a row group claim, and the most that they may.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    bytes: Arc<AtomicU64>,
    pub limit: u64,
}

impl Claimed {
    pub fn new(limit: u64) -> Self {
        Self { bytes: Arc::default(), limit }
    }

    /// Returns whether there is room for this number of bytes. The error is what would be claimed.
    pub fn fits(&self, bytes: u64) -> std::result::Result<(), u64> {
        let claimed = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if claimed > self.limit { Err(claimed) } else { Ok(()) }
    }

    /// Adds bytes. The error is what is claimed then, which is more than the limit.
    pub fn add(&self, bytes: u64) -> std::result::Result<(), u64> {
        let claimed = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if claimed > self.limit { Err(claimed) } else { Ok(()) }
    }
}

/// The pages of a column chunk of texts, as pages of a column of numbers.
pub(super) struct TextPages<P> {
    pages: P,
    /// Whether values may be null: then each page begins with its definition levels.
    nullable: bool,
    texts: ChunkTexts,
}

/// Gives the texts of a column chunk their places.
pub(super) struct ChunkTexts {
    found: FoundTexts,
    /// The number of texts that were found.
    count: u32,
    /// The texts of pages that have the texts themselves, and their places.
    plain: FxHashMap<Bytes, u32>,
    claimed: Claimed,
}

impl ChunkTexts {
    /// Starts a chunk without texts. Those that are found are added to `found`.
    pub fn new(found: FoundTexts, claimed: Claimed) -> Self {
        Self { found, count: 0, plain: FxHashMap::default(), claimed }
    }

    /// Finds the texts of a dictionary. Returns their places.
    pub fn dictionary(&mut self, page: Bytes) -> Result<Range<u32>> {
        let texts = texts(page).collect::<Result<Vec<_>>>()?;
        let first = self.count;
        self.count = first.checked_add(texts.len() as u32).ok_or_else(too_many)?;
        self.found.add(texts);
        Ok(first..self.count)
    }

    /// Finds the texts of a page that has a text for each value. Returns their places. The same
    /// text has the same place.
    pub fn plain(&mut self, page: Bytes) -> Result<Vec<u32>> {
        let (mut new, mut places) = (Vec::new(), Vec::new());
        for text in texts(page) {
            let text = text?;
            let place = match self.plain.get(&text) {
                Some(place) => *place,
                None => {
                    // Its own bytes are those of the page.
                    self.claimed.add(EACH).map_err(|_| too_many())?;
                    let place = self.count;
                    self.count = place.checked_add(1).ok_or_else(too_many)?;
                    new.push(text.clone());
                    self.plain.insert(text, place);
                    place
                }
            };
            places.push(place);
        }
        self.found.add(new);
        Ok(places)
    }
}

/// Returns places in the encoding of a page of numbers.
fn encoded(places: impl Iterator<Item = u32>) -> Vec<u8> {
    places.flat_map(u32::to_le_bytes).collect()
}

impl<P: PageReader> TextPages<P> {
    /// Returns the pages, and the texts that the numbers are the places of.
    pub fn of(pages: P, nullable: bool, claimed: Claimed) -> (Self, FoundTexts) {
        let found = FoundTexts::default();
        (Self { pages, nullable, texts: ChunkTexts::new(found.clone(), claimed) }, found)
    }

    fn changed(&mut self, page: Page) -> Result<Page> {
        Ok(match page {
            Page::DictionaryPage { buf, encoding, is_sorted, .. } => {
                let places = self.texts.dictionary(buf)?;
                let num_values = places.len() as u32;
                Page::DictionaryPage { buf: encoded(places).into(), num_values, encoding, is_sorted }
            }
            Page::DataPage {
                buf,
                num_values,
                encoding: encoding @ Encoding::PLAIN,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                let levels = self.levels(&buf, num_values, def_level_encoding)?;
                let buf = self.after(buf, levels)?;
                Page::DataPage {
                    buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding: encoding @ Encoding::PLAIN,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                let buf = self.after(buf, levels)?;
                Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed,
                    statistics,
                }
            }
            // Places in the dictionary.
            page => page,
        })
    }

    /// Returns the length of the definition levels at the start of a page of version 1.
    fn levels(&self, page: &Bytes, values: u32, encoding: Encoding) -> Result<usize> {
        match (self.nullable, encoding, &**page) {
            (false, ..) => Ok(0),
            (true, Encoding::RLE, [a, b, c, d, ..]) => {
                Ok(4_usize.saturating_add(u32::from_le_bytes([*a, *b, *c, *d]) as usize))
            }
            (true, Encoding::RLE, _) => Err(ParquetError::EOF("a page is cut off".to_owned())),
            // A bit for each value.
            _ => Ok((values as usize).div_ceil(8)),
        }
    }

    /// Returns a page whose values are numbers, which begin after `levels` bytes.
    fn after(&mut self, mut page: Bytes, levels: usize) -> Result<Bytes> {
        if levels > page.len() {
            return Err(ParquetError::EOF("a page is cut off".to_owned()));
        }
        let values = page.split_off(levels);
        let places = encoded(self.texts.plain(values)?.into_iter());
        Ok([&*page, &places].concat().into())
    }
}

impl<P: PageReader> Iterator for TextPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for TextPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.changed(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

/// Returns the texts of a buffer in the plain encoding: of each a length of four bytes, and the
/// text.
fn texts(mut rest: Bytes) -> impl Iterator<Item = Result<Bytes>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = match *rest {
            [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => usize::MAX,
        };
        let end = length.saturating_add(4);
        if end > rest.len() {
            rest.clear();
            return Some(Err(ParquetError::EOF("a text is cut off".to_owned())));
        }
        Some(Ok(rest.split_to(end).slice(4..)))
    })
}

fn too_many() -> ParquetError {
    ParquetError::General("it has too many different texts".to_owned())
}

/// Returns the description of a column of numbers in the place of a column of text.
pub(super) fn as_numbers(column: &ColumnDescriptor) -> Result<ColumnDescriptor> {
    let kind = Type::primitive_type_builder(column.name(), Physical::INT32)
        .with_repetition(column.self_type().get_basic_info().repetition())
        .build()?;
    let (definition, repetition) = (column.max_def_level(), column.max_rep_level());
    Ok(ColumnDescriptor::new(Arc::new(kind), definition, repetition, column.path().clone()))
}
