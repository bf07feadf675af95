//! The place of a fleet's captures and tables, wherever its bytes are.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use precise_capture::{RangeSource, ReadError};

/// A folder, or a prefix in an object store. Names have slashes, and none at their ends.
pub trait FleetBucket: Send + Sync {
    /// Returns the names of the folders directly in a folder; the empty name is the place itself. A
    /// folder that does not exist has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed.
    fn folders(&self, folder: &str) -> Result<Vec<String>, FleetError>;

    /// Returns the objects directly in a folder. A folder that does not exist has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed.
    fn objects(&self, folder: &str) -> Result<Vec<FleetObject>, FleetError>;

    /// Returns `length` bytes of an object from `start`; `None` if the object does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be read, or has fewer bytes.
    fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, FleetError>;

    /// Writes an object unless one of this name exists; nobody sees a part of it. Returns whether
    /// it was written.
    ///
    /// # Errors
    ///
    /// Returns an error if the object cannot be written. It may have been written all the same.
    fn create(&self, name: &str, bytes: Bytes) -> Result<bool, FleetError>;

    /// Returns whether small ranges cost little, as those of a file do.
    fn is_near(&self) -> bool;
}

/// An object of a bucket, not read yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetObject {
    /// Name below the place.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// When the object was written, in nanoseconds since the Unix epoch, by the clock of the store.
    pub modified_ns: u64,
}

/// The reason why the tables of a fleet could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The bucket refused, or could not be reached.
    #[error("{0}")]
    Bucket(Box<dyn std::error::Error + Send + Sync>),
    /// A table of the fleet is damaged.
    #[error("{0}")]
    Table(#[from] ReadError),
    /// A manifest is damaged, or missing what it must have.
    #[error("the manifest {name} cannot be read: {what}. Remove it, and compact its hour again.")]
    Manifest {
        /// The name of the manifest.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Other compactors were always faster.
    #[error("the tables of {period} change all the time: other compactors work on them. Try again.")]
    Busy {
        /// The hour or the day.
        period: String,
    },
    /// A table could not be encoded: a bug.
    #[error("cannot encode the table {name}: {what}. This is a bug in precise; please report it.")]
    Encode {
        /// The name of the table.
        name: String,
        /// The error of the encoder.
        what: String,
    },
}

/// An object as a source of ranges.
struct ObjectSource {
    bucket: Arc<dyn FleetBucket>,
    name: String,
    bytes: u64,
    /// The first error of the bucket: what reads a damaged file and what reads one that cannot be
    /// reached are told apart by it.
    failed: Arc<Mutex<Option<FleetError>>>,
}

impl RangeSource for ObjectSource {
    fn length(&self) -> u64 {
        self.bytes
    }

    fn range(&self, start: u64, length: usize) -> io::Result<Bytes> {
        match self.bucket.range(&self.name, start, length) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => {
                let text = error.to_string();
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                Err(io::Error::other(text))
            }
        }
    }

    fn is_near(&self) -> bool {
        self.bucket.is_near()
    }
}

/// Calls `read` with the ranges of an object. An error of the bucket is one of the whole call;
/// otherwise the result is that of `read`.
pub(crate) fn with_ranges<T>(
    bucket: &Arc<dyn FleetBucket>,
    (name, bytes): (&str, u64),
    read: impl FnOnce(Arc<dyn RangeSource>) -> Result<T, ReadError>,
) -> Result<Result<T, ReadError>, FleetError> {
    let failed = Arc::new(Mutex::new(None));
    let source = ObjectSource {
        bucket: Arc::clone(bucket),
        name: name.to_owned(),
        bytes,
        failed: Arc::clone(&failed),
    };
    let result = read(Arc::new(source));
    match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(result),
    }
}
