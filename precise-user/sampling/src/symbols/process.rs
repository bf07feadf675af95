//! The history of processes: their names and mappings over time.
//!
//! It is built from the sideband ([`Processes::apply`], with records in order of time) and, for
//! processes that existed before, from `/proc` ([`Processes::snapshot_all`]). A process is a
//! sequence of *generations*: each exec, and each reuse of its pid, begins a new generation. A
//! query has a window of time, because a cell of the kernel's table only says in which epoch a
//! sample was taken. An answer says whether more than one generation is possible.
//!
//! Open the sideband first, then take the snapshot, then apply the records. Changes in between are
//! then seen twice, which is harmless, and none is missed.
//!
//! The memory is bounded in bytes ([`HistoryLimits`]), because any process can start others and map
//! files as fast as it likes. Where the bytes do not suffice, something is forgotten, in this
//! order:
//!
//! 1. Processes that ended before the present epoch, and mappings that were replaced before it.
//! 2. The mappings of processes with more than a 256th of the limit, the largest first.
//! 3. Other processes that have ended; the one that ended first comes first.
//! 4. The mappings of the other processes, the largest first.
//! 5. Living processes; the one that started last comes first.
//!
//! The names of threads have a part of the limit for themselves (`threads`).
//!
//! [`ForgottenCounts`] counts 2 to 5, and threads, for the notes of a capture. An address whose
//! mapping may have been forgotten has the reason [`Reason::Forgotten`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use precise_common::unwind::program;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::charge::{BLOCK, ByteAccount, COUNTERS, Charge};
use super::mapping::{AddressSpace, Image, MapKind, Mapped, Mapping, classify};
use super::procfs;
use precise_model::Reason;
use precise_records::record::{IdentifiedRecord, MmapRecord, Record, TaskRecord};

mod finding;
mod forgetting;
mod limits;
#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
mod threads;

use threads::ThreadNames;

pub use limits::{ForgottenCounts, HistoryLimits};

/// Maximum number of names that one generation keeps.
const MAX_NAMES: usize = 16;
/// Maximum number of new files that wait for [`Processes::take_new_files`].
const MAX_NEW_FILES: usize = 4096;
/// The part of [`HistoryLimits::bytes`] that the paths of these files may take.
const NEW_FILES: usize = 16;
/// The part of [`HistoryLimits::bytes`] that the names of threads may take: some 40,000 threads of
/// the smallest limit of a run.
const THREADS: usize = 8;
/// From this number of images, or of names, on, those that no process has any more are dropped
/// while the run goes on. There is room for twice as many from the start: tables that grow leave
/// holes.
const MANY_SHARED: usize = 1024;

/// An answer, with whether it is the only possible one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedAddress<T> {
    /// The newest candidate.
    pub value: T,
    /// Whether an older candidate is possible as well.
    pub ambiguous: bool,
}

/// A process between two execs.
#[derive(Debug)]
struct Generation {
    since: u64,
    until: Option<u64>,
    /// The names, each with the time since when it applies, oldest first.
    names: Vec<(u64, Arc<str>)>,
    space: AddressSpace,
    /// The number of the program, as unwinding counts them.
    program: u8,
    /// Number of living threads; `None` if unknown.
    threads: Option<u32>,
    /// The time of the snapshot that found the generation in `/proc`; `None` if it was not found
    /// that way.
    snapshot: Option<u64>,
    /// Whether the mappings that it had before the run may not be read.
    is_hidden: bool,
    /// The bytes of this and of `names`.
    charge: Charge,
}

/// The identity of a generation: its pid and its serial number, which grows with time.
type GenerationKey = (u32, u64);

impl Generation {
    fn new(since: u64, space: AddressSpace, account: &ByteAccount) -> Box<Self> {
        let charge = account.charge(0);
        let (until, names, threads, snapshot) = (None, Vec::new(), None, None);
        let (program, is_hidden) = (program::FIRST, false);
        let mut generation =
            Box::new(Self { since, until, names, space, program, threads, snapshot, is_hidden, charge });
        generation.recharge();
        generation
    }

    fn recharge(&mut self) {
        /// The entries in [`Processes::by_pid`] and [`Processes::ended`]: the nodes of a B-tree are
        /// at least half full.
        const ENTRIES: usize =
            2 * (size_of::<(GenerationKey, Box<Generation>)>() + size_of::<(u64, u64, u32)>());
        let names = self.names.capacity() * size_of::<(u64, Arc<str>)>();
        self.charge.set(ENTRIES + size_of::<Self>() + names + 2 * BLOCK);
    }

    /// Returns this generation's part of the bytes that would be free without it.
    fn own_bytes(&self) -> usize {
        self.charge.bytes() + self.space.own_bytes()
    }

    fn alive_in(&self, window: &Range<u64>) -> bool {
        self.since < window.end.max(1) && self.until.is_none_or(|until| until > window.start)
    }

    fn name(&mut self, time: u64, name: Arc<str>) {
        if self.names.last().is_some_and(|(_, last)| *last == name) {
            return;
        }
        if self.names.len() == MAX_NAMES {
            self.names.remove(0);
        }
        if self.names.is_empty() {
            // Most processes never have another name.
            self.names.reserve_exact(1);
        }
        self.names.push((time, name));
        self.recharge();
    }
}

/// All known processes.
#[derive(Debug)]
pub struct Processes {
    /// Generations by pid, oldest first.
    by_pid: BTreeMap<GenerationKey, Box<Generation>>,
    /// Ended generations in the order of their ends: time, serial number, pid.
    ended: BTreeSet<(u64, u64, u32)>,
    /// All images, each with whether it was already returned as a new file.
    images: FxHashMap<Arc<Image>, bool>,
    names: FxHashSet<Arc<str>>,
    /// The names of threads, without those of the first threads.
    threads: ThreadNames,
    /// Whether a snapshot reads the names of threads.
    reads_threads: bool,
    /// The bytes of `images` and `names`.
    shared: Charge,
    new_files: Vec<Mapped>,
    /// The bytes of the images of `new_files`.
    new_file_bytes: usize,
    limits: HistoryLimits,
    counts: ForgottenCounts,
    serial: u64,
    /// Nothing that ended before this time is needed.
    horizon: u64,
    /// A process that was forgotten before it had been named ended before this time; 0 if none was.
    forgotten_until: u64,
    /// The bytes of all generations, mappings, images and names.
    account: ByteAccount,
    /// The number of bytes from which forgetting is tried again if it did not free enough: it does
    /// not free images that the names of samples refer to. 0 if it did.
    held: usize,
}

impl Default for Processes {
    fn default() -> Self {
        Self::new(HistoryLimits::default())
    }
}

impl Processes {
    /// Creates an empty history.
    pub fn new(limits: HistoryLimits) -> Self {
        let account = ByteAccount::default();
        Self {
            by_pid: BTreeMap::new(),
            ended: BTreeSet::new(),
            images: FxHashMap::with_capacity_and_hasher(2 * MANY_SHARED, FxBuildHasher),
            names: FxHashSet::with_capacity_and_hasher(2 * MANY_SHARED, FxBuildHasher),
            threads: ThreadNames::new(limits.bytes / THREADS, &account),
            reads_threads: false,
            shared: account.charge(0),
            new_files: Vec::new(),
            new_file_bytes: 0,
            limits,
            counts: ForgottenCounts::default(),
            serial: 0,
            horizon: 0,
            forgotten_until: 0,
            account,
            held: 0,
        }
    }

    /// Returns the counts of forgotten and lost data.
    pub fn counts(&self) -> ForgottenCounts {
        ForgottenCounts { threads: self.threads.forgotten(), ..self.counts }
    }

    /// Sets whether snapshots read the names of threads, which costs one file for each thread.
    pub fn read_threads(&mut self, reads: bool) {
        self.reads_threads = reads;
    }

    /// Returns the number of known processes, alive or not. A process that executed another program
    /// counts twice while both are known.
    pub fn len(&self) -> usize {
        self.by_pid.len()
    }

    /// Returns whether no process is known.
    pub fn is_empty(&self) -> bool {
        self.by_pid.is_empty()
    }

    /// Returns the number of bytes that count towards [`HistoryLimits::bytes`].
    pub fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// Applies one record. Records must come in order of time; those that do not concern processes
    /// are ignored.
    pub fn apply(&mut self, entry: &IdentifiedRecord) {
        let time = entry.id.time;
        match &entry.record {
            Record::Mmap(map) | Record::Mmap2(map) => self.map(map, time),
            Record::Comm { pid, comm, exec: true, .. } => self.exec(*pid, comm, time),
            // The name of a thread is not the name of its process.
            Record::Comm { pid, tid, comm, exec: false } if pid == tid => {
                let name = self.intern_name(comm);
                self.current(*pid).1.name(time, name);
            }
            Record::Comm { pid, tid, comm, exec: false } => self.name_thread((*pid, *tid), time, comm),
            Record::Fork(task) => self.fork(task),
            Record::Exit(task) => self.exit(task),
            Record::Lost { lost, .. } => self.counts.records_lost += lost,
            _ => {}
        }
        self.bound();
    }

    /// Adds all processes below `root` as `/proc` shows them at `time`. Returns their number.
    pub fn snapshot_all(&mut self, root: &Path, time: u64) -> io::Result<usize> {
        let pids = procfs::pids(root)?;
        // A process that exits meanwhile is skipped.
        Ok(pids.into_iter().filter(|&pid| self.snapshot_proc(root, pid, time).is_ok()).count())
    }

    /// Adds the process of a thread, or that with this id, as [`Self::snapshot_proc`] does.
    pub fn snapshot_proc_of(&mut self, root: &Path, tid: u32, time: u64) -> io::Result<()> {
        let pid = procfs::process_of(root, tid)?;
        self.snapshot_proc(root, pid, time)
    }

    /// Adds one process below `root` as `/proc` shows it at `time`, unless its start was seen in
    /// the sideband.
    pub fn snapshot_proc(&mut self, root: &Path, pid: u32, time: u64) -> io::Result<()> {
        let seen = procfs::status(root, pid)?;
        let living = self.last(pid).filter(|generation| generation.until.is_none());
        if living.is_some_and(|generation| generation.threads.is_some() || generation.snapshot.is_some()) {
            return Ok(());
        }
        let name = self.intern_name(&seen.comm);
        let (_, generation) = self.current(pid);
        generation.snapshot = Some(time);
        generation.threads = (seen.threads > 0).then_some(seen.threads);
        generation.name(0, name);
        if self.reads_threads && seen.threads > 1 {
            // A thread that exits meanwhile is skipped.
            let _ended = procfs::each_thread(root, pid, |tid, name| self.name_thread((pid, tid), 0, name));
        }
        // Another user's maps may not be readable; the name is still useful.
        let read = procfs::each_map(root, pid, |map| {
            self.map(&map, 0);
            self.bound();
        });
        if matches!(read, Err(error) if error.kind() == io::ErrorKind::PermissionDenied) {
            self.current(pid).1.is_hidden = true;
        }
        Ok(())
    }

    /// Returns the name that `pid` had in `window`.
    pub fn process_name(&self, pid: u32, window: &Range<u64>) -> Result<LocatedAddress<Arc<str>>, Reason> {
        if pid == 0 {
            return Ok(LocatedAddress { value: Arc::from("swapper"), ambiguous: false });
        }
        let mut names = self.alive(pid, window).flat_map(|(_, generation)| {
            let begun = generation.names.iter().rev().skip_while(|(since, _)| *since >= window.end.max(1));
            // The name at the end of the window, and all others that applied within the window.
            let mut older_than_window = false;
            begun.take_while(move |(since, _)| {
                !std::mem::replace(&mut older_than_window, *since <= window.start)
            })
        });
        let (_, value) = names.next().ok_or_else(|| self.unknown(window))?;
        let ambiguous = names.any(|(_, other)| other != value);
        Ok(LocatedAddress { value: value.clone(), ambiguous })
    }

    /// Returns the newest name that the thread `tid` of `pid` had in `window`. The name of the
    /// first thread is that of its process.
    pub fn thread_name(&self, pid: u32, tid: u32, window: &Range<u64>) -> Result<Arc<str>, Reason> {
        if pid == tid {
            return self.process_name(pid, window).map(|found| found.value);
        }
        let unknown = || match self.threads.forgotten() {
            0 => Reason::ThreadGone,
            _ => Reason::Forgotten,
        };
        self.threads.find((pid, tid), window).cloned().ok_or_else(unknown)
    }

    /// Returns the last name in `window` of one generation of `pid`: the name of the program that a
    /// mapping belongs to, even if the process has executed another program since.
    pub fn generation_name(
        &self,
        pid: u32,
        serial: u64,
        window: &Range<u64>,
    ) -> Result<LocatedAddress<Arc<str>>, Reason> {
        let generation = self.by_pid.get(&(pid, serial));
        let names = generation.map(|one| one.names.as_slice()).unwrap_or_default();
        let last = names.iter().rev().find(|(since, _)| *since < window.end.max(1)).or_else(|| names.first());
        match last {
            Some((_, name)) => Ok(LocatedAddress { value: name.clone(), ambiguous: false }),
            None => self.process_name(pid, window),
        }
    }

    /// Returns the reason why no process of a pid is known in `window`.
    fn unknown(&self, window: &Range<u64>) -> Reason {
        if self.forgotten_until > window.start { Reason::Forgotten } else { Reason::ProcessGone }
    }

    /// Returns the executable files that were not seen before, for
    /// [`super::Symbolizer::open_early`].
    pub fn take_new_files(&mut self) -> Vec<Mapped> {
        self.new_file_bytes = 0;
        std::mem::take(&mut self.new_files)
    }

    /// Drops the generations that ended before `time`, because no later query is older than that.
    pub fn forget_before(&mut self, time: u64) {
        self.horizon = self.horizon.max(time);
        while self.ended.first().is_some_and(|&(until, ..)| until < time) {
            self.take_ended();
        }
        self.threads.forget_before(time);
        self.prune_shared(MANY_SHARED);
    }

    /// Returns the generations of `pid` that lived in `window`, newest first.
    fn alive<'a>(
        &'a self,
        pid: u32,
        window: &'a Range<u64>,
    ) -> impl Iterator<Item = (&'a GenerationKey, &'a Generation)> {
        let all = self.by_pid.range((pid, 0)..=(pid, u64::MAX)).rev();
        all.map(|(key, generation)| (key, &**generation)).filter(|(_, one)| one.alive_in(window))
    }

    /// Returns the newest generation of `pid`.
    fn last(&self, pid: u32) -> Option<&Generation> {
        self.by_pid.range((pid, 0)..=(pid, u64::MAX)).next_back().map(|(_, generation)| &**generation)
    }

    fn last_mut(&mut self, pid: u32) -> Option<(GenerationKey, &mut Generation)> {
        let last = self.by_pid.range_mut((pid, 0)..=(pid, u64::MAX)).next_back();
        last.map(|(key, generation)| (*key, &mut **generation))
    }

    /// Returns the living generation of `pid` with its serial number. If its start was missed,
    /// begins an empty one.
    fn current(&mut self, pid: u32) -> (u64, &mut Generation) {
        let last = self.by_pid.range((pid, 0)..=(pid, u64::MAX)).next_back();
        match last.map(|(key, generation)| (*key, generation.until)) {
            Some((key, None)) => {
                let account = &self.account;
                let generation = self
                    .by_pid
                    .entry(key)
                    .or_insert_with(|| Generation::new(0, AddressSpace::new(account, true), account));
                (key.1, generation)
            }
            ended => {
                let since = ended.and_then(|(_, until)| until).unwrap_or(0);
                // If a living process was ever forgotten, this may be one.
                let space = AddressSpace::new(&self.account, self.counts.living > 0);
                self.begin(pid, since, space)
            }
        }
    }

    fn begin(&mut self, pid: u32, since: u64, space: AddressSpace) -> (u64, &mut Generation) {
        self.serial += 1;
        let generation = Generation::new(since, space, &self.account);
        (self.serial, self.by_pid.entry((pid, self.serial)).or_insert(generation))
    }

    fn name_thread(&mut self, id: (u32, u32), time: u64, name: &str) {
        let name = self.intern_name(name);
        self.threads.name(id, time, name, self.horizon);
    }

    fn end(&mut self, pid: u32, time: u64) {
        self.threads.end_all(pid, time);
        let Some(((_, serial), last)) = self.last_mut(pid) else { return };
        if last.until.is_none() {
            last.until = Some(time);
            self.ended.insert((time, serial, pid));
        }
    }

    /// Removes the generation that ended first.
    fn take_ended(&mut self) -> Option<(u64, Box<Generation>)> {
        let (until, serial, pid) = self.ended.pop_first()?;
        Some((until, self.by_pid.remove(&(pid, serial))?))
    }

    fn map(&mut self, map: &MmapRecord, time: u64) {
        let (kind, clean, deleted) = classify(&map.path);
        let is_file = matches!(kind, MapKind::File | MapKind::Memfd);
        let image =
            is_file.then(|| self.intern_image(Image { path: clean.to_owned(), deleted, id: map.file }));
        let new_file = map.executable
            && image
                .as_ref()
                .and_then(|image| self.images.get_mut(image))
                .is_some_and(|seen| !std::mem::replace(seen, true));
        let mapping = Mapping {
            start: map.start,
            end: map.start.saturating_add(map.len),
            page_offset: map.page_offset,
            executable: map.executable,
            writable: map.writable,
            kind,
            image,
            since: time,
        };
        let (serial, generation) = self.current(map.pid);
        generation.space.insert(mapping.clone());
        let Some(image) = mapping.image.as_ref().filter(|_| new_file) else { return };
        let bytes = self.new_file_bytes + Image::bytes(image);
        if self.new_files.len() >= MAX_NEW_FILES || bytes > self.limits.bytes / NEW_FILES {
            self.counts.files += 1;
            return;
        }
        self.new_file_bytes = bytes;
        self.new_files.push(Mapped { pid: map.pid, generation: serial, mapping, image_base: None });
    }

    fn exec(&mut self, pid: u32, comm: &str, time: u64) {
        let name = self.intern_name(comm);
        let living = self.last(pid).filter(|generation| generation.until.is_none());
        let before = living.map_or(program::FIRST, |generation| generation.program);
        self.end(pid, time);
        let space = AddressSpace::new(&self.account, false);
        let (_, generation) = self.begin(pid, time, space);
        generation.program = program::next(before);
        generation.threads = Some(1);
        generation.name(time, name);
    }

    fn fork(&mut self, task: &TaskRecord) {
        if task.pid == task.ppid {
            let (_, parent) = self.current(task.pid);
            parent.threads = parent.threads.map(|n| n.saturating_add(1));
            if task.tid != task.pid
                && let Some(name) = self.last_name(task.ppid, task.ptid)
            {
                self.threads.name((task.pid, task.tid), task.time, name, self.horizon);
            }
            return;
        }
        if let Some((_, living)) = self.last_mut(task.pid).filter(|(_, one)| one.until.is_none()) {
            if living.snapshot.is_some_and(|seen| seen >= task.time) {
                // `/proc` was read after this fork, so it showed this same process.
                living.since = task.time;
                return;
            }
            // The pid was reused, and the exit of its previous process was lost.
            self.end(task.pid, task.time);
        }
        let is_hidden = self.last(task.ppid).is_some_and(|parent| parent.is_hidden);
        let (space, name) = self.parent_at(task.ppid, task.ptid);
        let (_, generation) = self.begin(task.pid, task.time, space);
        generation.is_hidden = is_hidden;
        generation.threads = Some(1);
        if let Some(name) = name {
            generation.name(task.time, name);
        }
    }

    /// Returns the mappings and the name that a child inherits: the name is that of the thread that
    /// started it.
    fn parent_at(&self, pid: u32, tid: u32) -> (AddressSpace, Option<Arc<str>>) {
        match self.last(pid) {
            Some(parent) => {
                let name = self.last_name(pid, tid).or_else(|| self.last_name(pid, pid));
                (parent.space.fork(), name)
            }
            // A parent that is not known may be one that was forgotten.
            None => (AddressSpace::new(&self.account, self.counts.living > 0), None),
        }
    }

    /// Returns the newest name of a thread.
    fn last_name(&self, pid: u32, tid: u32) -> Option<Arc<str>> {
        if pid != tid {
            return self.threads.last((pid, tid)).cloned();
        }
        self.last(pid)?.names.last().map(|(_, name)| name.clone())
    }

    fn exit(&mut self, task: &TaskRecord) {
        self.threads.end((task.pid, task.tid), task.time);
        let Some((_, last)) = self.last_mut(task.pid) else { return };
        let gone = match &mut last.threads {
            Some(threads) => {
                *threads = threads.saturating_sub(1);
                *threads == 0
            }
            // The number of threads is unknown, so the exit of the leader counts as the exit of the
            // process.
            None => task.pid == task.tid,
        };
        if gone {
            self.end(task.pid, task.time);
        }
    }

    fn intern_image(&mut self, image: Image) -> Arc<Image> {
        if let Some((known, _)) = self.images.get_key_value(&image) {
            return known.clone();
        }
        let image = Arc::new(image);
        self.shared.set(self.shared.bytes() + Image::bytes(&image));
        self.images.insert(image.clone(), false);
        image
    }

    fn intern_name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.shared.set(self.shared.bytes() + name_bytes(&name));
        self.names.insert(name.clone());
        name
    }
}

/// Returns the bytes of a name that is shared, with its entry in a hash table: a table that grows
/// takes three times the space of its entries for a moment.
fn name_bytes(name: &Arc<str>) -> usize {
    const ENTRY: usize = 3 * (size_of::<Arc<str>>() + 1);
    ENTRY + name.len() + COUNTERS + BLOCK
}
