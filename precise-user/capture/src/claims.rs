//! What a file claims, read before anything is decoded: the memory that its footer takes, and the
//! sizes of its pages.
//!
//! The parquet crate allocates what a page's header asks for. 200 KB can so ask for gigabytes,
//! because a page of equal bytes compresses to almost nothing. This module therefore walks over the
//! headers by itself. They are in Thrift's compact protocol; it reads their structure and a few
//! numbers.

use std::io::{self, Read};

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

/// The bytes in memory of a byte of the metadata's JSON: an empty text has 3 bytes there, and 24 in
/// a list that may be half full.
pub(super) const JSON: u64 = 16;
/// The bytes in memory of a struct of the footer: half of what a column chunk takes, which is two
/// structs.
const STRUCT: usize = 256;
/// The bytes in memory of an element of a list.
const ELEMENT: usize = 16;
/// The bytes in memory of a string beside its contents.
const STRING: usize = 48;
/// The bytes of the smallest text in a dictionary, which is its length, and of the smallest number
/// that any type has.
const SMALLEST: [u64; 2] = [4, 1];
/// The bytes in memory of an entry of a dictionary of texts beside its contents, and of a number.
const ENTRY: [u64; 2] = [64, 8];
/// The largest header of a page, in bytes. Captures have no statistics there, so theirs are small.
const MOST_OF_HEADER: u64 = 64 << 10;
/// How deep structs and lists may be nested. Those of Parquet are at most six deep.
const DEEPEST: u32 = 16;

/// The ids of the encodings that captures have: PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED and
/// RLE_DICTIONARY. Others take memory that follows neither from the size of the page nor from the
/// number of rows: each text of a page in DELTA_BYTE_ARRAY may repeat the whole one before.
const ENCODINGS: [i64; 5] = [0, 2, 3, 4, 8];

/// Returns the memory that the structures of a footer take in bytes. The error says what is wrong
/// with the footer.
pub(super) fn of_footer(footer: &[u8]) -> io::Result<usize> {
    let mut walk = Walk { from: footer, cost: footer.len() };
    walk.skip(Kind::STRUCT, 0)?;
    Ok(walk.cost)
}

/// The most pages of a column chunk whose places are kept.
const MOST_PAGES: usize = 1024;

/// What the headers of the pages of a column chunk say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkClaim {
    /// The memory of all pages when they are decompressed, in bytes.
    pub bytes: u64,
    /// The pages; `None` if precise writes no such pages, or not as many.
    pub pages: Option<Vec<PagePlace>>,
}

/// A page that precise may have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PagePlace {
    /// Where its contents are in the file.
    pub at: u64,
    /// Their bytes there.
    pub compressed: usize,
    /// Their bytes when they are decompressed.
    pub decompressed: usize,
    /// The number of values, nulls too.
    pub values: usize,
    pub kind: PageKind,
}

/// What a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// The distinct values.
    Dictionary,
    /// The places of values in the dictionary.
    Places,
    /// Values.
    Plain,
}

/// Returns what the pages of a column chunk claim. `texts` tells whether its values are texts. The
/// error says what is wrong with a page.
pub(super) fn of_chunk<R: ChunkReader>(
    file: &R,
    chunk: &ColumnChunkMetaData,
    texts: bool,
) -> Result<ChunkClaim, String> {
    let (mut at, length) = chunk.byte_range();
    let end = at.saturating_add(length);
    let kind = usize::from(!texts);
    let mut claim = 0_u64;
    let mut pages = Some(Vec::new());
    while at < end {
        let read = file.get_read(at).map_err(|error| error.to_string())?;
        let limited = read.take(MOST_OF_HEADER.min(end - at));
        let mut walk = Walk { from: Counted { from: limited, bytes: 0 }, cost: 0 };
        let page = walk.page().map_err(|error| format!("the header of a page is damaged: {error}"))?;
        let size = u64::try_from(page.compressed).map_err(|_| "a page has a negative size".to_owned())?;
        let decompressed =
            u64::try_from(page.uncompressed).map_err(|_| "a page has a negative size".to_owned())?;
        if page.encoding.is_some_and(|encoding| !ENCODINGS.contains(&encoding)) {
            return Err("a page has an encoding that no capture has".to_owned());
        }
        if let Some(values) = page.dictionary {
            let values = u64::try_from(values).unwrap_or(u64::MAX);
            if values.saturating_mul(SMALLEST[kind]) > decompressed {
                return Err(format!("a dictionary of {decompressed} bytes claims {values} values"));
            }
            claim = claim.saturating_add(values.saturating_mul(ENTRY[kind]));
        }
        claim = claim.saturating_add(decompressed.max(size));
        at = at.saturating_add(walk.from.bytes);
        pages = pages.filter(|pages: &Vec<PagePlace>| pages.len() < MOST_PAGES).and_then(|mut pages| {
            pages.push(page.place(at)?);
            Some(pages)
        });
        at = at.saturating_add(size);
    }
    Ok(ChunkClaim { bytes: claim, pages })
}

/// The numbers of a page's header.
#[derive(Debug, Default)]
struct Page {
    uncompressed: i64,
    compressed: i64,
    encoding: Option<i64>,
    /// The encoding of the definition levels, of a page of version 1.
    levels: Option<i64>,
    /// The number of values, nulls too, of a page of version 1.
    values: Option<i64>,
    /// The number of values, if the page is a dictionary.
    dictionary: Option<i64>,
}

impl Page {
    /// Returns the page, whose contents are at `at` in the file; `None` if precise writes no such
    /// pages.
    fn place(&self, at: u64) -> Option<PagePlace> {
        const PLAIN: i64 = 0;
        const PLAIN_DICTIONARY: i64 = 2;
        const RLE: i64 = 3;
        const RLE_DICTIONARY: i64 = 8;
        let (kind, values) = match (self.dictionary, self.values, self.encoding?) {
            (Some(values), None, PLAIN | PLAIN_DICTIONARY) => (PageKind::Dictionary, values),
            (None, Some(values), PLAIN_DICTIONARY | RLE_DICTIONARY) => (PageKind::Places, values),
            (None, Some(values), PLAIN) => (PageKind::Plain, values),
            _ => return None,
        };
        if kind != PageKind::Dictionary && self.levels != Some(RLE) {
            return None;
        }
        let number = |number: i64| usize::try_from(number).ok();
        let (compressed, decompressed) = (number(self.compressed)?, number(self.uncompressed)?);
        Some(PagePlace { at, compressed, decompressed, values: number(values)?, kind })
    }
}

/// The types of the compact protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const STOP: Self = Self(0);
    const TRUE: Self = Self(1);
    const FALSE: Self = Self(2);
    const BYTE: Self = Self(3);
    const I16: Self = Self(4);
    const I32: Self = Self(5);
    const I64: Self = Self(6);
    const DOUBLE: Self = Self(7);
    const BINARY: Self = Self(8);
    const LIST: Self = Self(9);
    const SET: Self = Self(10);
    const MAP: Self = Self(11);
    const STRUCT: Self = Self(12);
    const UUID: Self = Self(13);
}

/// Counts the bytes that were read.
struct Counted<R> {
    from: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Walks over encoded structs.
struct Walk<R> {
    from: R,
    /// The memory of what was passed, in bytes.
    cost: usize,
}

impl<R: Read> Walk<R> {
    /// Reads the header of a page.
    fn page(&mut self) -> io::Result<Page> {
        let mut page = Page::default();
        self.fields(|walk, id, kind| match (id, kind) {
            (2, Kind::I32) => walk.number().map(|number| page.uncompressed = number),
            (3, Kind::I32) => walk.number().map(|number| page.compressed = number),
            // A page of data, a dictionary, a page of data of version 2.
            (5 | 7 | 8, Kind::STRUCT) => walk.fields(|walk, inner, kind| match (id, inner, kind) {
                (5, 1, Kind::I32) => walk.number().map(|number| page.values = Some(number)),
                (5, 3, Kind::I32) => walk.number().map(|number| page.levels = Some(number)),
                (7, 1, Kind::I32) => walk.number().map(|number| page.dictionary = Some(number)),
                (5 | 7, 2, Kind::I32) | (8, 4, Kind::I32) => {
                    walk.number().map(|number| page.encoding = Some(number))
                }
                _ => walk.skip(kind, 2),
            }),
            _ => walk.skip(kind, 1),
        })?;
        Ok(page)
    }

    /// Calls `each` for each field of a struct with its id and kind. It must pass the field.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, Kind) -> io::Result<()>) -> io::Result<()> {
        self.cost = self.cost.saturating_add(STRUCT);
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            let kind = Kind(head & 15);
            if kind == Kind::STOP {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.number()?,
                more => id.saturating_add(more.into()),
            };
            if !matches!(kind, Kind::TRUE | Kind::FALSE) {
                each(self, id, kind)?;
            }
        }
    }

    /// Passes a value.
    fn skip(&mut self, kind: Kind, depth: u32) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its structs are nested too deeply"));
        }
        match kind {
            Kind::TRUE | Kind::FALSE | Kind::BYTE => self.byte().map(drop),
            Kind::I16 | Kind::I32 | Kind::I64 => self.number().map(drop),
            Kind::DOUBLE => self.pass(8),
            Kind::UUID => self.pass(16),
            Kind::BINARY => {
                let length = self.varint()?;
                self.cost = self.cost.saturating_add(STRING);
                self.pass(length)
            }
            Kind::LIST | Kind::SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                for _ in 0..length {
                    self.cost = self.cost.saturating_add(ELEMENT);
                    self.skip(Kind(head & 15), depth + 1)?;
                }
                Ok(())
            }
            Kind::MAP => {
                let length = self.varint()?;
                let kinds = if length > 0 { self.byte()? } else { 0 };
                for _ in 0..length {
                    self.cost = self.cost.saturating_add(2 * ELEMENT);
                    self.skip(Kind(kinds >> 4), depth + 1)?;
                    self.skip(Kind(kinds & 15), depth + 1)?;
                }
                Ok(())
            }
            Kind::STRUCT => self.fields(|walk, _, kind| walk.skip(kind, depth + 1)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a field has an unknown type")),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a number is too long"))
    }

    /// Reads a number in zigzag encoding.
    fn number(&mut self) -> io::Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    /// Passes `length` bytes.
    fn pass(&mut self, length: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.from.by_ref().take(length), &mut io::sink())?;
        if passed == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
