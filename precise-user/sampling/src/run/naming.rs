//! Naming what was sampled, beside the run loop: the loop must end each epoch on time, whatever
//! names cost.
//!
//! An epoch goes to its sink as soon as it is named, and what waits to be named is bounded: memory
//! does not grow with the length of a run, nor with its load. What finds no room is counted.

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

/// What the run loop tells.
enum Message {
    /// When the run began, in nanoseconds since the Unix epoch. Comes before the first cells.
    Begun(u64),
    /// What processes did, in the order of time. Comes before the cells that were taken after it.
    Sideband(Vec<IdentifiedRecord>),
    /// The cells of each event in one epoch.
    Epoch { epoch: Epoch, window: Range<u64>, cells: Vec<Drained> },
}

/// Cells that may wait to be named: 64 MiB, and as much again where they have call chains.
const CELLS_WAITING: usize = 1 << 20;
/// Records of the sideband that may wait: some 100 MiB.
const SIDEBAND_WAITING: usize = 1 << 19;
/// Locations, chains and names that are remembered from epoch to epoch: some 30 MiB. What is
/// forgotten is looked up again.
const MAX_LOCATIONS: usize = 1 << 17;

/// Epochs after which it is forgotten all the same: processes that come and go leave locations that
/// nobody asks for again.
const FORGET_EACH: u32 = 256;

/// What one event's tables had at the end of an epoch.
#[derive(Debug, Default)]
pub struct Drained {
    /// `(cpu, cell)`.
    pub cells: Vec<(usize, Cell)>,
    /// The call chains that they refer to.
    pub chains: Chains,
}

/// Where rows go once they have their names.
pub trait RowSink: Send + 'static {
    /// Takes the rows of an epoch. They refer to `named`, whose last epoch is theirs; what it has
    /// of epochs and owners may be forgotten. Whether it can take more.
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool;
}

/// The thread that owns the process history and the names.
pub struct Naming<S> {
    tell: Sender<Message>,
    thread: NamingThread<Named<S>>,
    waiting: Arc<Waiting>,
    /// Samples of each event that found no room.
    dropped: Vec<u64>,
    /// Records of the sideband that found none.
    sideband_dropped: u64,
}

/// What was handed over and is not named yet.
#[derive(Debug, Default)]
struct Waiting {
    cells: AtomicUsize,
    sideband: AtomicUsize,
}

/// Everything that was named has been taken.
pub struct Named<S> {
    /// Who took it.
    pub sink: S,
    /// Samples of each event that found no room while naming was behind.
    pub dropped: Vec<u64>,
    /// The epochs, in order.
    pub epochs: Vec<Epoch>,
    /// Whose the cgroups are, by path.
    pub owners: Vec<Owner>,
    /// What the reader must know of it, one sentence each.
    pub notes: Vec<String>,
}

impl<S: RowSink> Naming<S> {
    /// Starts the thread, which gives what it names of these events to `sink`. Returns when it has
    /// looked at the processes that are running. `now` is the sideband's time; `meanwhile` is
    /// called again and again until then.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
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

    /// Says when the run began, in nanoseconds since the Unix epoch. To be called before the first
    /// epoch.
    pub fn begun(&self, unix_ns: u64) {
        let _dead = self.tell.send(Message::Begun(unix_ns));
    }

    /// Hands over what processes did.
    pub fn sideband(&mut self, entries: Vec<IdentifiedRecord>) {
        if self.waiting.sideband.load(Relaxed).saturating_add(entries.len()) > SIDEBAND_WAITING {
            self.sideband_dropped = self.sideband_dropped.saturating_add(entries.len() as u64);
            return;
        }
        if !entries.is_empty() {
            self.waiting.sideband.fetch_add(entries.len(), Relaxed);
            // The thread only ends before its time when it dies, which `finish` reports.
            let _dead = self.tell.send(Message::Sideband(entries));
        }
    }

    /// Hands over an epoch's cells.
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

    /// Waits until all is named.
    ///
    /// # Errors
    ///
    /// When the thread died: a bug.
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

    /// Samples of each event that found no room up to now, as naming was behind.
    pub fn dropped(&self) -> &[u64] {
        &self.dropped
    }

    /// Records of the sideband that found none up to now.
    pub fn sideband_dropped(&self) -> u64 {
        self.sideband_dropped
    }

    /// Whether nothing more can be kept: the sink takes no more, or the thread died.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

struct NamingWorker<S> {
    assembler: Assembler,
    processes: Processes,
    sink: S,
    /// Whether the sink takes more.
    open: bool,
    /// How many epochs were named.
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

    /// Names the cells of an epoch, and hands them on.
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
