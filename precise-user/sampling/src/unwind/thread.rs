//! The thread that follows processes and publishes their unwind tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use precise_common::unwind::{Region, region};
use rustc_hash::{FxHashMap, FxHashSet};

use super::publisher::{Installed, Publisher};
use super::spaces::{CodeMapping, Spaces};
use crate::error::SamplingError;
use crate::kernel::unwind::UnwindMemory;
use crate::reader::unwind::Code;
use crate::rights;
use crate::symbols::CodeFiles;
use crate::symbols::code_file::{CodeFile, ContentId};
use crate::symbols::mapping::{MapKind, Mapped};
use crate::symbols::{pids, procfs};
use precise_model::digits::counted;
use precise_records::record::{IdentifiedRecord, Record};

/// How long the start of a run waits for the tables of what runs already.
const START: Duration = Duration::from_secs(5);
/// How often it looks whether they are there, or the run must end.
const LOOK: Duration = Duration::from_millis(5);
/// How long the end of a run waits for the thread.
const END: Duration = Duration::from_secs(1);
/// The least time between two times that all tables are made anew because there is no room.
const CLEAR_EACH: Duration = Duration::from_secs(60);
/// Maximum number of records that wait. Those of a fork storm are dropped and counted.
const MAX_WAITING: usize = 1 << 16;
/// Maximum number of files that notes name.
const MAX_NAMED: usize = 3;

/// How code is unwound that no table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Whether code without a table is unwound by frame pointers.
    pub frame_pointers: bool,
}

/// Whose code is unwound. The tables of all others would take room that these need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnwindTarget {
    /// All processes of the machine.
    All,
    /// These processes or threads, and all processes that they start.
    These(Vec<u32>),
    /// A command that is a copy of this process until it is released, and all processes that it
    /// starts.
    Command(u32),
}

/// What the thread did, for the notes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindReport {
    /// Number of tables that were made.
    pub tables: u64,
    /// Bytes of the arrays that were in use at the end.
    pub used: usize,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

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
                worker.report()
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
        let concerns = |entry: &&IdentifiedRecord| match &entry.record {
            Record::Mmap(map) | Record::Mmap2(map) => map.executable,
            Record::Comm { exec, .. } => *exec,
            Record::Fork(_) | Record::Exit(_) => true,
            _ => false,
        };
        let batch: Vec<_> = entries.iter().filter(concerns).cloned().collect();
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

/// What is known of the code of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It is that of a file.
    File(CodeFile),
    /// It belongs to no file that can be read.
    Nothing,
}

/// What became of the unwind information of a file.
#[derive(Clone, Copy, Debug)]
enum Made {
    Table(Installed),
    FramePointers,
    Nothing,
}

struct Worker {
    publisher: Publisher,
    files: CodeFiles,
    fallback: Fallback,
    spaces: Spaces<Known>,
    /// The living processes that are followed; `None`: all.
    family: Option<FxHashSet<u32>>,
    made: FxHashMap<ContentId, Made>,
    /// When all tables were last made anew.
    cleared: Option<Instant>,
    tables: u64,
    /// Files without a table, each with the reason.
    without: BTreeMap<String, String>,
    /// Number of tables, and of processes, for which there was no room.
    no_room: (u64, u64),
    /// Number of functions with damaged unwind information.
    skipped: u64,
}

impl Worker {
    fn new(memory: Arc<UnwindMemory>, files: CodeFiles, fallback: Fallback) -> Self {
        // More have no room, as they would take more blocks of regions than there are.
        let limit = memory.sizes().regions as usize;
        Self {
            publisher: Publisher::new(memory),
            files,
            fallback,
            spaces: Spaces::new(limit),
            family: None,
            made: FxHashMap::default(),
            cleared: None,
            tables: 0,
            without: BTreeMap::new(),
            no_room: (0, 0),
            skipped: 0,
        }
    }

    /// Publishes the processes that are running.
    fn look_around(&mut self, followed: &UnwindTarget) {
        let root = Path::new("/");
        let running: Vec<u32> = match followed {
            UnwindTarget::All => pids(root).unwrap_or_default(),
            UnwindTarget::These(ids) => {
                ids.iter().filter_map(|id| procfs::process_of(root, *id).ok()).collect()
            }
            UnwindTarget::Command(id) => vec![*id],
        };
        let mut found = FxHashSet::default();
        for pid in running {
            // A process that has ended is not sampled.
            if matches!(self.spaces.snapshot(root, pid), Ok(true)) {
                found.insert(pid);
            }
        }
        match followed {
            UnwindTarget::All => {}
            UnwindTarget::These(_) => self.family = Some(found.clone()),
            UnwindTarget::Command(id) => {
                // It will most likely use the libraries of this process, but never its code.
                if let Ok(own) = std::fs::read_link("/proc/self/exe") {
                    self.spaces.forget_file(*id, &own);
                }
                self.family = Some(FxHashSet::from_iter([*id]));
            }
        }
        self.publish(found);
    }

    /// Applies records, and publishes the processes that changed.
    fn follow(&mut self, entries: &[IdentifiedRecord]) {
        let mut changed = FxHashSet::default();
        for entry in entries.iter().filter(|entry| is_of(&mut self.family, &entry.record)) {
            changed.extend(self.spaces.apply(entry));
        }
        if let Some(family) = &mut self.family {
            family.retain(|pid| !changed.contains(pid) || self.spaces.get_mut(*pid).is_some());
        }
        self.publish(changed);
    }

    /// Publishes processes, or withdraws those that have ended. What is known already is published
    /// first, because tables take time.
    fn publish(&mut self, pids: FxHashSet<u32>) {
        self.look_up(&pids);
        let mut waiting: FxHashMap<ContentId, Vec<u32>> = FxHashMap::default();
        for pid in pids {
            self.publish_one(pid);
            let maps = self.spaces.get_mut(pid).map(|space| space.maps.as_slice()).unwrap_or_default();
            for map in maps {
                if let Some(Known::File(file)) = map.known
                    && !self.made.contains_key(&file.content)
                {
                    waiting.entry(file.content).or_default().push(pid);
                }
            }
        }
        for (content, pids) in waiting {
            if !self.make(content) {
                return;
            }
            pids.into_iter().for_each(|pid| self.publish_one(pid));
        }
    }

    /// Finds the files of mappings that nobody has looked at.
    fn look_up(&mut self, pids: &FxHashSet<u32>) {
        let mut places = Vec::new();
        let mut asked = Vec::new();
        for &pid in pids {
            let Some(space) = self.spaces.get_mut(pid) else { continue };
            let generation = space.generation;
            for (at, map) in space.maps.iter().enumerate().filter(|(_, map)| has_file(map)) {
                places.push((pid, at));
                asked.push(Mapped { pid, generation, mapping: map.mapping.clone(), image_base: None });
            }
        }
        if asked.is_empty() {
            return;
        }
        let Some(found) = self.files.find(asked) else { return };
        for ((pid, at), found) in places.into_iter().zip(found) {
            if let Some(map) = self.spaces.get_mut(pid).and_then(|space| space.maps.get_mut(at)) {
                map.known = Some(found.map_or(Known::Nothing, Known::File));
            }
        }
    }

    /// Makes and installs the table of a file. Returns whether there is anybody who makes tables.
    fn make(&mut self, content: ContentId) -> bool {
        let Some((path, info)) = self.files.unwind(content, self.fallback.frame_pointers) else {
            return false;
        };
        let made = match info {
            Ok(info) => {
                self.skipped += info.skipped;
                match info.code {
                    Code::Table(table) => match self.publisher.install(&table) {
                        Some(installed) => {
                            self.tables += 1;
                            Made::Table(installed)
                        }
                        None => {
                            self.no_room.0 += 1;
                            if self.may_clear() {
                                self.begin_anew();
                                return true;
                            }
                            Made::Nothing
                        }
                    },
                    Code::FramePointers => Made::FramePointers,
                    Code::None(reason) => self.has_none(path, reason),
                }
            }
            Err(reason) => self.has_none(path, reason),
        };
        self.made.insert(content, made);
        true
    }

    fn has_none(&mut self, path: String, reason: String) -> Made {
        if self.without.len() < 64 {
            self.without.insert(path, reason);
        }
        Made::Nothing
    }

    fn may_clear(&self) -> bool {
        self.cleared.is_none_or(|cleared| cleared.elapsed() > CLEAR_EACH) && self.tables > 0
    }

    /// Withdraws everything and publishes what is there now: tables of files that nobody maps any
    /// more go.
    fn begin_anew(&mut self) {
        self.cleared = Some(Instant::now());
        self.publisher.clear();
        self.made.clear();
        let all = self.spaces.pids().collect();
        self.publish(all);
    }

    /// Writes the regions of a process with what is known of them.
    fn publish_one(&mut self, pid: u32) {
        let Self { spaces, made, fallback, publisher, no_room, .. } = self;
        let Some(space) = spaces.get_mut(pid) else { return publisher.withdraw(pid) };
        let regions: Vec<Region> = space.maps.iter().map(|map| region_of(map, made, *fallback)).collect();
        if !publisher.publish(pid, &regions) {
            no_room.1 += 1;
        }
    }

    fn report(self) -> UnwindReport {
        let mut notes = Vec::new();
        let (tables, processes) = self.no_room;
        if tables > 0 {
            notes.push(format!(
                "there was no room for {}: call chains end in the code of their files",
                counted(tables, "unwind table")
            ));
        }
        if processes + self.spaces.refused > 0 {
            notes.push(format!(
                "there was no room for the mappings of {}: their call chains have one frame",
                counted(processes + self.spaces.refused, "process or mapping")
            ));
        }
        if self.skipped > 0 {
            notes.push(format!(
                "the unwind information of {} is damaged: call chains may end there",
                counted(self.skipped, "function")
            ));
        }
        let named = self.without.iter().take(MAX_NAMED).map(|(path, reason)| format!("{path} {reason}"));
        notes.extend(named.map(|what| format!("no unwind table: {what}")));
        if self.without.len() > MAX_NAMED {
            let more = (self.without.len() - MAX_NAMED) as u64;
            notes.push(format!("no unwind table: {}", counted(more, "more file")));
        }
        UnwindReport { tables: self.tables, used: self.publisher.used(), notes }
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

/// Returns whether a mapping has a file that nobody has looked at yet.
fn has_file(map: &CodeMapping<Known>) -> bool {
    map.known.is_none() && matches!(map.mapping.kind, MapKind::File | MapKind::Vdso)
}

fn region_of(map: &CodeMapping<Known>, made: &FxHashMap<ContentId, Made>, fallback: Fallback) -> Region {
    let (start, end) = (map.mapping.start, map.mapping.end);
    let plain = |kind| Region { start, end, kind, ..Region::default() };
    let none = if fallback.frame_pointers { region::FRAME_POINTERS } else { region::NO_TABLE };
    match map.known {
        None if has_file(map) => plain(region::NOT_YET),
        // Code that a compiler made at run time.
        None => plain(none),
        Some(Known::Nothing) => plain(region::NO_TABLE),
        Some(Known::File(file)) => match made.get(&file.content) {
            None => plain(region::NOT_YET),
            Some(Made::Table(installed)) => installed.region(start, end, file.bias),
            Some(Made::FramePointers | Made::Nothing) => plain(none),
        },
    }
}
