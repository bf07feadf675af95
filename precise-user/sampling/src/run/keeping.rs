//! Storage for the rows of a live run while it goes on, so that memory does not grow with its
//! length.

use std::{
    fs::{self, File},
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::allocator;
use super::naming::RowSink;
use crate::error::{ErrorClass, Remedy, SamplingError};
use precise_capture::FileOutput;
use precise_capture::temporary;
use precise_capture::{CaptureFile as _, CaptureWriter, ReadError, ReadLimits, WantedParts, WriteError};
use precise_model::{Capture, Meta, Projection, Row};

/// Limits for showing the capture at the end of a run: about 200 MB for the rows, and 1 GB for what
/// they name while it is read. Larger captures are read from the file.
const AT_THE_END: ReadLimits = ReadLimits { rows: 1 << 20, bytes: 1 << 30 };

/// Writes rows as they are named, until the first error.
pub struct Writing {
    /// The capture, or why it cannot be written.
    pub writer: Result<CaptureWriter, WriteError>,
    /// The partial file that stays after an error.
    pub partial: Option<PathBuf>,
}

impl Writing {
    /// Writes to this capture.
    pub fn to(writer: CaptureWriter) -> Self {
        Self { writer: Ok(writer), partial: None }
    }

    /// Returns the capture, or why it could not be written.
    pub fn written(self) -> Result<CaptureWriter, SamplingError> {
        self.writer.map_err(|error| {
            let kept = self.partial.map(|partial| {
                format!(" The samples until then are in {}, which can be read.", partial.display())
            });
            SamplingError::new(ErrorClass::Failed, format!("{error}{}", kept.unwrap_or_default()))
        })
    }
}

impl RowSink for Writing {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        let Ok(writer) = &mut self.writer else { return false };
        let groups = writer.row_groups();
        if let Err(error) = writer.append_epoch(named, rows) {
            self.partial = writer.partial().map(Path::to_owned);
            self.writer = Err(error);
            return false;
        }
        if writer.row_groups() > groups {
            // Encoding a row group takes memory in proportion to its rows, for a moment.
            allocator::give_back();
        }
        true
    }
}

/// The capture file of a run in progress.
#[derive(Debug)]
pub enum Keeping {
    /// The requested file.
    InPlace(PathBuf),
    /// A temporary file without a name.
    Aside {
        /// The temporary file.
        file: File,
        /// Where to copy the capture in the end: a pipe, for example. `None`: nowhere.
        target: Option<PathBuf>,
    },
}

impl Keeping {
    /// Starts the capture of a run. Writes to `target`; or, if `target` is missing or is not a file
    /// that can be read back, to a temporary file without a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created.
    pub fn start(target: Option<&Path>) -> Result<(Self, CaptureWriter), WriteError> {
        let in_place = target.filter(|target| {
            *target != Path::new("-")
                && fs::metadata(target).map_or(true, |known| known.is_file() || known.is_dir())
        });
        if let Some(target) = in_place {
            let writer = CaptureWriter::create(target)?.keep_old()?;
            return Ok((Self::InPlace(target.to_owned()), writer));
        }
        let failed = |source| WriteError::Io { path: std::env::temp_dir(), source };
        let file = temporary().map_err(failed)?;
        let stream = file.try_clone().map_err(failed)?;
        let writer = CaptureWriter::to_stream(Box::new(stream))?;
        Ok((Self::Aside { file, target: target.map(Path::to_owned) }, writer))
    }

    /// Completes the capture.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be completed.
    pub fn finish(self, writer: CaptureWriter, meta: &Meta) -> Result<Kept, SamplingError> {
        let failed = |what: String| SamplingError::new(ErrorClass::Failed, what);
        let old = writer.finish(meta).map_err(|error| failed(error.to_string()))?;
        if let Self::Aside { file, target: Some(target) } = &self {
            let copied = begin(file).and_then(|mut file| {
                let mut output = FileOutput::create(target)?;
                io::copy(&mut file, &mut output)?;
                output.commit().map(|_| ())
            });
            copied.map_err(|source| failed(WriteError::Io { path: target.clone(), source }.to_string()))?;
        }
        Ok(Kept { keeping: self, old })
    }
}

/// Returns the file, positioned at its start.
fn begin(mut file: &File) -> io::Result<File> {
    file.seek(SeekFrom::Start(0))?;
    file.try_clone()
}

/// The capture of a finished run. If no file was requested, the capture is deleted when this is
/// dropped.
#[derive(Debug)]
pub struct Kept {
    keeping: Keeping,
    old: Option<PathBuf>,
}

impl Kept {
    /// Returns the name that the capture has now which this one has replaced; `None` if there was
    /// none.
    pub fn old(&self) -> Option<&Path> {
        self.old.as_deref()
    }

    /// Reads the capture. [`AT_THE_END`] limits the number of its rows in memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be read, or has too many rows.
    pub fn read(&self) -> Result<Capture, SamplingError> {
        self.read_parts(&|_| Projection::EVERYTHING)
    }

    /// Reads the capture like [`Self::read`], but of its rows only the parts that `wanted` returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be read, or has too many rows.
    pub fn read_parts(&self, wanted: &WantedParts<'_>) -> Result<Capture, SamplingError> {
        match &self.keeping {
            Keeping::InPlace(path) => Capture::read_parts(path, &AT_THE_END, wanted).map_err(|error| {
                let what = format!("the capture was written, but is not shown: {error}");
                let failure = SamplingError::new(ErrorClass::Failed, what);
                match error {
                    ReadError::TooLarge { .. } | ReadError::Memory { .. } => {
                        failure.remedy(Remedy::ReadLater)
                    }
                    _ => failure,
                }
            }),
            Keeping::Aside { file, .. } => {
                let label = "the capture of this run";
                begin(file)
                    .map_err(|source| ReadError::Unreadable { path: label.to_owned(), source })
                    .and_then(|file| Capture::read_file_parts(file, label, &AT_THE_END, wanted))
                    .map_err(|error| SamplingError::new(ErrorClass::Failed, error.to_string()))
            }
        }
    }
}
