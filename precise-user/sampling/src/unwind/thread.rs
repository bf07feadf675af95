//! The thread that follows processes and publishes their unwind tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::tables::{CodeTables, Fallback, UnwindReport, UnwindTarget};
use crate::error::SamplingError;
use crate::kernel::clock::monotonic_ns;
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
/// Maximum number of records that wait or are being applied. Those of a fork storm are dropped and
/// counted.
const MAX_WAITING: usize = 1 << 16;

/// What the thread is told.
#[derive(Debug, Default)]
struct CodeChanges {
    /// In order of time.
    records: Vec<IdentifiedRecord>,
    /// Processes of which records before these were dropped: their mappings are not known.
    unknown: FxHashSet<u32>,
    /// All records before this time are in this or in an earlier message.
    until: u64,
    /// What this adds to the number of those that wait: the records, and one for each message.
    weight: usize,
}

impl CodeChanges {
    /// Appends a later message. A process whose mappings are not known any more loses those of its
    /// records that came before.
    fn add(&mut self, later: Self) {
        if !later.unknown.is_empty() {
            self.records
                .retain(|entry| whose_code(&entry.record).is_none_or(|pid| !later.unknown.contains(&pid)));
            self.unknown.extend(later.unknown);
        }
        self.records.extend(later.records);
        self.until = self.until.max(later.until);
        self.weight += later.weight;
    }
}

/// A handle to the thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct Unwinder {
    changes: Option<Sender<CodeChanges>>,
    waiting: Arc<AtomicUsize>,
    /// See [`Unwinder::published`].
    published: Arc<AtomicU64>,
    dropped: u64,
    /// Processes of which records were dropped since the last message.
    unknown: FxHashSet<u32>,
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
        let (changes, told) = channel::<CodeChanges>();
        let (ready, is_ready) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        let published = Arc::new(AtomicU64::new(monotonic_ns()));
        let done = published.clone();
        let body = move || {
            rights::raised_for_names(|| {
                let mut worker = Worker::new(memory, files, fallback);
                worker.look_around(&followed);
                // The start may wait no longer.
                let _late = ready.send(());
                for first in &told {
                    let mut batch = first;
                    told.try_iter().for_each(|later| batch.add(later));
                    worker.follow(&batch);
                    done.fetch_max(batch.until, Ordering::Release);
                    taken.fetch_sub(batch.weight, Ordering::Release);
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
        Ok(Self {
            changes: Some(changes),
            waiting,
            published,
            dropped: 0,
            unknown: FxHashSet::default(),
            thread: Some(thread),
        })
    }

    /// Hands over records of the sideband; does not block. What does not concern code is left out.
    /// `until`: all records before this time have been handed over.
    pub fn follow(&mut self, entries: &[IdentifiedRecord], until: u64) {
        let records: Vec<_> = entries.iter().filter(|entry| concerns_code(&entry.record)).cloned().collect();
        if records.is_empty() && self.unknown.is_empty() {
            if self.waiting.load(Ordering::Acquire) == 0 {
                self.published.fetch_max(until, Ordering::Release);
            }
            return;
        }
        if self.waiting.load(Ordering::Relaxed) + records.len() > MAX_WAITING {
            self.dropped += records.len() as u64;
            self.unknown.extend(records.iter().filter_map(|entry| whose_code(&entry.record)));
            return;
        }
        let weight = records.len() + 1;
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        let batch = CodeChanges { records, unknown: std::mem::take(&mut self.unknown), until, weight };
        // Sending fails only if the thread has died, which `finish` reports.
        let _dead = self.changes.as_ref().map(|changes| changes.send(batch));
    }

    /// Returns a time: the mappings that processes had then, or later ones, are published.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Ends the thread. Returns what it did, if it ends soon: it may be waiting for a file.
    pub fn finish(mut self) -> UnwindReport {
        drop(self.changes.take());
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
    fn follow(&mut self, changes: &CodeChanges) {
        let mut changed = changes.unknown.clone();
        changes.unknown.iter().for_each(|pid| self.tables.spaces.forget(*pid));
        for entry in changes.records.iter().filter(|entry| is_of(&mut self.family, &entry.record)) {
            changed.extend(self.tables.spaces.apply(entry));
        }
        if let Some(family) = &mut self.family {
            family.retain(|pid| !changed.contains(pid) || self.tables.spaces.get_mut(*pid).is_some());
        }
        self.tables.publish(changed);
    }
}

/// Returns the process whose code a record changes; `None` if it changes none.
fn whose_code(record: &Record) -> Option<u32> {
    match record {
        Record::Mmap(map) | Record::Mmap2(map) => map.executable.then_some(map.pid),
        Record::Comm { pid, exec, .. } => exec.then_some(*pid),
        Record::Fork(task) | Record::Exit(task) => Some(task.pid),
        _ => None,
    }
}

/// Returns whether a record changes the code of a process.
pub(crate) fn concerns_code(record: &Record) -> bool {
    whose_code(record).is_some()
}

/// Returns whether a record changes the code of a process that is followed. A process that one of
/// these starts is followed too.
fn is_of(family: &mut Option<FxHashSet<u32>>, record: &Record) -> bool {
    let Some(family) = family else { return true };
    if let Record::Fork(task) = record
        && family.contains(&task.ppid)
    {
        family.insert(task.pid);
    }
    whose_code(record).is_some_and(|pid| family.contains(&pid))
}

#[cfg(test)]
mod tests {
    use precise_records::record::SampleId;

    use super::*;

    #[test]
    fn processes_that_are_not_known_any_more_lose_what_came_before() {
        let exec = |pid| IdentifiedRecord {
            record: Record::Comm { pid, tid: pid, comm: "x".into(), exec: true },
            misc: 0,
            id: SampleId::default(),
        };
        let changes = |pids: &[u32], unknown: &[u32], until| CodeChanges {
            records: pids.iter().map(|pid| exec(*pid)).collect(),
            unknown: unknown.iter().copied().collect(),
            until,
            weight: pids.len() + 1,
        };
        let mut all = changes(&[1, 2, 3], &[], 10);
        all.add(changes(&[2, 4], &[2, 3], 20));
        let pids: Vec<_> = all.records.iter().filter_map(|entry| whose_code(&entry.record)).collect();
        assert_eq!((pids, all.until, all.weight), (vec![1, 2, 4], 20, 7));
        assert_eq!(all.unknown, FxHashSet::from_iter([2, 3]));
    }
}
