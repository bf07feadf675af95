//! The epochs of an import. Their names are asked for when they are over, and they are written a
//! little later: names of the next epochs are looked up while one is written.

use std::collections::VecDeque;

use super::{ImportRun, MAX_REMEMBERED, MAX_ROWS, parts, unwritten};
use crate::error::SamplingError;
use crate::import::cells::{OfEvent, OfProcess};
use crate::run::assemble::{BegunRows, EpochCells};
use precise_capture::fold::add_up;
use precise_model::{Epoch, Row};

/// The maximum number of cells whose names were asked for and that are not written. About 20 MiB
/// with their names; their names take longer than writing what the writer compresses at once.
const MAX_WAITING: usize = 1 << 15;

/// The cells of the current epoch that are named already, and the epochs that are not written.
#[derive(Default)]
pub(super) struct UnwrittenEpochs {
    /// Cells of the current epoch, whose names were asked for.
    begun: Vec<BegunRows>,
    /// Rows of the current epoch, before those of `begun`.
    rows: Vec<Row>,
    /// The epochs that are over.
    over: VecDeque<EpochOver>,
    /// The number of cells in `begun` and `over`.
    cells: usize,
}

/// An epoch that is over and not written.
struct EpochOver {
    begun: Vec<BegunRows>,
    rows: Vec<Row>,
    /// The number of epochs up to this one.
    epochs: usize,
    start_unix_ns: u64,
}

impl ImportRun<'_> {
    pub(super) fn name_process(&mut self, pid: u32) {
        if let Some(cells) = self.cells.take(pid) {
            self.name(cells);
        }
    }

    /// Asks for the names of these cells.
    fn name(&mut self, cells: OfProcess) {
        let Some((assembler, _)) = &mut self.naming else { return };
        if std::mem::take(&mut self.images_changed) {
            assembler.set_kernel_images(self.images.clone());
        }
        let epoch = self.epochs.len() as u32;
        let (events, window, chains) = cells.by_event();
        for OfEvent { event, cells, stacks } in events {
            let (unwound_since, window, chains) = (window.start, &window, &chains);
            let stacks = Some(&stacks[..]);
            let of = EpochCells { epoch, event, cells: &[], window, unwound_since, chains, stacks };
            let begun = assembler.begin_rows(cells, of, &self.processes);
            self.waiting.cells += begun.cells();
            self.waiting.begun.push(begun);
        }
    }

    /// Returns whether the epoch has as many rows as it may have. A process that changes its
    /// mappings or its name makes rows in the middle of an epoch.
    pub(super) fn rows_are_full(&mut self) -> Result<bool, SamplingError> {
        let UnwrittenEpochs { rows, cells, .. } = &self.waiting;
        if *cells > MAX_WAITING || rows.len() + cells > MAX_ROWS {
            self.write_all()?;
            let UnwrittenEpochs { begun, rows, cells, .. } = &mut self.waiting;
            let Some((assembler, _)) = &mut self.naming else { return Ok(false) };
            for begun in begun.drain(..) {
                *cells -= begun.cells();
                rows.extend(assembler.finish_rows(&begun));
            }
        }
        Ok(self.waiting.rows.len() > MAX_ROWS)
    }

    /// Ends the epoch: asks for the names of its cells. It is written as soon as more cells wait
    /// than may. Does nothing if there are no cells.
    pub(super) fn end_epoch(&mut self, end: u64) -> Result<(), SamplingError> {
        for cells in self.cells.take_all() {
            self.name(cells);
        }
        let (begun, rows) = (std::mem::take(&mut self.waiting.begun), std::mem::take(&mut self.waiting.rows));
        if begun.is_empty() && rows.is_empty() {
            return Ok(());
        }
        let start = self.clock.start.unwrap_or(0);
        self.epochs.push(Epoch {
            start_ns: self.clock.begin.saturating_sub(start),
            end_ns: end.saturating_sub(start),
        });
        let (epochs, start_unix_ns) = (self.epochs.len(), self.start_unix_ns());
        self.waiting.over.push_back(EpochOver { begun, rows, epochs, start_unix_ns });
        self.processes.forget_before(self.clock.begin);
        while self.waiting.cells > MAX_WAITING {
            self.write_oldest()?;
        }
        if self.names_take() > MAX_REMEMBERED {
            self.write_all()?;
            self.naming.iter_mut().for_each(|(assembler, _)| assembler.forget());
        }
        Ok(())
    }

    /// Returns the memory in bytes of what rows refer to.
    pub(super) fn names_take(&self) -> usize {
        self.naming.as_ref().map_or(0, |(assembler, _)| assembler.remembered_bytes())
    }

    /// Writes the epochs that are over.
    pub(super) fn write_all(&mut self) -> Result<(), SamplingError> {
        while !self.waiting.over.is_empty() {
            self.write_oldest()?;
        }
        Ok(())
    }

    /// Waits for the names of the first epoch that is over, and writes it.
    fn write_oldest(&mut self) -> Result<(), SamplingError> {
        // Rows refer to events by their indexes, which stay.
        let known = self.naming.as_mut().map_or(0, |(assembler, _)| assembler.named().meta.events.len());
        let more_events = (known != parts(&self.events).count()).then(|| self.infos());
        let (Some(over), Some((assembler, _))) = (self.waiting.over.pop_front(), &mut self.naming) else {
            return Ok(());
        };
        let EpochOver { begun, mut rows, epochs, start_unix_ns } = over;
        for begun in &begun {
            self.waiting.cells -= begun.cells();
            rows.extend(assembler.finish_rows(begun));
        }
        // The rows were named at different times of the epoch.
        add_up(&mut rows);
        self.written += rows.len() as u64;
        let named = assembler.named();
        let known = &mut named.meta.epochs;
        known.extend(self.epochs.get(known.len()..epochs).unwrap_or_default());
        named.meta.start_unix_ns = start_unix_ns;
        if let Some(events) = more_events {
            named.meta.events = events;
        }
        self.writer.append_epoch(named, &rows).map_err(unwritten)
    }
}
