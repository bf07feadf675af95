//! Reading a capture: first the kind of the file, then its rows.
//!
//! The bytes are not trusted. Every problem of a damaged or hostile file ends in a [`ReadError`].

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader as _, Length as _};

use super::checkpoint::{CUT_KEY, CheckpointParts, recover};
use super::claims::{self, JSON};
use super::file::{META_KEY, SCHEMA_KEY};
use super::file_output::MemoryOutput;
use super::limits::ReadLimits;
use super::ranged::{RangeSource, Ranged};
use super::read_columns::GroupReader;
use super::read_error::ReadError;
use super::read_rows::Rows;
use super::temporary::temporary;
use super::{CaptureWriter, WriteError};
use precise_model::{Capture, Meta, Projection, SCHEMA_VERSION};

const MAGIC: &[u8; 4] = b"PAR1";
/// The size of the smallest Parquet file: magic, footer length, magic.
const SMALLEST: u64 = 12;
/// The bytes at the end of a file after its footer: length and magic.
const FOOTER_END: u64 = 8;

thread_local! {
    static PANICS_ARE_ANSWERED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of this thread becomes a [`ReadError`], so that a panic hook need not
/// print it.
pub fn panics_are_answered() -> bool {
    PANICS_ARE_ANSWERED.get()
}

/// Chooses the parts of rows that are read, by what a capture says about itself.
pub type WantedParts<'a> = dyn Fn(&Meta) -> Projection + 'a;

fn everything(_: &Meta) -> Projection {
    Projection::EVERYTHING
}

/// Captures as files.
///
/// ```
/// use precise_capture::CaptureFile as _;
/// use precise_model::{Capture, testing::CaptureBuilder};
///
/// let folder = std::env::temp_dir().join(format!("capture-example-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let path = folder.join("precise.parquet");
///
/// let mut made = CaptureBuilder::new();
/// made.cell().samples(3);
/// made.build().write(&path)?;
///
/// let read = Capture::read(&path)?;
/// assert_eq!(read.rows.iter().map(|row| row.measures.count).sum::<u64>(), 3);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait CaptureFile: Sized {
    /// Reads the capture at `path`; `-` is the standard input.
    ///
    /// Memory use grows with the rows and names of the file, not with the numbers in its header, up
    /// to [`ReadLimits::default`].
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a capture or is damaged, or if it has more rows or needs
    /// more memory than the limits allow even after joining all epochs.
    fn read(path: &Path) -> Result<Self, ReadError> {
        Self::read_limited(path, &ReadLimits::default())
    }

    /// Reads a capture like [`CaptureFile::read`], with other limits.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`].
    fn read_limited(path: &Path, limits: &ReadLimits) -> Result<Self, ReadError> {
        Self::read_parts(path, limits, &everything)
    }

    /// Reads a capture like [`CaptureFile::read_limited`], but of its rows only the parts that
    /// `wanted` returns. Columns of other parts are not read, and may be damaged. Rows that are
    /// equal without them are joined, if no number loses by it.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`].
    fn read_parts(path: &Path, limits: &ReadLimits, wanted: &WantedParts<'_>) -> Result<Self, ReadError>;

    /// Reads a capture from an open file; `label` names it in errors.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`].
    fn read_file(file: File, label: &str, limits: &ReadLimits) -> Result<Self, ReadError> {
        Self::read_file_parts(file, label, limits, &everything)
    }

    /// Reads parts of a capture, as [`CaptureFile::read_parts`] does, from an open file; `label`
    /// names it in errors.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`].
    fn read_file_parts(
        file: File,
        label: &str,
        limits: &ReadLimits,
        wanted: &WantedParts<'_>,
    ) -> Result<Self, ReadError>;

    /// Reads a capture from memory; `label` names it in errors.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`].
    fn read_bytes(bytes: Bytes, label: &str, limits: &ReadLimits) -> Result<Self, ReadError>;

    /// Writes the capture to `path` (`-`: standard output) completely, or not at all. The file's
    /// mode is 0600.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    fn write(&self, path: &Path) -> Result<(), WriteError>;

    /// Returns the capture as the bytes of its file.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be encoded.
    fn to_bytes(&self) -> Result<Bytes, WriteError>;
}

impl CaptureFile for Capture {
    fn read_parts(path: &Path, limits: &ReadLimits, wanted: &WantedParts<'_>) -> Result<Self, ReadError> {
        let label = path.display().to_string();
        let unreadable = |source| ReadError::Unreadable { path: label.clone(), source };
        let file = if path == Path::new("-") {
            spool(&mut io::stdin().lock()).map_err(unreadable)?
        } else {
            let flags = libc::O_CLOEXEC;
            let mut file =
                OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
            let kind = file.metadata().map_err(unreadable)?;
            if kind.is_dir() {
                return Err(unreadable(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            if kind.is_file() { file } else { spool(&mut file).map_err(unreadable)? }
        };
        read_chunks(Arc::new(file), &label, limits, wanted)
    }

    fn read_file_parts(
        file: File,
        label: &str,
        limits: &ReadLimits,
        wanted: &WantedParts<'_>,
    ) -> Result<Self, ReadError> {
        read_chunks(Arc::new(file), label, limits, wanted)
    }

    fn read_bytes(bytes: Bytes, label: &str, limits: &ReadLimits) -> Result<Self, ReadError> {
        read_chunks(Arc::new(bytes), label, limits, &everything)
    }

    fn write(&self, path: &Path) -> Result<(), WriteError> {
        let mut writer = CaptureWriter::create(path)?;
        writer.append_epoch(self, &self.rows)?;
        writer.finish(&self.meta).map(|_| ())
    }

    fn to_bytes(&self) -> Result<Bytes, WriteError> {
        let written = MemoryOutput::default();
        let mut writer = CaptureWriter::to_stream(Box::new(written.clone()))?;
        writer.append_epoch(self, &self.rows)?;
        writer.finish(&self.meta)?;
        Ok(written.take().into())
    }
}

fn read_chunks(
    source: Arc<dyn RangeSource>,
    label: &str,
    limits: &ReadLimits,
    wanted: &WantedParts<'_>,
) -> Result<Capture, ReadError> {
    answering_panics(label, || {
        let OpenedCapture { file, metadata, meta, kept, claimed, .. } =
            OpenedCapture::new(source, label, limits)?;
        let parts = wanted(&meta);
        let mut rows = Rows::new(meta, parts, limits, kept);
        let mut groups = GroupReader::all(&file, &metadata, limits.pages(), parts != Projection::EVERYTHING);
        groups
            .try_for_each(|group| rows.add(&group?))
            .map_err(|stop| stop.of(label, (claimed, limits.rows)))?;
        all_rows(label, rows.read(), claimed)?;
        Ok(rows.finish())
    })
}

/// Reads something of a file, and turns a panic into an error. parquet 60.1 panics on some damaged
/// files: [`check_chunks`] refuses the known ones, and any other panic is caught here. The panic
/// hook of the process should not print its message: see [`panics_are_answered`].
pub(super) fn answering_panics<T>(
    label: &str,
    read: impl FnOnce() -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let outer = PANICS_ARE_ANSWERED.replace(true);
    // Unwind safety: what the closure changes outside of it is not used after a panic.
    let result = std::panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(ReadError::Corrupt {
            path: label.to_owned(),
            what: "its data pages cannot be decoded".to_owned(),
        })
    });
    PANICS_ARE_ANSWERED.set(outer);
    result
}

/// Fails if a file has not as many rows as its metadata says.
pub(super) fn all_rows(label: &str, read: u64, claimed: u64) -> Result<(), ReadError> {
    if read == claimed {
        return Ok(());
    }
    let what = format!("it has {read} rows, but its metadata says {claimed}");
    Err(ReadError::Corrupt { path: label.to_owned(), what })
}

/// A capture whose metadata was read, but none of its rows.
pub(super) struct OpenedCapture {
    pub file: Ranged,
    pub metadata: ParquetMetaData,
    pub meta: Meta,
    /// The memory of the metadata, in bytes.
    pub kept: u64,
    /// The number of rows that the file claims.
    pub claimed: u64,
    /// Whether the file ends before its end, after a checkpoint.
    pub cut: bool,
}

impl OpenedCapture {
    pub fn new(source: Arc<dyn RangeSource>, label: &str, limits: &ReadLimits) -> Result<Self, ReadError> {
        let file = Ranged::new(source);
        let path = || label.to_owned();
        let corrupt = |what: String| ReadError::Corrupt { path: path(), what };
        let whole = footer(&file, label, limits);
        // A file that ends in the middle, or right after a checkpoint, may be an unfinished
        // capture.
        let may_be_cut = match &whole {
            Ok((metadata, _)) => value(metadata, CUT_KEY).is_some(),
            Err(ReadError::Truncated { .. } | ReadError::Corrupt { .. }) => true,
            Err(_) => false,
        };
        let found = if may_be_cut { recover(&file, limits.kept()).map_err(corrupt)? } else { None };
        let cut = found.is_some();
        let (metadata, kept, known) = match found {
            Some(CheckpointParts { footer, meta, kept }) => (footer, kept, Some(meta)),
            None => {
                let (metadata, kept) = whole?;
                (metadata, kept, None)
            }
        };
        let Some(version) = value(&metadata, SCHEMA_KEY) else {
            return Err(ReadError::Foreign { path: path() });
        };
        let version: u32 = version
            .parse()
            .map_err(|_| corrupt(format!("{SCHEMA_KEY} is not a number: {:?}", shorten(version))))?;
        if version > SCHEMA_VERSION {
            return Err(ReadError::Newer { path: path(), found: version, known: SCHEMA_VERSION });
        }
        let (meta, kept) = match known {
            Some(meta) => (meta, kept),
            None => {
                let meta = value(&metadata, META_KEY)
                    .ok_or_else(|| corrupt(format!("the metadata key {META_KEY} is missing")))?;
                let claimed = (JSON * meta.len() as u64).saturating_add(kept);
                let kept = memory(label, "its metadata claims", claimed, limits)?;
                let meta: Meta = serde_json::from_str(meta)
                    .map_err(|e| corrupt(format!("the metadata key {META_KEY} cannot be parsed: {e}")))?;
                (meta, kept)
            }
        };
        let claimed = u64::try_from(metadata.file_metadata().num_rows())
            .map_err(|_| corrupt("its number of rows is negative".to_owned()))?;
        check_chunks(&metadata, file.len()).map_err(corrupt)?;
        Ok(Self { file, metadata, meta, kept, claimed, cut })
    }
}

/// Reads the footer of a file. Returns it with the memory that it takes in bytes.
pub(super) fn footer(
    file: &Ranged,
    label: &str,
    limits: &ReadLimits,
) -> Result<(ParquetMetaData, u64), ReadError> {
    let footer = check_magic(file, label)?;
    let unreadable = |e: String| ReadError::Corrupt {
        path: label.to_owned(),
        what: format!("its footer cannot be read: {e}"),
    };
    // The structures are parsed from a copy of the footer.
    memory(label, "its footer claims", footer, limits)?;
    let start = file.len() - FOOTER_END - footer;
    let file = file.holding(start, footer + FOOTER_END).map_err(|e| unreadable(e.to_string()))?;
    let kept = file
        .get_bytes(start, footer as usize)
        .map_err(|e| e.to_string())
        .and_then(|footer| claims::of_footer(&footer).map_err(|e| e.to_string()))
        .map_err(unreadable)?;
    let kept = memory(label, "its footer claims", (kept as u64).saturating_add(footer), limits)?;
    let metadata =
        ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|e| unreadable(e.to_string()))?;
    Ok((metadata, kept))
}

/// Fails if what a file claims needs more memory than the limit.
fn memory(label: &str, what: &str, bytes: u64, limits: &ReadLimits) -> Result<u64, ReadError> {
    let limit = limits.kept();
    if bytes <= limit {
        return Ok(bytes);
    }
    Err(ReadError::Memory { path: label.to_owned(), what: what.to_owned(), bytes, limit })
}

/// Checks the magic bytes at the start and the end of a Parquet file. Returns the length of the
/// footer, which lies within the file.
fn check_magic(reader: &Ranged, label: &str) -> Result<u64, ReadError> {
    let path = || label.to_owned();
    let unreadable = |e| ReadError::Unreadable { path: path(), source: io::Error::other(e) };
    let length = reader.len();
    let head = reader.get_bytes(0, length.min(4) as usize).map_err(unreadable)?;
    if length == 0 {
        return Err(ReadError::Truncated { path: path() });
    }
    if !MAGIC.starts_with(&head) {
        return Err(ReadError::NotParquet { path: path() });
    }
    if length < SMALLEST {
        return Err(ReadError::Truncated { path: path() });
    }
    let tail = reader.get_bytes(length - 8, 8).map_err(unreadable)?;
    let (footer, magic) = tail.split_at(4);
    let footer = footer.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    if magic != MAGIC || footer > length - SMALLEST {
        return Err(ReadError::Truncated { path: path() });
    }
    Ok(footer)
}

/// Refuses column chunks that are outside of the file, because the parquet crate asserts that they
/// are inside.
pub(super) fn check_chunks(metadata: &ParquetMetaData, length: u64) -> Result<(), String> {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let wrong = |what: &str| Err(format!("row group {number} {what}"));
        if group.num_rows() < 0 {
            return wrong("has a negative number of rows");
        }
        for chunk in group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let numbers = [start, chunk.data_page_offset(), chunk.compressed_size(), chunk.num_values()];
            if numbers.iter().any(|n| *n < 0) {
                return wrong("has a negative offset or size");
            }
            let end = start.checked_add(chunk.compressed_size()).and_then(|end| u64::try_from(end).ok());
            if end.is_none_or(|end| end > length) {
                return wrong("lies beyond the end of the file");
            }
        }
    }
    Ok(())
}

/// Returns a value of the file's key-value metadata.
pub(super) fn value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

/// Copies a pipe's content to a file without a name, because Parquet is read from its end.
fn spool(pipe: &mut dyn Read) -> io::Result<File> {
    let mut file = temporary()?;
    io::copy(pipe, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn shorten(text: &str) -> String {
    text.chars().take(20).collect()
}
