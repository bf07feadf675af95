//! One capture of a run, while it is written.

use std::path::{Path, PathBuf};

use precise_capture::{CaptureWriter, WriteError};
use precise_model::{Capture, Epoch, Ledger, Meta, Row};

use crate::run::allocator;
use crate::serve::so_far::RunSoFar;

/// The most notes of the run that a capture has.
const MOST_NOTES: usize = 20;

/// A capture that is being written, and what its end needs to know of its start.
pub(super) struct CaptureSegment {
    writer: CaptureWriter,
    path: PathBuf,
    /// The start, in nanoseconds from the start of the run.
    start_ns: u64,
    start_unix_ns: u64,
    /// The epochs so far; their times count from the start of the capture.
    epochs: Vec<Epoch>,
    /// The ledger of each event at the start.
    before: Vec<Ledger>,
    notes: Vec<String>,
    samples: u64,
}

impl CaptureSegment {
    /// Starts a capture with the epoch that begins at `start_ns`. `draft` describes the run.
    pub fn start(
        path: PathBuf,
        draft: &Meta,
        start_ns: u64,
        before: Vec<Ledger>,
    ) -> Result<Self, WriteError> {
        let mut writer = CaptureWriter::create(&path)?;
        writer.survive_crashes(draft.clone());
        let start_unix_ns = draft.start_unix_ns.saturating_add(start_ns);
        let (epochs, notes) = (Vec::new(), Vec::new());
        Ok(Self { writer, path, start_ns, start_unix_ns, epochs, before, notes, samples: 0 })
    }

    /// Returns the time that the capture covers, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.epochs.last().map_or(0, |epoch| epoch.end_ns)
    }

    /// Returns the path of the capture.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Adds the rows of the last epoch of `named`, which is as it was afterwards.
    pub fn append(&mut self, named: &mut Capture, rows: &[Row], epoch: Epoch) -> Result<(), WriteError> {
        let later = |ns: u64| ns.saturating_sub(self.start_ns);
        let number = self.epochs.len() as u32;
        self.epochs.push(Epoch { start_ns: later(epoch.start_ns), end_ns: later(epoch.end_ns) });
        let rows: Vec<Row> = rows.iter().map(|row| Row { epoch: number, ..*row }).collect();
        self.samples += rows.iter().map(|row| row.measures.count).sum::<u64>();
        let start = std::mem::replace(&mut named.meta.start_unix_ns, self.start_unix_ns);
        std::mem::swap(&mut named.meta.epochs, &mut self.epochs);
        let groups = self.writer.row_groups();
        let appended = self.writer.append_epoch(named, &rows);
        std::mem::swap(&mut named.meta.epochs, &mut self.epochs);
        named.meta.start_unix_ns = start;
        if self.writer.row_groups() > groups {
            // Encoding a row group takes memory in proportion to its rows, for a moment.
            allocator::give_back();
        }
        appended
    }

    /// Adds notes of the run loop.
    pub fn note(&mut self, notes: Vec<String>) {
        let room = MOST_NOTES.saturating_sub(self.notes.len());
        self.notes.extend(notes.into_iter().take(room));
    }

    /// Completes the capture of a run that `draft` describes and that has come so far.
    pub fn finish(self, draft: &Meta, so_far: &RunSoFar) -> Result<(), WriteError> {
        let meta = Meta {
            start_unix_ns: self.start_unix_ns,
            epochs: self.epochs,
            events: so_far.events_of_part(&self.before, self.start_ns),
            overhead: so_far.overhead(),
            notes: draft.notes.iter().cloned().chain(self.notes).collect(),
            ..draft.clone()
        };
        self.writer.finish(&meta)?;
        allocator::give_back();
        Ok(())
    }
}
