//! Archives: captures under a label, such as the id of a deploy, in a folder or in an object store.
//! They are written once, and every view can read them.
//!
//! ```text
//! PLACE/LABEL/20261121T190000Z-HOST-precise.parquet     a capture
//! PLACE/LABEL/20261121T190000Z-HOST-plain.parquet       its pair: the same without precision
//! PLACE/LABEL/20261121T190000Z-HOST.json                what they are (`precise schema archive`)
//! ```
//!
//! Names sort by time. The captures are written before the file that lists them, so every listed
//! capture exists.

mod fleet;
mod keep;
mod list;
mod place;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "s3")]
mod s3_client;
mod store;
#[cfg(test)]
mod tests;

pub use fleet::fleet_bucket;
pub use keep::{Archive, Archived, PairSide, keep, keep_rolling};
pub use list::{StoredFile, list};
pub use place::{ArchivePlace, Label};

use std::path::Path;

use crate::error::{ExitClass, Failure};
use precise_capture::{CaptureFile as _, ReadError, ReadLimits, WantedParts};
use precise_model::{Capture, CompactSort as _, Projection};
use store::Store;

/// Size in bytes of the largest capture that is fetched from an object store.
pub const LARGEST: u64 = 1 << 30;

/// Reads a capture from a file, from standard input (`-`), or from an object of a store. The
/// reference may also be a label, which is a folder of an archive; then its newest precise capture
/// is read.
///
/// # Errors
///
/// Returns an error if the capture does not exist, may not be read, or is not a capture. Also
/// returns an error if a label has captures of several hosts and the reference does not name one.
pub fn read(reference: &Path) -> Result<Capture, Failure> {
    read_parts(reference, &|_| Projection::EVERYTHING)
}

/// Reads a capture like [`read`], but of its rows only the parts that `wanted` returns.
///
/// # Errors
///
/// Returns an error like [`read`].
pub fn read_parts(reference: &Path, wanted: &WantedParts<'_>) -> Result<Capture, Failure> {
    let limits = ReadLimits::default();
    let place = ArchivePlace::parse(reference)?;
    let unreadable = |error: ReadError| Failure::new(ExitClass::BadFile, error.to_string());
    match &place {
        ArchivePlace::Folder(path) if !path.is_dir() => {
            Capture::read_parts(path, &limits, wanted).map_err(unreadable)
        }
        _ => {
            let (store, name) = match place.object() {
                Some((folder, name)) => (Store::open(&folder)?, name),
                None => {
                    let store = Store::open(&place)?;
                    let name = choose(&store.list()?, &place)?;
                    (store, name)
                }
            };
            let label = format!("{}/{name}", store.place());
            let file = store.fetch(&name, LARGEST)?;
            Capture::read_file_parts(file, &label, &limits, wanted).map_err(unreadable)
        }
    }
}

/// Returns the capture that a label stands for: the newest precise one. Without a precise one it is
/// the newest that has both kinds of events, else the newest.
fn choose(names: &[String], place: &ArchivePlace) -> Result<String, Failure> {
    let mut captures: Vec<keep::CaptureName> =
        names.iter().filter_map(|name| keep::CaptureName::parse(name)).collect();
    captures.compact_sort_by(|a, b| (a.kind, &b.time, &a.text).cmp(&(b.kind, &a.time, &b.text)));
    let Some(newest) = captures.first() else {
        return Err(Failure::new(ExitClass::BadFile, format!("{place} has no archived captures")).advise(
            "`precise archive --label LABEL` creates them; the last part of the place is the label.",
        ));
    };
    if let Some(other) = captures.iter().find(|capture| capture.host != newest.host) {
        let names: Vec<_> =
            captures.iter().take(6).map(|capture| format!("  {place}/{}", capture.text)).collect();
        return Err(Failure::new(
            ExitClass::Usage,
            format!("{place} has captures of several hosts ({}, {}): name one host", newest.host, other.host),
        )
        .advise(names.join("\n")));
    }
    Ok(newest.text.clone())
}
