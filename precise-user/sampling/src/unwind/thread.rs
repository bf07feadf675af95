//! The thread that follows processes and publishes their unwind tables.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::tables::{CodeTables, Fallback, UnwindReport, UnwindTarget};
use crate::error::SamplingError;
use crate::kernel::unwind::UnwindMemory;
use crate::rights;
use crate::symbols::CodeFiles;
use precise_model::digits::counted;
use precise_records::record::{IdentifiedRecord, Record};

/// How long the start of a run waits for the tables of what runs already.
const START: Duration = Duration::from_secs(5);
/// How often it looks whether they are there, or the run must end.
const LOOK: Duration = Duration::from_millis(5);
/// How long the end of a run waits for the thread.
const END: Duration = Duration::from_secs(1);
/// Maximum number of records that wait. Those of a fork storm are dropped and counted.
const MAX_WAITING: usize = 1 << 16;

/// A handle to the thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Unwinder {
    records: Option<Sender<Vec<IdentifiedRecord>>>,
    waiting: Arc<std::sync::atomic::AtomicUsize>,
    dropped: u64,
    thread: Option<JoinHandle<UnwindReport>>,
}

impl Unwinder {
    /// Starts the thread, and waits until what of `followed` runs already can be unwound.
    /// `meanwhile` is called again and again until then, and ends the wait by returning `false`.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn start(
        memory: Arc<UnwindMemory>,
        files: CodeFiles,
        fallback: Fallback,
        followed: UnwindTarget,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<Self, SamplingError> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (records, told) = channel::<Vec<IdentifiedRecord>>();
        let (ready, is_ready) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        let body = move || {
            rights::raised_for_names(|| {
                let mut worker = Worker::new(memory, files, fallback);
                worker.look_around(&followed);
                // The start may wait no longer.
                let _late = ready.send(());
                for first in &told {
                    let mut batch = first;
                    batch.extend(told.try_iter().flatten());
                    taken.fetch_sub(batch.len(), Ordering::Relaxed);
                    worker.follow(&batch);
                }
                worker.tables.report()
            })
        };
        let thread = std::thread::Builder::new()
            .name("unwind".into())
            .spawn(body)
            .map_err(|error| SamplingError::failed("cannot start the thread for unwind tables", error))?;
        let begun = Instant::now();
        while is_ready
            .recv_timeout(LOOK)
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            if begun.elapsed() > START || !meanwhile() {
                break;
            }
        }
        Ok(Self { records: Some(records), waiting, dropped: 0, thread: Some(thread) })
    }

    /// Hands over records of the sideband; does not block. What does not concern code is left out.
    pub fn follow(&mut self, entries: &[IdentifiedRecord]) {
        use std::sync::atomic::Ordering;
        let batch: Vec<_> = entries.iter().filter(|entry| concerns_code(&entry.record)).cloned().collect();
        if batch.is_empty() {
            return;
        }
        if self.waiting.load(Ordering::Relaxed) + batch.len() > MAX_WAITING {
            self.dropped += batch.len() as u64;
            return;
        }
        self.waiting.fetch_add(batch.len(), Ordering::Relaxed);
        // Sending fails only if the thread has died, which `finish` reports.
        let _dead = self.records.as_ref().map(|records| records.send(batch));
    }

    /// Ends the thread. Returns what it did, if it ends soon: it may be waiting for a file.
    pub fn finish(mut self) -> UnwindReport {
        drop(self.records.take());
        let begun = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begun.elapsed() < END {
            std::thread::sleep(LOOK);
        }
        let ended = self.thread.take().filter(JoinHandle::is_finished);
        let mut report = ended.and_then(|thread| thread.join().ok()).unwrap_or_default();
        if self.dropped > 0 {
            report.notes.push(format!(
                "the unwind tables were behind and dropped {} of process starts and mappings: some call \
                 chains are short",
                counted(self.dropped, "record")
            ));
        }
        report
    }
}

struct Worker {
    tables: CodeTables,
    /// The living processes that are followed; `None`: all.
    family: Option<FxHashSet<u32>>,
}

impl Worker {
    fn new(memory: Arc<UnwindMemory>, files: CodeFiles, fallback: Fallback) -> Self {
        let mut tables = CodeTables::new(memory, fallback);
        tables.open_with(files);
        Self { tables, family: None }
    }

    /// Publishes the processes that are running.
    fn look_around(&mut self, followed: &UnwindTarget) {
        let found = self.tables.look_around(followed);
        self.family = match followed {
            UnwindTarget::All => None,
            UnwindTarget::These(_) => Some(found.clone()),
            UnwindTarget::Command(id) => Some(FxHashSet::from_iter([*id])),
        };
        self.tables.publish(found);
    }

    /// Applies records, and publishes the processes that changed.
    fn follow(&mut self, entries: &[IdentifiedRecord]) {
        let mut changed = FxHashSet::default();
        for entry in entries.iter().filter(|entry| is_of(&mut self.family, &entry.record)) {
            changed.extend(self.tables.spaces.apply(entry));
        }
        if let Some(family) = &mut self.family {
            family.retain(|pid| !changed.contains(pid) || self.tables.spaces.get_mut(*pid).is_some());
        }
        self.tables.publish(changed);
    }
}

/// Returns whether a record changes the code of a process.
pub(crate) fn concerns_code(record: &Record) -> bool {
    match record {
        Record::Mmap(map) | Record::Mmap2(map) => map.executable,
        Record::Comm { exec, .. } => *exec,
        Record::Fork(_) | Record::Exit(_) => true,
        _ => false,
    }
}

/// Returns whether a record is of a process that is followed. A process that one of these starts is
/// followed too.
fn is_of(family: &mut Option<FxHashSet<u32>>, record: &Record) -> bool {
    let Some(family) = family else { return true };
    match record {
        Record::Mmap(map) | Record::Mmap2(map) => family.contains(&map.pid),
        Record::Comm { pid, .. } => family.contains(pid),
        Record::Fork(task) if family.contains(&task.ppid) => {
            family.insert(task.pid);
            true
        }
        Record::Fork(task) | Record::Exit(task) => family.contains(&task.pid),
        _ => false,
    }
}
