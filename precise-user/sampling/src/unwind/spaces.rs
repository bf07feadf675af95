//! The executable mappings of all processes, as they are now.

use std::io;
use std::path::Path;
use std::sync::Arc;

use precise_common::unwind::program;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::symbols::mapping::{Image, MapKind, Mapping, classify};
use crate::symbols::procfs;
use precise_records::record::{IdentifiedRecord, MmapRecord, Record, TaskRecord};

/// Number of images from which those that no process maps any more are forgotten.
const MANY_IMAGES: usize = 1024;

/// A mapping of code, with what became known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeMapping<T> {
    /// The mapping.
    pub mapping: Mapping,
    /// What is known of its code; `None` if nobody has looked yet.
    pub known: Option<T>,
}

/// The executable mappings of one process.
#[derive(Clone, Debug)]
pub(super) struct Space<T> {
    /// Distinguishes the programs that a process executes, and reuses of a process id.
    pub generation: u64,
    /// The number of the program.
    pub program: u8,
    /// Sorted by address; no two overlap.
    pub maps: Vec<CodeMapping<T>>,
    /// Number of living threads; `None` if not known.
    threads: Option<u32>,
}

impl<T: Clone> Space<T> {
    /// Adds a mapping, which replaces those that it overlaps.
    fn insert(&mut self, new: Mapping) {
        let first = self.maps.partition_point(|map| map.mapping.end <= new.start);
        let last = self.maps.partition_point(|map| map.mapping.start < new.end).max(first);
        let mut parts = Vec::new();
        let mut known = None;
        for old in self.maps.get(first..last).unwrap_or_default() {
            let (start, end) = (old.mapping.start, old.mapping.end);
            if same_code(&old.mapping, &new) {
                known.clone_from(&old.known);
            }
            if start < new.start {
                parts.push(part(old, start, new.start));
            }
            if end > new.end {
                parts.push(part(old, new.end, end));
            }
        }
        let at = parts.partition_point(|map| map.mapping.start < new.start);
        parts.insert(at, CodeMapping { mapping: new, known });
        self.maps.splice(first..last, parts);
    }
}

/// Returns whether two mappings have the same code wherever they overlap.
fn same_code(a: &Mapping, b: &Mapping) -> bool {
    let offset = |map: &Mapping| map.start.wrapping_sub(map.page_offset);
    a.kind == b.kind && a.image == b.image && a.image.is_some() && offset(a) == offset(b)
}

/// Returns the part of a mapping between two addresses.
fn part<T: Clone>(of: &CodeMapping<T>, start: u64, end: u64) -> CodeMapping<T> {
    let page_offset = of.mapping.page_offset.wrapping_add(start - of.mapping.start);
    let mapping = Mapping { start, end, page_offset, ..of.mapping.clone() };
    CodeMapping { mapping, known: of.known.clone() }
}

/// The executable mappings of all processes.
#[derive(Debug)]
pub(super) struct Spaces<T> {
    by_pid: FxHashMap<u32, Space<T>>,
    images: FxHashSet<Arc<Image>>,
    /// Number of images from which unused ones are forgotten again.
    many: usize,
    generation: u64,
    /// Number of mappings of all processes.
    mappings: usize,
    /// Maximum of `mappings`: more have no room in the shared arrays.
    limit: usize,
    /// Number of mappings that were not kept.
    pub refused: u64,
}

impl<T: Clone> Spaces<T> {
    /// Creates an empty set, which keeps at most `limit` mappings.
    pub fn new(limit: usize) -> Self {
        Self {
            by_pid: FxHashMap::default(),
            images: FxHashSet::default(),
            many: MANY_IMAGES,
            generation: 0,
            mappings: 0,
            limit,
            refused: 0,
        }
    }

    /// Returns a process; `None` if it has ended or is not known.
    pub fn get_mut(&mut self, pid: u32) -> Option<&mut Space<T>> {
        self.by_pid.get_mut(&pid)
    }

    /// Returns the ids of all processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.by_pid.keys().copied()
    }

    /// Adds the process `pid` below `root`, unless it is known. Returns whether it was added.
    pub fn snapshot(&mut self, root: &Path, pid: u32) -> io::Result<bool> {
        if self.by_pid.contains_key(&pid) {
            return Ok(false);
        }
        let threads = procfs::status(root, pid)?.threads;
        procfs::each_map(root, pid, |map| self.map(&map))?;
        if let Some(space) = self.by_pid.get_mut(&pid) {
            space.threads = (threads > 0).then_some(threads);
        }
        Ok(true)
    }

    /// Forgets what a process has mapped of a file.
    pub fn forget_file(&mut self, pid: u32, path: &Path) {
        let Some(space) = self.by_pid.get_mut(&pid) else { return };
        let before = space.maps.len();
        let is_of =
            |map: &CodeMapping<T>| map.mapping.image.as_ref().is_some_and(|i| Path::new(&i.path) == path);
        space.maps.retain(|map| !is_of(map));
        self.mappings -= before - space.maps.len();
    }

    /// Applies a record of the sideband. Returns the process whose mappings it changed.
    pub fn apply(&mut self, entry: &IdentifiedRecord) -> Option<u32> {
        match &entry.record {
            Record::Mmap(map) | Record::Mmap2(map) if map.executable => {
                self.map(map);
                Some(map.pid)
            }
            Record::Comm { pid, exec: true, .. } => {
                let before = self.by_pid.get(pid).map_or(program::FIRST, |space| space.program);
                self.begin(*pid, program::next(before), Vec::new(), Some(1));
                Some(*pid)
            }
            Record::Fork(task) if task.pid == task.ppid => {
                let threads = self.by_pid.get_mut(&task.pid).and_then(|space| space.threads.as_mut());
                threads.into_iter().for_each(|threads| *threads = threads.saturating_add(1));
                None
            }
            Record::Fork(task) => {
                let maps = self.by_pid.get(&task.ppid).map(|parent| parent.maps.clone()).unwrap_or_default();
                self.begin(task.pid, program::FIRST, maps, Some(1));
                Some(task.pid)
            }
            Record::Exit(task) => self.exit(task),
            _ => None,
        }
    }

    fn exit(&mut self, task: &TaskRecord) -> Option<u32> {
        let space = self.by_pid.get_mut(&task.pid)?;
        let gone = match &mut space.threads {
            Some(threads) => {
                *threads = threads.saturating_sub(1);
                *threads == 0
            }
            None => task.pid == task.tid,
        };
        gone.then(|| {
            self.forget(task.pid);
            task.pid
        })
    }

    /// Replaces a process by one that has these mappings.
    fn begin(&mut self, pid: u32, program: u8, maps: Vec<CodeMapping<T>>, threads: Option<u32>) {
        self.forget(pid);
        self.generation += 1;
        let fits = self.mappings + maps.len() <= self.limit;
        self.refused += if fits { 0 } else { maps.len() as u64 };
        let maps = if fits { maps } else { Vec::new() };
        self.mappings += maps.len();
        self.by_pid.insert(pid, Space { generation: self.generation, program, maps, threads });
    }

    /// Forgets a process: it has exited, or its mappings are not known any more.
    pub fn forget(&mut self, pid: u32) {
        if let Some(space) = self.by_pid.remove(&pid) {
            self.mappings = self.mappings.saturating_sub(space.maps.len());
        }
    }

    fn map(&mut self, map: &MmapRecord) {
        let (kind, clean, deleted) = classify(&map.path);
        let end = map.start.saturating_add(map.len);
        if !map.executable || map.start >= end || kind == MapKind::Special {
            return;
        }
        if self.mappings >= self.limit {
            self.refused += 1;
            return;
        }
        let image = matches!(kind, MapKind::File | MapKind::Memfd)
            .then(|| self.intern(Image { path: clean.to_owned(), deleted, id: map.file }));
        let (start, page_offset, writable) = (map.start, map.page_offset, map.writable);
        let mapping = Mapping { start, end, page_offset, executable: true, writable, kind, image, since: 0 };
        if !self.by_pid.contains_key(&map.pid) {
            self.begin(map.pid, program::FIRST, Vec::new(), None);
        }
        if let Some(space) = self.by_pid.get_mut(&map.pid) {
            let before = space.maps.len();
            space.insert(mapping);
            self.mappings = self.mappings + space.maps.len() - before;
        }
    }

    fn intern(&mut self, image: Image) -> Arc<Image> {
        if let Some(known) = self.images.get(&image) {
            return known.clone();
        }
        if self.images.len() >= self.many {
            self.images.retain(|image| Arc::strong_count(image) > 1);
            self.many = (2 * self.images.len()).max(MANY_IMAGES);
        }
        let image = Arc::new(image);
        self.images.insert(image.clone());
        image
    }
}

#[cfg(test)]
mod tests {
    use precise_records::record::{MappedFileId, SampleId};

    use super::*;

    fn entry(record: Record) -> IdentifiedRecord {
        IdentifiedRecord { record, misc: 0, id: SampleId::default() }
    }

    fn map(pid: u32, start: u64, len: u64, path: &str) -> IdentifiedRecord {
        entry(Record::Mmap2(MmapRecord {
            pid,
            tid: pid,
            start,
            len,
            page_offset: 0x1000,
            executable: true,
            writable: false,
            flags: 0,
            file: MappedFileId::None,
            path: path.to_owned(),
        }))
    }

    fn task(pid: u32, ppid: u32, tid: u32) -> TaskRecord {
        TaskRecord { pid, ppid, tid, ptid: ppid, time: 0 }
    }

    fn starts(spaces: &mut Spaces<u8>, pid: u32) -> Vec<(u64, u64, u64)> {
        let of = |map: &CodeMapping<u8>| (map.mapping.start, map.mapping.end, map.mapping.page_offset);
        spaces.get_mut(pid).map(|space| space.maps.iter().map(of).collect()).unwrap_or_default()
    }

    #[test]
    fn new_mappings_replace_what_they_overlap() {
        let mut spaces = Spaces::new(100);
        assert_eq!(spaces.apply(&map(1, 0x10000, 0x4000, "/lib/a")), Some(1));
        spaces.get_mut(1).unwrap().maps[0].known = Some(7);
        // In the middle; the rest of the old one keeps what is known of it.
        spaces.apply(&map(1, 0x11000, 0x1000, "/lib/b"));
        let expected =
            vec![(0x10000, 0x11000, 0x1000), (0x11000, 0x12000, 0x1000), (0x12000, 0x14000, 0x3000)];
        assert_eq!(starts(&mut spaces, 1), expected);
        let known: Vec<_> = spaces.get_mut(1).unwrap().maps.iter().map(|map| map.known).collect();
        assert_eq!(known, [Some(7), None, Some(7)]);
        // All of them.
        spaces.apply(&map(1, 0x8000, 0x10000, "//anon"));
        assert_eq!(starts(&mut spaces, 1), [(0x8000, 0x18000, 0x1000)]);
        assert_eq!(spaces.mappings, 1);
    }

    #[test]
    fn processes_fork_execute_and_end() {
        let mut spaces: Spaces<u8> = Spaces::new(100);
        spaces.apply(&map(1, 0x10000, 0x4000, "/lib/a"));
        assert_eq!(spaces.apply(&entry(Record::Fork(task(2, 1, 2)))), Some(2));
        assert_eq!(starts(&mut spaces, 2).len(), 1);
        let generation = spaces.get_mut(2).unwrap().generation;
        spaces.apply(&entry(Record::Comm { pid: 2, tid: 2, comm: "x".into(), exec: true }));
        assert!(starts(&mut spaces, 2).is_empty() && spaces.get_mut(2).unwrap().generation > generation);
        // A second thread outlives the first.
        assert_eq!(spaces.apply(&entry(Record::Fork(task(2, 2, 3)))), None);
        assert_eq!(spaces.apply(&entry(Record::Exit(task(2, 1, 2)))), None);
        assert_eq!(spaces.apply(&entry(Record::Exit(task(2, 1, 3)))), Some(2));
        assert!(spaces.get_mut(2).is_none());
        assert_eq!((spaces.mappings, spaces.pids().collect::<Vec<_>>()), (1, vec![1]));
    }

    #[test]
    fn programs_of_a_process_have_numbers() {
        let mut spaces: Spaces<u8> = Spaces::new(100);
        let exec = entry(Record::Comm { pid: 1, tid: 1, comm: "x".into(), exec: true });
        let number = |spaces: &mut Spaces<u8>, pid| spaces.get_mut(pid).unwrap().program;
        spaces.apply(&map(1, 0x10000, 0x4000, "/lib/a"));
        assert_eq!(number(&mut spaces, 1), program::FIRST);
        for at in 1..program::LAST {
            spaces.apply(&exec);
            assert_eq!(number(&mut spaces, 1), program::FIRST + at);
        }
        spaces.apply(&exec);
        assert_eq!(number(&mut spaces, 1), program::FIRST, "the numbers begin again");
        spaces.apply(&exec);
        spaces.apply(&entry(Record::Fork(task(2, 1, 2))));
        assert_eq!(number(&mut spaces, 2), program::FIRST);
        spaces.forget(1);
        assert!(spaces.get_mut(1).is_none());
        spaces.apply(&exec);
        assert_eq!(number(&mut spaces, 1), program::FIRST + 1);
    }

    #[test]
    fn there_is_a_limit() {
        let mut spaces: Spaces<u8> = Spaces::new(3);
        for at in 0..10 {
            spaces.apply(&map(1, 0x10000 * at, 0x1000, "/lib/a"));
        }
        spaces.apply(&entry(Record::Fork(task(2, 1, 2))));
        assert_eq!((spaces.mappings, spaces.refused), (3, 10));
    }

    #[test]
    fn this_process_has_code() {
        let mut spaces: Spaces<u8> = Spaces::new(10_000);
        let own = std::process::id();
        assert!(spaces.snapshot(Path::new("/"), own).unwrap());
        assert!(!spaces.snapshot(Path::new("/"), own).unwrap());
        let maps = &spaces.get_mut(own).unwrap().maps;
        assert!(maps.iter().any(|map| map.mapping.kind == MapKind::Vdso));
        assert!(maps.iter().any(|map| map.mapping.image.is_some()));
        let (all, program) = (maps.len(), std::env::current_exe().unwrap());
        spaces.forget_file(own, &program);
        let left = spaces.get_mut(own).unwrap().maps.len();
        assert!(left < all && spaces.mappings == left, "{left} of {all}");
    }
}
