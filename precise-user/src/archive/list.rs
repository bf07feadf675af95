//! Lists the captures of a place: those in it, and those under its labels.

use chrono::NaiveDateTime;

use super::ArchivePlace;
use super::keep::{CaptureName, PairSide, TIME};
use super::store::Store;
use crate::error::Failure;
use precise_model::CompactSort as _;

/// Number of labels that are looked into, those last by name first: labels often have a date.
const MOST_LABELS: usize = 1000;
/// Longest name of a file or a label, in bytes.
const LONGEST_NAME: usize = 200;

/// A file in a place, not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Name below the place: `NAME.parquet` or `LABEL/NAME.parquet`.
    pub name: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// When the file was written, in nanoseconds since the Unix epoch; 0 if that is not known.
    pub modified_ns: i64,
    /// Role of the capture, if the name is one of an archive.
    pub kind: Option<PairSide>,
    /// Host of the capture, if the name is one of an archive.
    pub host: Option<String>,
    /// When the run began, in nanoseconds since the Unix epoch, if the name is one of an archive.
    pub start_ns: Option<i64>,
}

impl StoredFile {
    /// Describes a file by its name; `None` if it is not named like a capture, or if its name is
    /// too long or has characters that must not be shown.
    fn of(label: &str, found: Found) -> Option<Self> {
        let plain =
            |name: &str| name.len() <= LONGEST_NAME && !name.chars().any(precise_model::text::is_unsafe);
        if !found.name.ends_with(".parquet") || !plain(&found.name) || !plain(label) {
            return None;
        }
        let archived = CaptureName::parse(&found.name);
        let start_ns = archived.as_ref().and_then(|name| {
            NaiveDateTime::parse_from_str(&name.time, TIME).ok()?.and_utc().timestamp_nanos_opt()
        });
        let name = if label.is_empty() { found.name } else { format!("{label}/{}", found.name) };
        let (kind, host) = archived.map(|name| (name.kind, name.host)).unzip();
        Some(Self { name, bytes: found.bytes, modified_ns: found.modified_ns, kind, host, start_ns })
    }

    /// Returns the time by which captures are ordered: the start of the run if the name says it,
    /// else when the file was written.
    pub fn time_ns(&self) -> i64 {
        self.start_ns.unwrap_or(self.modified_ns)
    }
}

/// What a store has of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified_ns: i64,
}

/// Returns the captures of a place, newest first: the files in it and under its labels, one level
/// deep. If the place is a file, it is the only one. Nothing is read yet.
///
/// # Errors
///
/// Returns an error if the place cannot be listed.
pub fn list(place: &ArchivePlace) -> Result<Vec<StoredFile>, Failure> {
    let store = Store::open(place)?;
    let (found, mut labels) = store.look()?;
    let mut files: Vec<StoredFile> =
        found.into_iter().filter_map(|found| StoredFile::of("", found)).collect();
    labels.compact_sort_by(|a, b| b.cmp(a));
    for label in labels.into_iter().filter(|label| !label.starts_with('.')).take(MOST_LABELS) {
        // A label that was removed, or that may not be read, does not hide the others.
        let Ok((found, _)) = Store::open(&place.below(&label)).and_then(|store| store.look()) else {
            continue;
        };
        files.extend(found.into_iter().filter_map(|found| StoredFile::of(&label, found)));
    }
    files.compact_sort_by(|a, b| (b.time_ns(), &b.name).cmp(&(a.time_ns(), &a.name)));
    Ok(files)
}
