//! Checkpoints: what makes the row groups of an unfinished capture readable.
//!
//! Parquet describes all row groups in a footer at the end of the file, which a run that crashes
//! never writes. So a long run writes a checkpoint now and then: a footer for the row groups since
//! the checkpoint before it, with the metadata so far. A reader finds the last checkpoint from the
//! end of the file, and each refers to the one before it. In a finished capture no reader looks at
//! them: they are bytes between row groups.
//!
//! | bytes | content |
//! | --- | --- |
//! | 16 | [`MARK`] |
//! | 8 | the position of the checkpoint in the file |
//! | 8 | the position of the checkpoint before it; 0 if there is none |
//! | 8 | the length of the footer |
//! | … | the footer, as at the end of a Parquet file; its epochs are those since the one before |
//!
//! Numbers are little-endian.

use std::time::{Duration, Instant};

use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use precise_model::{Epoch, Meta};

use super::claims::{self, JSON};
use super::file::{META_KEY, SCHEMA_KEY};
use super::group_file::FOOTER_END;
use super::row_group::SHORTEST_GROUP;

/// The first bytes of a checkpoint.
const MARK: &[u8; 16] = b"\0precise:so-far\n";
/// The length of a checkpoint without its footer, in bytes.
const HEAD: u64 = 40;
/// The key of a checkpoint's footer that tells it from the footer of a whole capture.
pub(super) const CUT_KEY: &str = "precise.cut";
/// How many bytes are searched at a time for the last checkpoint.
const WINDOW: u64 = 1 << 20;
/// How many checkpoints may be unreadable. A crash damages at most the last one.
const DAMAGED: usize = 4;

/// The time before the first checkpoint. A run that is shorter has none.
const FIRST: Duration = Duration::from_secs(15);
/// The shortest time between two checkpoints: as long as the rows of a row group are collected, so
/// that as many rows wait in the first minutes of a run as later.
const SHORTEST: Duration = SHORTEST_GROUP;
/// The longest time between two checkpoints.
const LONGEST: Duration = Duration::from_secs(600);
/// Between these, a checkpoint comes after this part of the run. Each checkpoint ends a row group.
/// Readers hold the descriptions of all, so their number must not grow with the length of the run.
const PART: u32 = 16;

/// Decides when the next checkpoint is due.
#[derive(Debug)]
pub(super) struct Schedule {
    begin: Instant,
    /// When the last checkpoint was; `None` before the first.
    last: Option<Instant>,
    first: Duration,
    /// The shortest and the longest time; in tests both are the same.
    shortest: Duration,
    longest: Duration,
}

impl Schedule {
    pub fn begin() -> Self {
        Self { first: FIRST, longest: LONGEST, ..Self::every(SHORTEST) }
    }

    /// A checkpoint is due each time that this has passed, however long the run is.
    pub fn every(pause: Duration) -> Self {
        Self { begin: Instant::now(), last: None, first: pause, shortest: pause, longest: pause }
    }

    /// Returns whether a checkpoint is due. If so, the next one is due later.
    pub fn is_due(&mut self) -> bool {
        let running = self.begin.elapsed();
        let due = match self.last {
            Some(last) => last.elapsed() >= (running / PART).max(self.shortest).min(self.longest),
            None => running >= self.first,
        };
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

/// Returns the pairs of a checkpoint's footer. `meta` is the metadata with the epochs since the
/// checkpoint before it.
pub(super) fn pairs(meta: &Meta) -> serde_json::Result<Vec<KeyValue>> {
    let json = serde_json::to_string(meta)?;
    let pairs = [(SCHEMA_KEY, meta.schema.to_string()), (META_KEY, json), (CUT_KEY, String::new())];
    Ok(pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec())
}

/// Returns a checkpoint that will be at `position`, with the footer of the row groups since the one
/// at `previous`.
pub(super) fn encode(position: u64, previous: u64, footer: &[u8]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    for number in [position, previous, footer.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(footer);
    bytes
}

/// A checkpoint that was found in a file.
struct Checkpoint {
    position: u64,
    previous: u64,
    footer: ParquetMetaData,
    meta: Meta,
    /// The memory that both take, in bytes.
    kept: u64,
}

/// The parts of an unfinished capture.
pub(super) struct CheckpointParts {
    /// The footer of the whole file, as far as it was written.
    pub footer: ParquetMetaData,
    /// The metadata, as far as it was known.
    pub meta: Meta,
    /// The memory that both take, in bytes.
    pub kept: u64,
}

/// Returns what can be read of an unfinished capture; `None` if it has no checkpoint. The footers
/// and the metadata of all checkpoints take at most `limit` bytes. The error says what is wrong
/// with the file.
pub(super) fn recover<R: ChunkReader>(file: &R, limit: u64) -> Result<Option<CheckpointParts>, String> {
    let Some(last) = find_last(file, limit)? else { return Ok(None) };
    let mut kept = last.kept;
    let (mut parts, mut position, mut end) = (Vec::new(), last.previous, last.position);
    parts.push(last);
    while position != 0 {
        // Checkpoints that overlap would be read more often than the file is long.
        let found = read_at(file, position, end, limit.saturating_sub(kept))?;
        let found = found.ok_or_else(|| format!("its checkpoint at byte {position} cannot be read"))?;
        (position, end) = (found.previous, found.position);
        kept = kept.saturating_add(found.kept);
        parts.push(found);
    }
    let (mut groups, mut epochs, mut rest) = (Vec::new(), Vec::new(), None);
    for Checkpoint { footer, mut meta, .. } in parts.into_iter().rev() {
        groups.extend_from_slice(footer.row_groups());
        epochs.append(&mut meta.epochs);
        rest = Some((footer, meta));
    }
    let Some((footer, mut meta)) = rest else { return Ok(None) };
    meta.notes.push(note(epochs.last()));
    meta.epochs = epochs;
    let file = footer.file_metadata();
    let rows = groups.iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
    let whole = FileMetaData::new(
        file.version(),
        rows.ok_or("its number of rows is too large")?,
        None,
        file.key_value_metadata().cloned(),
        file.schema_descr_ptr(),
        None,
    );
    Ok(Some(CheckpointParts { footer: ParquetMetaData::new(whole, groups), meta, kept }))
}

/// Returns the note on an unfinished capture.
fn note(last: Option<&Epoch>) -> String {
    let seconds = last.map_or(0.0, |epoch| epoch.end_ns as f64 / 1e9);
    format!(
        "this recording was cut off: precise was killed, or the machine failed, before its end. The last \
         epoch that is kept ended {seconds:.1} s after the start. The ledger, the coverage and the verdict of the \
         whole run are missing"
    )
}

/// Searches from the end of the file for the last checkpoint that can be read.
fn find_last<R: ChunkReader>(file: &R, limit: u64) -> Result<Option<Checkpoint>, String> {
    let mut end = file.len();
    let mut damaged = 0;
    let mut window_end = end;
    while window_end > HEAD && damaged < DAMAGED {
        let begin = window_end.saturating_sub(WINDOW);
        let length = usize::try_from(window_end - begin).map_err(|error| error.to_string())?;
        let bytes = file.get_bytes(begin, length).map_err(|error| error.to_string())?;
        for at in (0..bytes.len().saturating_sub(HEAD as usize - 1)).rev() {
            let position = begin + at as u64;
            if bytes.get(at..at + MARK.len()) != Some(MARK) || number(&bytes, at + 16) != Some(position) {
                continue;
            }
            if let Some(found) = read_at(file, position, end, limit)? {
                return Ok(Some(found));
            }
            end = position;
            damaged += 1;
        }
        if begin == 0 {
            break;
        }
        // A mark may lie across two windows.
        window_end = begin + HEAD - 1;
    }
    Ok(None)
}

/// Reads the checkpoint at `position`, which must end at `end` or before. `None` if there is none
/// that can be read. An error if it would take more than `limit` bytes of memory.
fn read_at<R: ChunkReader>(
    file: &R,
    position: u64,
    end: u64,
    limit: u64,
) -> Result<Option<Checkpoint>, String> {
    let read = |from: u64, length: u64| {
        let length = usize::try_from(length).map_err(|error| error.to_string())?;
        file.get_bytes(from, length).map_err(|error| error.to_string())
    };
    let Some(body) = position.checked_add(HEAD).filter(|body| *body <= end) else { return Ok(None) };
    let head = read(position, HEAD)?;
    let numbers = [16, 24, 32].map(|at| number(&head, at));
    let [Some(own), Some(previous), Some(length)] = numbers else { return Ok(None) };
    let fits = body.checked_add(length).is_some_and(|last| last <= end) && length > FOOTER_END as u64;
    // Positions that only fall end at the first checkpoint.
    if !head.starts_with(MARK) || own != position || previous >= position || !fits {
        return Ok(None);
    }
    let bounded = |bytes: u64| match bytes > limit {
        true => Err(format!(
            "its checkpoint at byte {position} claims {bytes} bytes of memory, more than {limit}"
        )),
        false => Ok(bytes),
    };
    bounded(length)?;
    let thrift = read(body, length - FOOTER_END as u64)?;
    let Ok(claimed) = claims::of_footer(&thrift) else { return Ok(None) };
    let kept = bounded((claimed as u64).saturating_add(length))?;
    let Ok(footer) = ParquetMetaDataReader::decode_metadata(&thrift) else { return Ok(None) };
    let pairs = footer.file_metadata().key_value_metadata();
    let meta = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == META_KEY)?.value.as_deref());
    let kept = bounded(kept.saturating_add(JSON * meta.map_or(0, str::len) as u64))?;
    let Some(Ok(meta)) = meta.map(serde_json::from_str) else { return Ok(None) };
    Ok(Some(Checkpoint { position, previous, footer, meta, kept }))
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
