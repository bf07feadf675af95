//! The operations that both kinds of places support.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::ArchivePlace;
use super::list::Found;
use crate::error::{ExitClass, Failure};
use precise_capture::create_whole;

/// What happens to a name that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// It is an error: archives are written only once.
    Refuse,
    /// It is what is to be written: an earlier attempt wrote it, and did not learn that.
    Accept,
}

/// An open place.
pub(super) enum Store {
    Folder(PathBuf),
    #[cfg(feature = "s3")]
    Bucket(super::s3::Bucket),
}

impl Store {
    /// Opens a place. This sends no request to an object store yet.
    pub(super) fn open(place: &ArchivePlace) -> Result<Self, Failure> {
        match place {
            ArchivePlace::Folder(path) => Ok(Self::Folder(path.clone())),
            #[cfg(feature = "s3")]
            ArchivePlace::Bucket { bucket, prefix } => {
                super::s3::Bucket::open(bucket, prefix).map(Self::Bucket)
            }
            #[cfg(not(feature = "s3"))]
            ArchivePlace::Bucket { .. } => Err(Failure::new(
                ExitClass::Unsupported,
                format!("cannot reach {place}: this precise was built without the feature `s3`"),
            )
            .advise("Copy the capture to a file first, or build precise with its default features.")),
        }
    }

    /// Returns the place that was opened.
    pub(super) fn place(&self) -> ArchivePlace {
        match self {
            Self::Folder(path) => ArchivePlace::Folder(path.clone()),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.place(),
        }
    }

    /// Returns the names in the place, without those at deeper levels.
    pub(super) fn list(&self) -> Result<Vec<String>, Failure> {
        match self {
            Self::Folder(path) => {
                let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
                let entries = entries.map_err(|error| unreadable(path, &error))?;
                Ok(entries
                    .into_iter()
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .collect())
            }
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.list(),
        }
    }

    /// Returns the files in the place, and the names of the folders in it. Of a folder, only
    /// regular files: a link may lead out of it, and a pipe would keep its reader waiting.
    pub(super) fn look(&self) -> Result<(Vec<Found>, Vec<String>), Failure> {
        match self {
            Self::Folder(path) => {
                let (mut files, mut folders) = (Vec::new(), Vec::new());
                for entry in fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
                    let entry = entry.map_err(|error| unreadable(path, &error))?;
                    let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.metadata()) else {
                        continue;
                    };
                    if kind.is_dir() {
                        folders.push(name);
                    } else if kind.is_file() {
                        files.push(Found { name, bytes: kind.len(), modified_ns: modified_ns(&kind) });
                    }
                }
                Ok((files, folders))
            }
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.look(),
        }
    }

    /// Returns the named capture as a file. At most `largest` bytes are transferred over a network.
    pub(super) fn fetch(
        &self,
        name: &str,
        #[cfg_attr(not(feature = "s3"), expect(unused, reason = "of what comes over a network"))]
        largest: u64,
    ) -> Result<File, Failure> {
        match self {
            Self::Folder(path) => {
                let path = path.join(name);
                File::open(&path).map_err(|error| unreadable(&path, &error))
            }
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.fetch(name, largest),
        }
    }

    /// Writes bytes under a name that does not exist yet. Never replaces anything.
    pub(super) fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), Failure> {
        match self {
            Self::Folder(folder) => {
                make_folder(folder)?;
                let path = folder.join(name);
                match create_whole(&path, &bytes) {
                    Ok(false) if existing == Existing::Refuse => Err(exists(&path.display().to_string())),
                    Ok(_) => Ok(()),
                    Err(error) => Err(unwritable(&path, &error)),
                }
            }
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => bucket.put(name, bytes, existing),
        }
    }
}

/// Returns the error for a name that exists: archives are written only once.
pub(super) fn exists(what: &str) -> Failure {
    Failure::new(ExitClass::Failed, format!("{what} exists already and is never replaced"))
        .advise("It is the same capture, or another of the same host and second: use another label.")
}

/// Creates a folder for a file. Only the owner may read captures, so a new folder is private too.
pub(super) fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        Failure::new(ExitClass::Failed, format!("cannot create {}: {error}", folder.display()))
    })
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(ExitClass::Failed, format!("cannot write {}: {error}", path.display()))
}

/// Returns when a file was written, in nanoseconds since the Unix epoch.
fn modified_ns(file: &fs::Metadata) -> i64 {
    file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec())
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(ExitClass::BadFile, format!("cannot read {}: {error}", path.display()))
}
