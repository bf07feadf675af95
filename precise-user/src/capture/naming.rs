//! Naming what was sampled, beside the run loop: the loop must end each epoch on time, whatever names cost.

use std::{
    ops::Range,
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
};

use precise_common::cell::Cell;

use super::{
    assemble::{Assembler, EpochCells},
    model::{Capture, Row},
};
use crate::{
    error::{Class, Failure},
    kernel::record::Entry,
    symbols::Processes,
};

/// What the run loop tells.
enum Message {
    /// What processes did, in the order of time. Comes before the cells that were taken after it.
    Sideband(Vec<Entry>),
    /// The cells of each event in one epoch.
    Epoch { epoch: u32, window: Range<u64>, cells: Vec<Vec<(usize, Cell)>> },
}

/// The thread that owns the process history and the names.
#[derive(Debug)]
pub struct Naming {
    tell: Sender<Message>,
    thread: JoinHandle<Named>,
}

/// Everything that was named.
#[derive(Debug)]
pub struct Named {
    /// Names, locations and rows; no metadata.
    pub capture: Capture,
    /// What the reader must know of it, one sentence each.
    pub notes: Vec<String>,
}

impl Naming {
    /// Starts the thread and waits until it has looked at the processes that are running: one that is sampled and gone
    /// before that would have no names. `now` is the sideband's time.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(assembler: Assembler, processes: Processes, now: u64) -> Result<Self, Failure> {
        let (tell, told) = channel();
        let (looked, ready) = channel();
        let thread = std::thread::Builder::new()
            .name("naming".into())
            .spawn(move || {
                Worker { assembler, processes, rows: Vec::new(), notes: Vec::new() }.run(&told, now, looked)
            })
            .map_err(|error| {
                Failure::new(Class::Failed, format!("the naming thread cannot be started: {error}"))
            })?;
        // An error means that the thread died, which `finish` reports.
        let _dead = ready.recv();
        Ok(Self { tell, thread })
    }

    /// Hands over what processes did.
    pub fn sideband(&self, entries: Vec<Entry>) {
        if !entries.is_empty() {
            // The thread only ends before its time when it dies, which `finish` reports.
            let _dead = self.tell.send(Message::Sideband(entries));
        }
    }

    /// Hands over an epoch's cells.
    pub fn epoch(&self, epoch: u32, window: Range<u64>, cells: Vec<Vec<(usize, Cell)>>) {
        let _dead = self.tell.send(Message::Epoch { epoch, window, cells });
    }

    /// Waits until all is named.
    ///
    /// # Errors
    ///
    /// When the thread died: a bug.
    pub fn finish(self) -> Result<Named, Failure> {
        drop(self.tell);
        self.thread.join().map_err(|_| {
            Failure::new(Class::Failed, "the naming thread died, and with it what was sampled")
                .advise("This is a bug: please report what it printed.")
        })
    }
}

struct Worker {
    assembler: Assembler,
    processes: Processes,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Worker {
    fn run(mut self, told: &Receiver<Message>, now: u64, looked: Sender<()>) -> Named {
        if let Err(error) = self.processes.snapshot_all(Path::new("/"), now) {
            self.notes.push(format!("the running processes could not be listed: {error}"));
        }
        self.assembler.open_early(&mut self.processes);
        // Nobody waits any more only where the run was given up.
        let _unheard = looked.send(());
        drop(looked);
        for message in told {
            match message {
                Message::Sideband(entries) => {
                    entries.iter().for_each(|entry| self.processes.apply(entry));
                    self.assembler.open_early(&mut self.processes);
                }
                Message::Epoch { epoch, window, cells } => {
                    for (event, cells) in cells.iter().enumerate() {
                        let cells = EpochCells { epoch, event: event as u16, cells, window: &window };
                        self.rows.extend(self.assembler.rows(cells, &self.processes));
                    }
                    self.processes.forget_before(window.start);
                }
            }
        }
        self.finish()
    }

    fn finish(mut self) -> Named {
        let ambiguous = self.assembler.ambiguous();
        if ambiguous > 0 {
            self.notes.push(format!(
                "{ambiguous} samples fell into an epoch in which their process ran more than one program: they are \
                 counted for the one that has the address, the newest first"
            ));
        }
        let (names, code, data, notes) = self.assembler.finish();
        self.notes.extend(notes);
        Named {
            capture: Capture { names, code, data, rows: self.rows, ..Capture::default() },
            notes: self.notes,
        }
    }
}
