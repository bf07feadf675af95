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

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::mapping::{AddressSpace, Image, MapKind, Mapped, Mapping, classify};
use super::procfs;
use precise_model::Reason;
use precise_records::record::{IdentifiedRecord, MmapRecord, Record, TaskRecord};

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;

/// Maximum number of names that one generation keeps.
const MAX_NAMES: usize = 16;
/// Maximum number of new files that wait for [`Processes::take_new_files`].
const MAX_NEW_FILES: usize = 4096;

/// Limits on the memory of a [`Processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of ended generations that are kept for lookup.
    pub ended: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ended: 4096 }
    }
}

/// Counts of data that was dropped here, or lost by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of ended generations that were dropped because there were more than
    /// [`Limits::ended`].
    pub forgotten: u64,
    /// Number of mappings that were dropped because a process had too many.
    pub mappings_dropped: u64,
    /// Number of sideband records that the kernel lost; processes and mappings may be missing.
    pub records_lost: u64,
}

/// An answer, with whether it is the only possible one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The newest candidate.
    pub value: T,
    /// Whether an older candidate is possible as well.
    pub ambiguous: bool,
}

/// A process between two execs.
#[derive(Debug)]
struct Generation {
    serial: u64,
    since: u64,
    until: Option<u64>,
    /// The names, each with the time since when it applies, oldest first.
    names: Vec<(u64, Arc<str>)>,
    space: Arc<AddressSpace>,
    /// Number of living threads; `None` if unknown.
    threads: Option<u32>,
    /// The time of the snapshot that found the generation in `/proc`; `None` if it was not found
    /// that way.
    snapshot: Option<u64>,
}

impl Generation {
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
        self.names.push((time, name));
    }
}

/// All known processes.
#[derive(Debug, Default)]
pub struct Processes {
    /// Generations by pid, oldest first.
    by_pid: FxHashMap<u32, Vec<Generation>>,
    /// Ended generations in the order of their ends: time, pid, serial number.
    ended: VecDeque<(u64, u32, u64)>,
    /// All images, each with whether it was already returned as a new file.
    images: FxHashMap<Arc<Image>, bool>,
    names: FxHashSet<Arc<str>>,
    new_files: Vec<Mapped>,
    limits: Limits,
    counts: Counts,
    serial: u64,
}

impl Processes {
    /// Creates an empty history.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the counts of dropped and lost data.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the number of known pids, alive or not.
    pub fn len(&self) -> usize {
        self.by_pid.len()
    }

    /// Returns whether no process is known.
    pub fn is_empty(&self) -> bool {
        self.by_pid.is_empty()
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
                self.current(*pid).name(time, name);
            }
            Record::Fork(task) => self.fork(task),
            Record::Exit(task) => self.exit(task),
            Record::Lost { lost, .. } => self.counts.records_lost += lost,
            _ => {}
        }
    }

    /// Adds all processes below `root` as `/proc` shows them at `time`. Returns their number.
    pub fn snapshot_all(&mut self, root: &Path, time: u64) -> io::Result<usize> {
        let pids = procfs::pids(root)?;
        // A process that exits meanwhile is skipped.
        Ok(pids.into_iter().filter(|&pid| self.snapshot_proc(root, pid, time).is_ok()).count())
    }

    /// Adds one process below `root` as `/proc` shows it at `time`, unless its start was seen in
    /// the sideband.
    pub fn snapshot_proc(&mut self, root: &Path, pid: u32, time: u64) -> io::Result<()> {
        let seen = procfs::read(root, pid)?;
        let living = self.by_pid.get(&pid).and_then(|all| all.last()).filter(|g| g.until.is_none());
        if living.is_some_and(|g| g.threads.is_some() || g.snapshot.is_some()) {
            return Ok(());
        }
        let name = self.intern_name(&seen.comm);
        let generation = self.current(pid);
        generation.snapshot = Some(time);
        generation.threads = (seen.threads > 0).then_some(seen.threads);
        generation.name(0, name);
        for map in &seen.maps {
            self.map(map, 0);
        }
        Ok(())
    }

    /// Returns the name that `pid` had in `window`.
    pub fn process_name(&self, pid: u32, window: &Range<u64>) -> Result<Found<Arc<str>>, Reason> {
        if pid == 0 {
            return Ok(Found { value: Arc::from("swapper"), ambiguous: false });
        }
        let mut names = self.alive(pid, window).flat_map(|generation| {
            let begun = generation.names.iter().rev().skip_while(|(since, _)| *since >= window.end.max(1));
            // The name at the end of the window, and all others that applied within the window.
            let mut older_than_window = false;
            begun.take_while(move |(since, _)| {
                !std::mem::replace(&mut older_than_window, *since <= window.start)
            })
        });
        let (_, value) = names.next().ok_or(Reason::ProcessGone)?;
        let ambiguous = names.any(|(_, other)| other != value);
        Ok(Found { value: value.clone(), ambiguous })
    }

    /// Returns the last name in `window` of one generation of `pid`: the name of the program that a
    /// mapping belongs to, even if the process has executed another program since.
    pub fn generation_name(
        &self,
        pid: u32,
        serial: u64,
        window: &Range<u64>,
    ) -> Result<Found<Arc<str>>, Reason> {
        let generation = self.by_pid.get(&pid).and_then(|all| all.iter().find(|one| one.serial == serial));
        let names = generation.map(|one| one.names.as_slice()).unwrap_or_default();
        let last = names.iter().rev().find(|(since, _)| *since < window.end.max(1)).or_else(|| names.first());
        match last {
            Some((_, name)) => Ok(Found { value: name.clone(), ambiguous: false }),
            None => self.process_name(pid, window),
        }
    }

    /// Returns the mapping that `pid` had at `address` in `window`.
    pub fn find_mapping(&self, pid: u32, address: u64, window: &Range<u64>) -> Result<Found<Mapped>, Reason> {
        let mut best: Option<Found<Mapped>> = None;
        let mut alive = false;
        for generation in self.alive(pid, window) {
            alive = true;
            let Some((mapping, ambiguous)) = generation.space.find(address, window) else { continue };
            match &mut best {
                None => {
                    let image_base = generation.space.image_base(&mapping);
                    let value = Mapped { pid, generation: generation.serial, mapping, image_base };
                    best = Some(Found { value, ambiguous });
                }
                Some(best) => {
                    // The same file at the same address gives the same answer for both generations.
                    let new = &best.value.mapping;
                    let bias = |m: &Mapping| m.start.wrapping_sub(m.page_offset);
                    let same = new.image == mapping.image && new.kind == mapping.kind;
                    best.ambiguous |= !same || (new.image.is_some() && bias(new) != bias(&mapping));
                }
            }
        }
        best.ok_or(if alive { Reason::Unmapped } else { Reason::ProcessGone })
    }

    /// Returns the executable files that were not seen before, for
    /// [`super::Symbolizer::open_early`].
    pub fn take_new_files(&mut self) -> Vec<Mapped> {
        std::mem::take(&mut self.new_files)
    }

    /// Drops the generations that ended before `time`, because no later query is older than that.
    pub fn forget_before(&mut self, time: u64) {
        while self.ended.front().is_some_and(|&(until, ..)| until < time) {
            self.forget_oldest();
        }
        self.prune_shared();
    }

    fn alive<'a>(&'a self, pid: u32, window: &'a Range<u64>) -> impl Iterator<Item = &'a Generation> {
        let all = self.by_pid.get(&pid).into_iter().flatten().rev();
        all.filter(|generation| generation.alive_in(window))
    }

    /// Returns the living generation of `pid`. If its start was missed, begins an empty one.
    fn current(&mut self, pid: u32) -> &mut Generation {
        if self.by_pid.get(&pid).and_then(|all| all.last()).is_none_or(|last| last.until.is_some()) {
            let since = self.by_pid.get(&pid).and_then(|all| all.last()?.until).unwrap_or(0);
            self.begin(pid, since, Arc::default());
        }
        let all = self.by_pid.entry(pid).or_default();
        // Not empty: a generation was just begun if there was none.
        let last = all.len() - 1;
        &mut all[last]
    }

    fn begin(&mut self, pid: u32, since: u64, space: Arc<AddressSpace>) {
        self.serial += 1;
        let generation = Generation {
            serial: self.serial,
            since,
            until: None,
            names: Vec::new(),
            space,
            threads: None,
            snapshot: None,
        };
        self.by_pid.entry(pid).or_default().push(generation);
    }

    fn end(&mut self, pid: u32, time: u64) {
        let Some(last) = self.by_pid.get_mut(&pid).and_then(|all| all.last_mut()) else { return };
        if last.until.is_none() {
            last.until = Some(time);
            self.ended.push_back((time, pid, last.serial));
        }
        if self.ended.len() > self.limits.ended {
            self.counts.forgotten += 1;
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, pid, serial)) = self.ended.pop_front() else { return };
        if let Some(all) = self.by_pid.get_mut(&pid) {
            all.retain(|generation| generation.serial != serial);
            if all.is_empty() {
                self.by_pid.remove(&pid);
            }
        }
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
        let generation = self.current(map.pid);
        let serial = generation.serial;
        let fits = Arc::make_mut(&mut generation.space).insert(mapping.clone());
        self.counts.mappings_dropped += u64::from(!fits);
        if new_file && self.new_files.len() < MAX_NEW_FILES {
            self.new_files.push(Mapped { pid: map.pid, generation: serial, mapping, image_base: None });
        }
    }

    fn exec(&mut self, pid: u32, comm: &str, time: u64) {
        let name = self.intern_name(comm);
        self.end(pid, time);
        self.begin(pid, time, Arc::default());
        let generation = self.current(pid);
        generation.threads = Some(1);
        generation.name(time, name);
    }

    fn fork(&mut self, task: &TaskRecord) {
        if task.pid == task.ppid {
            let parent = self.current(task.pid);
            parent.threads = parent.threads.map(|n| n.saturating_add(1));
            return;
        }
        let (space, name) = self.parent_at(task.ppid);
        let last = self.by_pid.get_mut(&task.pid).and_then(|all| all.last_mut());
        if let Some(living) = last.filter(|generation| generation.until.is_none()) {
            if living.snapshot.is_some_and(|seen| seen >= task.time) {
                // `/proc` was read after this fork, so it showed this same process.
                living.since = task.time;
                return;
            }
            // The pid was reused, and the exit of its previous process was lost.
            self.end(task.pid, task.time);
        }
        self.begin(task.pid, task.time, space);
        let generation = self.current(task.pid);
        generation.threads = Some(1);
        if let Some(name) = name {
            generation.name(task.time, name);
        }
    }

    /// Returns the mappings and the name that a child inherits.
    fn parent_at(&self, pid: u32) -> (Arc<AddressSpace>, Option<Arc<str>>) {
        let parent = self.by_pid.get(&pid).and_then(|all| all.last());
        parent.map(|p| (p.space.clone(), p.names.last().map(|(_, name)| name.clone()))).unwrap_or_default()
    }

    fn exit(&mut self, task: &TaskRecord) {
        let Some(last) = self.by_pid.get_mut(&task.pid).and_then(|all| all.last_mut()) else { return };
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
        self.images.insert(image.clone(), false);
        image
    }

    fn intern_name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone());
        name
    }

    /// Drops shared images and names that have no other owner.
    fn prune_shared(&mut self) {
        const WORTH_IT: usize = 1024;
        if self.images.len() > WORTH_IT {
            self.images.retain(|image, _| Arc::strong_count(image) > 1);
        }
        if self.names.len() > WORTH_IT {
            self.names.retain(|name| Arc::strong_count(name) > 1);
        }
    }
}
