//! The folder of captures: names, and which ones are kept.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use chrono::DateTime;

use super::counts::{CaptureCounts, Removed};

/// The time in the names of captures, so that names sort by time.
const TIME: &str = "%Y%m%dT%H%M%SZ";
const ENDING: &str = ".parquet";
/// The end of the name of an empty file beside a capture that is not uploaded yet.
const MARK: &str = ".upload";

/// Which captures are kept. The newest complete one always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The bytes of all captures together.
    pub bytes: u64,
    /// The age of a capture.
    pub age: Duration,
}

/// The folder of the captures of a run.
#[derive(Debug)]
pub(super) struct CaptureFolder {
    path: PathBuf,
    retention: Retention,
}

/// A capture in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
    /// Whether it is complete. The others are of runs that were killed or that filled the disk.
    whole: bool,
}

impl CaptureFolder {
    /// Opens the folder, and creates it for this user only if it does not exist.
    pub fn open(path: PathBuf, retention: Retention) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self { path, retention })
    }

    /// Returns a free path for a capture that begins at this time.
    pub fn free(&self, start_unix_ns: u64) -> PathBuf {
        let time = DateTime::from_timestamp_nanos(i64::try_from(start_unix_ns).unwrap_or_default());
        let name = format!("precise-{}", time.format(TIME));
        let path = |number: u32| match number {
            1 => self.path.join(format!("{name}{ENDING}")),
            _ => self.path.join(format!("{name}-{number}{ENDING}")),
        };
        // Short captures, and clocks that were set back.
        (1..=64).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(65))
    }

    /// Removes the captures that are no longer kept, and counts what stays. Not called while a
    /// capture is written, whose partial file would be one of them.
    pub fn tidy(&self, counts: &CaptureCounts) {
        let mut found = self.found();
        for (at, why) in outdated(&found, self.retention, SystemTime::now()).into_iter().rev() {
            if fs::remove_file(&found[at].path).is_ok() {
                found.remove(at);
                counts.removed(why);
            }
        }
        self.forget_marks();
        counts.kept.store(found.len() as u64, Relaxed);
        counts.bytes.store(found.iter().map(|capture| capture.bytes).sum(), Relaxed);
    }

    /// Removes the oldest capture, so that a full disk has room. Returns whether there was one
    /// beside the newest.
    pub fn make_room(&self, counts: &CaptureCounts) -> bool {
        let found = self.found();
        let newest = newest(&found);
        let oldest = (0..found.len()).find(|at| Some(*at) != newest);
        let removed = oldest.is_some_and(|at| fs::remove_file(&found[at].path).is_ok());
        if removed {
            counts.removed(Removed::DiskFull);
        }
        removed
    }

    /// Returns the complete captures that an earlier run marked and did not upload, the oldest
    /// first.
    pub fn not_uploaded(&self) -> Vec<PathBuf> {
        let waits = |capture: &Found| capture.whole && mark(&capture.path).exists();
        self.found().into_iter().filter(waits).map(|capture| capture.path).collect()
    }

    /// Removes the marks of captures that are gone.
    fn forget_marks(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let capture = path.file_name().and_then(|name| name.to_str()?.strip_suffix(MARK));
            let gone = capture.filter(|name| whole(name) == Some(true) && !self.path.join(name).exists());
            if gone.is_some() {
                // A mark without a capture means nothing; the next call tries again.
                let _stays = fs::remove_file(path);
            }
        }
    }

    /// Returns the captures of this folder, the oldest first. A folder that cannot be read has
    /// none; the error of the next capture says why.
    fn found(&self) -> Vec<Found> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let of = |entry: fs::DirEntry| {
            let path = entry.path();
            let whole = whole(path.file_name()?.to_str()?)?;
            let there = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Found { bytes: there.len(), written: there.modified().ok()?, whole, path })
        };
        let mut found: Vec<Found> = entries.filter_map(of).collect();
        // Of names that begin alike, the shorter one has the smaller number.
        let age = |of: &Found| (of.written, of.path.as_os_str().len(), of.path.clone());
        found.sort_by_cached_key(age);
        found
    }
}

/// Returns the path of the mark of a capture.
fn mark(capture: &Path) -> PathBuf {
    let mut path = capture.as_os_str().to_owned();
    path.push(MARK);
    path.into()
}

/// Marks a capture, so that the next run uploads it if this one does not. Called before the capture
/// is complete, so that a run that is killed leaves no complete capture without a mark.
pub(super) fn mark_for_upload(capture: &Path) {
    // Without the mark this run uploads the capture all the same.
    let _unmarked = fs::File::create(mark(capture));
}

/// Removes the mark of a capture that is uploaded, or that never will be.
pub(super) fn unmark(capture: &Path) {
    // A mark that stays makes the next run upload the capture again, which the archive accepts.
    let _stays = fs::remove_file(mark(capture));
}

/// Returns whether a file with this name is a complete capture; `None` if no run would have given
/// it the name, so that files of others are never removed.
fn whole(name: &str) -> Option<bool> {
    let (stem, end) = name.strip_prefix("precise-")?.split_once(ENDING)?;
    let (time, number) = stem.split_once('-').unwrap_or((stem, "1"));
    chrono::NaiveDateTime::parse_from_str(time, TIME).ok()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(number) {
        return None;
    }
    match end.strip_prefix(".partial") {
        Some(number) => number.strip_prefix('.').map_or(number.is_empty(), is_number).then_some(false),
        None => end.is_empty().then_some(true),
    }
}

/// Returns the position of the newest complete capture, or of the newest at all.
fn newest(found: &[Found]) -> Option<usize> {
    found.iter().rposition(|capture| capture.whole).or_else(|| found.len().checked_sub(1))
}

/// Returns the positions of the captures that are no longer kept, in order.
fn outdated(found: &[Found], retention: Retention, now: SystemTime) -> Vec<(usize, Removed)> {
    let newest = newest(found);
    let mut bytes: u64 = found.iter().map(|capture| capture.bytes).sum();
    let mut outdated = Vec::new();
    for (at, capture) in found.iter().enumerate().filter(|(at, _)| Some(*at) != newest) {
        let age = now.duration_since(capture.written).unwrap_or_default();
        let why = if age > retention.age {
            Removed::Age
        } else if bytes > retention.bytes {
            Removed::Bytes
        } else {
            continue;
        };
        bytes -= capture.bytes;
        outdated.push((at, why));
    }
    outdated
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn found(captures: &[(u64, u64, bool)], now: SystemTime) -> Vec<Found> {
        let of = |(minutes, bytes, whole): &(u64, u64, bool)| Found {
            path: PathBuf::from(format!("{minutes}")),
            bytes: *bytes,
            written: now - MINUTE * (*minutes as u32),
            whole: *whole,
        };
        captures.iter().map(of).collect()
    }

    #[test]
    fn the_oldest_go_first_and_the_newest_stays() {
        let now = SystemTime::now();
        let all = [(50, 100, true), (40, 100, false), (30, 100, true), (20, 100, true), (10, 100, false)];
        let outdated = |bytes, minutes| {
            let retention = Retention { bytes, age: MINUTE * minutes };
            outdated(&found(&all, now), retention, now)
        };
        assert_eq!(outdated(500, 60), []);
        assert_eq!(outdated(350, 60), [(0, Removed::Bytes), (1, Removed::Bytes)]);
        assert_eq!(outdated(500, 45), [(0, Removed::Age)]);
        assert_eq!(outdated(400, 45), [(0, Removed::Age)]);
        // The newest complete capture stays, whatever its size and age.
        let kept: Vec<usize> = outdated(1, 1).into_iter().map(|(at, _)| at).collect();
        assert_eq!(kept, [0, 1, 2, 4]);
    }

    #[test]
    fn files_of_others_are_not_captures_of_a_run() {
        for (name, wanted) in [
            ("precise-20261124T231500Z.parquet", Some(true)),
            ("precise-20261124T231500Z-2.parquet", Some(true)),
            ("precise-20261124T231500Z.parquet.partial", Some(false)),
            ("precise-20261124T231500Z-3.parquet.partial.2", Some(false)),
            ("precise-top.parquet", None),
            ("precise.parquet", None),
            ("precise-20261124T231500Z.parquet.old", None),
            ("precise-20261124T231500Z.parquet.partialx", None),
            ("precise-20261124T231500Z-x.parquet", None),
            ("precise-20261324T231500Z.parquet", None),
            ("precise-20261124T231500Z.parquet.upload", None),
            ("20261124T231500Z-node-precise.parquet", None),
        ] {
            assert_eq!(whole(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_folder_is_private_and_its_names_are_times() {
        use std::os::unix::fs::PermissionsExt as _;
        let within = tempfile::tempdir().unwrap();
        let path = within.path().join("a/captures");
        let folder = CaptureFolder::open(path.clone(), Retention { bytes: 10, age: MINUTE }).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let first = folder.free(1_700_000_000_000_000_000);
        assert_eq!(first, path.join("precise-20231114T221320Z.parquet"));
        fs::write(&first, "12345678").unwrap();
        let second = folder.free(1_700_000_000_000_000_000);
        assert_eq!(second, path.join("precise-20231114T221320Z-2.parquet"));
        fs::write(&second, "12345678").unwrap();
        fs::write(path.join("notes.txt"), "of the operator").unwrap();
        let counts = CaptureCounts::default();
        folder.tidy(&counts);
        assert_eq!((counts.table().kept, counts.table().bytes), (1, 8));
        assert!(!folder.make_room(&counts), "the newest stays");
        assert!(second.exists() && !first.exists() && path.join("notes.txt").exists());
    }

    #[test]
    fn a_mark_waits_for_its_capture_and_goes_with_it() {
        let within = tempfile::tempdir().unwrap();
        let path = |name: &str| within.path().join(name);
        let retention = Retention { bytes: u64::MAX, age: MINUTE };
        let folder = CaptureFolder::open(within.path().to_owned(), retention).unwrap();
        let [done, waits, gone] =
            [1, 2, 3].map(|minute| path(&format!("precise-20261124T23{minute:02}00Z.parquet")));
        for capture in [&done, &waits, &gone] {
            fs::write(capture, "").unwrap();
            mark_for_upload(capture);
        }
        mark_for_upload(&path("precise-20261124T230400Z.parquet"));
        fs::write(path("notes.parquet.upload"), "of the operator").unwrap();
        unmark(&done);
        fs::remove_file(&gone).unwrap();
        folder.tidy(&CaptureCounts::default());
        assert_eq!(folder.not_uploaded(), std::slice::from_ref(&waits));
        let mark = mark(&waits);
        let mut names: Vec<_> =
            fs::read_dir(within.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert_eq!(names, [path("notes.parquet.upload"), done, waits, mark]);
    }
}
