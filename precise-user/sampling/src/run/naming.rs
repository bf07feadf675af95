//! Symbolization of samples on its own thread, so that the run loop ends each epoch on time,
//! however long symbolization takes.
//!
//! An epoch goes to the sink as soon as it is named, and the queue of unnamed data is bounded, so
//! memory grows neither with the length nor with the load of a run. Data that does not fit is
//! dropped and counted.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
};

use precise_common::cell::Cell;

use super::allocator;
use super::assemble::{Assembler, EpochCells};
use crate::error::SamplingError;
use crate::run::naming_thread::{NamingThread, follow, look_around};
use crate::symbols::Processes;
use precise_model::{Capture, Epoch, EventInfo, Owner, Row};
use precise_records::Chains;
use precise_records::record::IdentifiedRecord;

/// A message from the run loop.
enum Message {
    /// The start of the run, in nanoseconds since the Unix epoch. Comes before the first cells.
    Begun(u64),
    /// Sideband records in order of time. They come before the cells that were taken after them.
    Sideband(Vec<IdentifiedRecord>),
    /// The cells of each event in one epoch.
    Epoch { epoch: Epoch, window: Range<u64>, cells: Vec<Drained> },
}

/// Maximum number of cells that wait to be named: 64 MiB, and the same again with call chains.
const CELLS_WAITING: usize = 1 << 20;
/// Maximum number of sideband records that wait: about 100 MiB.
const SIDEBAND_WAITING: usize = 1 << 19;
/// Maximum number of locations, chains and names that are kept from epoch to epoch: about 30 MiB.
/// Then all of them are discarded, and looked up again when needed.
const MAX_LOCATIONS: usize = 1 << 17;

/// Number of epochs after which they are discarded in any case: short-lived processes leave
/// locations that are never needed again.
const FORGET_EACH: u32 = 256;

/// The data of one event's table at the end of an epoch.
#[derive(Debug, Default)]
pub struct Drained {
    /// `(cpu, cell)`.
    pub cells: Vec<(usize, Cell)>,
    /// The call chains that the cells refer to.
    pub chains: Chains,
}

/// A consumer of rows with names.
pub trait RowSink: Send + 'static {
    /// Takes the rows of an epoch. They refer to `named`, whose last epoch is theirs; the sink may
    /// discard the epochs and owners in `named`. Returns whether the sink can take more.
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool;
}

/// A handle to the thread that owns the history of processes and the names.
pub struct Naming<S> {
    tell: Sender<Message>,
    thread: NamingThread<Named<S>>,
    waiting: Arc<Waiting>,
    /// Number of samples of each event that were dropped.
    dropped: Vec<u64>,
    /// Number of sideband records that were dropped.
    sideband_dropped: u64,
}

/// Numbers of cells and records that were handed over and are not named yet.
#[derive(Debug, Default)]
struct Waiting {
    cells: AtomicUsize,
    sideband: AtomicUsize,
}

/// The result of naming, after the sink has taken everything.
pub struct Named<S> {
    /// The sink of the rows.
    pub sink: S,
    /// Number of samples of each event that were dropped because naming was behind.
    pub dropped: Vec<u64>,
    /// The epochs, in order.
    pub epochs: Vec<Epoch>,
    /// The owners of the cgroups, by path.
    pub owners: Vec<Owner>,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

impl<S: RowSink> Naming<S> {
    /// Starts the thread, which names the samples of these events and gives the rows to `sink`.
    /// Returns after the thread has read the running processes. `now` is the time on the sideband's
    /// clock; `meanwhile` is called repeatedly until then.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn start(
        mut assembler: Assembler,
        processes: Processes,
        sink: S,
        events: Vec<EventInfo>,
        now: u64,
        meanwhile: impl FnMut(),
    ) -> Result<Self, SamplingError> {
        let (tell, told) = channel();
        let dropped = vec![0; events.len()];
        assembler.named().meta.events = events;
        let waiting = Arc::new(Waiting::default());
        let worker = NamingWorker {
            assembler,
            processes,
            sink,
            open: true,
            epochs: 0,
            waiting: waiting.clone(),
            notes: Vec::new(),
        };
        let thread = NamingThread::start(
            worker,
            move |worker| worker.look_around(now),
            move |worker| worker.run(&told),
            meanwhile,
        )?;
        Ok(Self { tell, thread, waiting, dropped, sideband_dropped: 0 })
    }

    /// Tells the thread when the run began, in nanoseconds since the Unix epoch. Call it before the
    /// first epoch.
    pub fn begun(&self, unix_ns: u64) {
        let _dead = self.tell.send(Message::Begun(unix_ns));
    }

    /// Hands over sideband records; drops and counts them if too many are waiting.
    pub fn sideband(&mut self, entries: Vec<IdentifiedRecord>) {
        if self.waiting.sideband.load(Relaxed).saturating_add(entries.len()) > SIDEBAND_WAITING {
            self.sideband_dropped = self.sideband_dropped.saturating_add(entries.len() as u64);
            return;
        }
        if !entries.is_empty() {
            self.waiting.sideband.fetch_add(entries.len(), Relaxed);
            // Sending fails only if the thread has died, which `finish` reports.
            let _dead = self.tell.send(Message::Sideband(entries));
        }
    }

    /// Hands over the cells of an epoch; drops them and counts their samples if too many are
    /// waiting.
    pub fn epoch(&mut self, epoch: Epoch, window: Range<u64>, mut cells: Vec<Drained>) {
        let count = |cells: &[Drained]| cells.iter().map(|drained| drained.cells.len()).sum::<usize>();
        if self.waiting.cells.load(Relaxed).saturating_add(count(&cells)) > CELLS_WAITING {
            for (dropped, drained) in self.dropped.iter_mut().zip(&mut cells) {
                let Drained { cells, .. } = std::mem::take(drained);
                *dropped += cells.iter().map(|(_, cell)| u64::from(cell.count)).sum::<u64>();
            }
        }
        self.waiting.cells.fetch_add(count(&cells), Relaxed);
        let _dead = self.tell.send(Message::Epoch { epoch, window, cells });
    }

    /// Waits until everything is named.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread has died, which is a bug.
    pub fn finish(self) -> Result<Named<S>, SamplingError> {
        drop(self.tell);
        let mut named = self.thread.finish()?;
        named.dropped = self.dropped;
        if self.sideband_dropped > 0 {
            named.notes.push(format!(
                "the naming thread was behind and {} records of process starts and mappings were \
                 dropped: some samples may lack names",
                self.sideband_dropped
            ));
        }
        Ok(named)
    }

    /// Returns the number of samples of each event that were dropped so far because naming was
    /// behind.
    pub fn dropped(&self) -> &[u64] {
        &self.dropped
    }

    /// Returns the number of sideband records that were dropped so far because naming was behind.
    pub fn sideband_dropped(&self) -> u64 {
        self.sideband_dropped
    }

    /// Returns whether no more rows can be kept: the sink takes no more, or the thread has died.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

struct NamingWorker<S> {
    assembler: Assembler,
    processes: Processes,
    sink: S,
    /// Whether the sink takes more rows.
    open: bool,
    /// Number of epochs that were named.
    epochs: u32,
    waiting: Arc<Waiting>,
    notes: Vec<String>,
}

impl<S: RowSink> NamingWorker<S> {
    fn look_around(&mut self, now: u64) {
        self.notes.extend(look_around(&mut self.processes, now));
        self.assembler.open_early(&mut self.processes);
    }

    fn run(mut self, told: &Receiver<Message>) -> Named<S> {
        for message in told {
            match message {
                Message::Begun(unix_ns) => self.assembler.named().meta.start_unix_ns = unix_ns,
                Message::Sideband(entries) => {
                    self.waiting.sideband.fetch_sub(entries.len(), Relaxed);
                    follow(&entries, &mut self.processes, |id, path| self.assembler.cgroup_made(id, path));
                    self.assembler.open_early(&mut self.processes);
                }
                Message::Epoch { epoch, window, cells } => {
                    self.name(epoch, &window, &cells);
                    self.processes.forget_before(window.start);
                    self.waiting.cells.fetch_sub(cells.iter().map(|of| of.cells.len()).sum(), Relaxed);
                    if !self.open {
                        break;
                    }
                }
            }
        }
        self.finish()
    }

    /// Names the cells of an epoch, and passes the rows to the sink.
    fn name(&mut self, epoch: Epoch, window: &Range<u64>, cells: &[Drained]) {
        let epochs = &mut self.assembler.named().meta.epochs;
        let number = epochs.len() as u32;
        epochs.push(epoch);
        let mut rows = Vec::new();
        for (event, Drained { cells, chains }) in cells.iter().enumerate() {
            let cells = EpochCells { epoch: number, event: event as u16, cells, window, chains };
            rows.extend(self.assembler.rows(cells, &self.processes));
        }
        let named = self.assembler.named();
        self.open = self.sink.take(named, &rows);
        let remembered = [named.code.len(), named.data.len(), named.stacks.len(), named.names.len()];
        self.epochs = self.epochs.wrapping_add(1);
        if remembered.iter().sum::<usize>() > MAX_LOCATIONS || self.epochs.is_multiple_of(FORGET_EACH) {
            self.assembler.forget();
            allocator::give_back();
        }
    }

    fn finish(mut self) -> Named<S> {
        let ambiguous = self.assembler.ambiguous();
        if ambiguous > 0 {
            self.notes.push(format!(
                "{ambiguous} samples fell into an epoch in which their process ran more than one \
                 program: they count for the program that has the address, the newest first"
            ));
        }
        let (named, notes) = self.assembler.finish();
        self.notes.extend(notes);
        Named {
            sink: self.sink,
            dropped: Vec::new(),
            epochs: named.meta.epochs,
            owners: named.meta.owners,
            notes: self.notes,
        }
    }
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
