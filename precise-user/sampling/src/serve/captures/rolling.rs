//! The captures of a run, one after the other.

use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use precise_capture::WriteError;
use precise_model::{Capture, Epoch, Meta, Row};

use super::CapturesOptions;
use super::counts::{CaptureCounts, Uncaptured};
use super::folder::{CaptureFolder, mark_for_upload, unmark};
use super::segment::CaptureSegment;
use super::upload::Uploader;
use crate::error::SamplingError;
use crate::serve::so_far::{EpochStates, RunSoFar};
use crate::top::TopState;

/// How long nothing is written after the disk was full and nothing could be removed, or after
/// another error.
const PAUSE: Duration = Duration::from_secs(10);

/// The captures of a run: the naming thread adds rows, the run loop adds the state at the end of
/// each epoch. Only the naming thread writes, so a slow disk never delays sampling.
#[derive(Clone)]
pub(crate) struct Rolling {
    state: Arc<Mutex<Writing>>,
    states: EpochStates,
    counts: Arc<CaptureCounts>,
}

struct Writing {
    folder: CaptureFolder,
    length_ns: u64,
    uploader: Option<Uploader>,
    draft: Meta,
    segment: Option<CaptureSegment>,
    so_far: RunSoFar,
    /// Nothing is written before this.
    paused: Option<(Instant, Uncaptured)>,
    counts: Arc<CaptureCounts>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rolling {
    /// Opens the folder for a run that `draft` describes, and starts the thread that uploads.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created, or the thread cannot be started.
    pub fn start(options: CapturesOptions, draft: Meta) -> Result<Self, SamplingError> {
        let CapturesOptions { folder: path, length, retention, upload } = options;
        let shown = path.display().to_string();
        let folder = CaptureFolder::open(path, retention).map_err(|error| {
            SamplingError::failed(format!("cannot use the folder {shown} for captures"), error)
        })?;
        let counts = Arc::new(CaptureCounts::default());
        folder.tidy(&counts);
        let start = |upload| Uploader::start(upload, folder.not_uploaded(), counts.clone());
        let uploader = upload.map(start).transpose()?;
        let states = EpochStates::default();
        let writing = Writing {
            folder,
            length_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            uploader,
            segment: None,
            so_far: RunSoFar::new(&draft, states.clone()),
            draft,
            paused: None,
            counts: counts.clone(),
        };
        Ok(Self { state: Arc::new(Mutex::new(writing)), states, counts })
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<CaptureCounts> {
        self.counts.clone()
    }

    /// Adds the state at the end of the next epoch. Called after the epoch was handed to naming,
    /// and before the next one.
    pub fn state(&self, state: TopState) {
        self.states.add(state);
    }

    /// Adds the rows of the next epoch, which is the last of `named`.
    pub fn take(&self, named: &mut Capture, rows: &[Row]) {
        let Some(epoch) = named.meta.epochs.last().copied() else { return };
        let mut writing = lock(&self.state);
        if let Some(state) = writing.so_far.end_epoch() {
            let notes = state.notes.clone();
            writing.end_epoch(notes);
        }
        writing.draft.start_unix_ns = named.meta.start_unix_ns;
        writing.epoch(named, rows, epoch);
    }

    /// Completes the last capture, after all rows and states have come. Waits for its upload for
    /// some seconds.
    pub fn end(&self) {
        let mut writing = lock(&self.state);
        if let Some(state) = writing.so_far.end_last_epoch() {
            let notes = state.notes.clone();
            writing.end_epoch(notes);
        }
        writing.finish();
        if let Some(uploader) = writing.uploader.take() {
            uploader.end();
        }
    }
}

impl Writing {
    /// Takes what the run loop noted in the last epoch, and completes a capture that is long
    /// enough.
    fn end_epoch(&mut self, notes: Vec<String>) {
        if let Some(segment) = &mut self.segment {
            segment.note(notes);
        }
        if self.segment.as_ref().is_some_and(|segment| segment.length_ns() >= self.length_ns) {
            self.finish();
        }
    }

    /// Writes the rows of an epoch, to a new capture if there is none.
    fn epoch(&mut self, named: &mut Capture, rows: &[Row], epoch: Epoch) {
        let written = self.append(named, rows, epoch);
        let samples = rows.iter().map(|row| row.measures.count).sum::<u64>();
        match written {
            Ok(()) => {}
            Err(Refused::Paused(why)) => self.counts.failed(why, 0, samples),
            Err(Refused::Write(error)) => {
                // A capture that could not be begun has none of the samples.
                let of_capture = self.segment.take().map(|segment| segment.samples());
                self.failed(&error, of_capture.unwrap_or(samples));
            }
        }
        self.so_far.add(rows);
    }

    fn append(&mut self, named: &mut Capture, rows: &[Row], epoch: Epoch) -> Result<(), Refused> {
        match self.paused {
            Some((until, why)) if Instant::now() < until => return Err(Refused::Paused(why)),
            _ => self.paused = None,
        }
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let start_unix_ns = self.draft.start_unix_ns.saturating_add(epoch.start_ns);
                let path = self.folder.free(start_unix_ns);
                let before = self.so_far.begin_part(epoch.start_ns);
                none.insert(CaptureSegment::start(path, &self.draft, epoch.start_ns, before)?)
            }
        };
        Ok(segment.append(named, rows, epoch)?)
    }

    /// Completes the capture that is being written, if there is one.
    fn finish(&mut self) {
        let Some(segment) = self.segment.take() else { return };
        let samples = segment.samples();
        let path = segment.path().to_owned();
        if self.uploader.is_some() {
            mark_for_upload(&path);
        }
        match segment.finish(&self.draft, &self.so_far) {
            Ok(()) => {
                self.counts.written.fetch_add(1, Relaxed);
                self.counts.last_ns.store(crate::run::running::unix_ns(), Relaxed);
                self.folder.tidy(&self.counts);
                if let Some(uploader) = &self.uploader {
                    uploader.add(path);
                }
            }
            Err(error) => {
                unmark(&path);
                self.failed(&error, samples);
            }
        }
    }

    /// Counts a capture that could not be written. Its partial file, if there is one, stays. If the
    /// disk is full, the oldest capture makes room for the next one.
    fn failed(&mut self, error: &WriteError, samples: u64) {
        let why = match error {
            WriteError::Io { source, .. } if is_full(source.kind()) => Uncaptured::DiskFull,
            _ => Uncaptured::WriteError,
        };
        self.counts.failed(why, 1, samples);
        let has_room = why == Uncaptured::DiskFull && self.folder.make_room(&self.counts);
        if !has_room {
            self.paused = Some((Instant::now() + PAUSE, why));
        }
        self.folder.tidy(&self.counts);
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Why rows were not written.
enum Refused {
    /// After an error, nothing is written for a while.
    Paused(Uncaptured),
    Write(WriteError),
}

impl From<WriteError> for Refused {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

#[cfg(test)]
#[path = "rolling_tests.rs"]
mod tests;
