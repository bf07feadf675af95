//! Places as the buckets of a fleet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use precise_capture::{create_whole, folder_of};
use precise_fleet::{FleetBucket, FleetError, FleetObject};

use super::ArchivePlace;
use super::list::Found;
use super::store::{Store, make_folder, unreadable, unwritable};
use crate::error::Failure;

/// Opens a place as the bucket of a fleet. This sends no request to an object store yet.
///
/// # Errors
///
/// Returns an error if the place cannot be reached by this build, or by these settings.
pub fn fleet_bucket(place: &ArchivePlace) -> Result<Arc<dyn FleetBucket>, Failure> {
    Ok(match Store::open(place)? {
        Store::Folder(path) => Arc::new(FolderBucket(path)),
        #[cfg(feature = "s3")]
        Store::Bucket(bucket) => Arc::new(ObjectBucket(bucket)),
    })
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        use crate::error::ExitClass;
        match error {
            FleetError::Bucket(inner) => match inner.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(other) => Self::new(ExitClass::Failed, other.to_string()),
            },
            FleetError::Table(_) | FleetError::Manifest { .. } => {
                Self::new(ExitClass::BadFile, error.to_string())
            }
            FleetError::Busy { .. } | FleetError::Encode { .. } => {
                Self::new(ExitClass::Failed, error.to_string())
            }
        }
    }
}

fn refused(failure: Failure) -> FleetError {
    FleetError::Bucket(Box::new(failure))
}

/// Returns the objects that were found in a folder, without those that are being written.
fn objects(folder: &str, found: Vec<Found>) -> Vec<FleetObject> {
    let shown = found.into_iter().filter(|found| !found.name.starts_with('.'));
    let within = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
    shown
        .map(|Found { name, bytes, modified_ns }| FleetObject {
            name: within(name),
            bytes,
            modified_ns: u64::try_from(modified_ns).unwrap_or(0),
        })
        .collect()
}

/// A folder.
struct FolderBucket(PathBuf);

impl FolderBucket {
    fn look(&self, folder: &str) -> Result<(Vec<Found>, Vec<String>), FleetError> {
        let path = if folder.is_empty() { self.0.clone() } else { self.0.join(folder) };
        if !folder.is_empty() && !path.exists() {
            return Ok((Vec::new(), Vec::new()));
        }
        Store::Folder(path).look().map_err(refused)
    }
}

impl FleetBucket for FolderBucket {
    fn folders(&self, folder: &str) -> Result<Vec<String>, FleetError> {
        Ok(self.look(folder)?.1)
    }

    fn objects(&self, folder: &str) -> Result<Vec<FleetObject>, FleetError> {
        Ok(objects(folder, self.look(folder)?.0))
    }

    fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, FleetError> {
        let path = self.0.join(name);
        let read = || {
            let file = File::open(&path)?;
            // A length may come from a damaged file.
            if file.metadata()?.len() < start.saturating_add(length as u64) {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, start)?;
            Ok::<_, io::Error>(Bytes::from(bytes))
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some).map_err(|error| refused(unreadable(&path, &error))),
        }
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<bool, FleetError> {
        let path = self.0.join(name);
        make_folder(folder_of(&path)).map_err(refused)?;
        create_whole(&path, &bytes).map_err(|error| refused(unwritable(&path, &error)))
    }

    fn is_near(&self) -> bool {
        true
    }
}

/// A prefix in an object store.
#[cfg(feature = "s3")]
struct ObjectBucket(super::s3::Bucket);

#[cfg(feature = "s3")]
impl FleetBucket for ObjectBucket {
    fn folders(&self, folder: &str) -> Result<Vec<String>, FleetError> {
        Ok(self.0.look_into(folder).map_err(refused)?.1)
    }

    fn objects(&self, folder: &str) -> Result<Vec<FleetObject>, FleetError> {
        Ok(objects(folder, self.0.look_into(folder).map_err(refused)?.0))
    }

    fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, FleetError> {
        self.0.range(name, start, length).map_err(refused)
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<bool, FleetError> {
        self.0.create(name, bytes).map_err(refused)
    }

    fn is_near(&self) -> bool {
        false
    }
}
