//! What is known of the code of processes: its mappings, the tables of its files, and both in the
//! arrays that the program reads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use precise_common::unwind::{Region, region};
use rustc_hash::{FxHashMap, FxHashSet};

use super::publisher::{Installed, Publisher};
use super::spaces::{CodeMapping, Spaces};
use crate::kernel::unwind::UnwindMemory;
use crate::reader::unwind::CodeUnwinding;
use crate::symbols::code_file::{CodeFile, ContentId, FileUnwinding};
use crate::symbols::mapping::{MapKind, Mapped};
use crate::symbols::table_cache::CacheCounts;
use crate::symbols::{CodeFiles, pids, procfs};
use precise_model::UnwindUse;
use precise_model::digits::counted;

/// The least time between two times that all tables are made anew because there is no room.
const CLEAR_EACH: Duration = Duration::from_secs(60);
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

/// What became of the unwind tables of a run, for its notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindReport {
    /// The tables, and what they took.
    pub usage: UnwindUse,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

/// What is known of the code of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
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

/// The code of processes, and its tables.
pub(super) struct CodeTables {
    /// The mappings of processes, as they are now.
    pub spaces: Spaces<Known>,
    publisher: Publisher,
    /// Opens the files; `None` if nobody does yet.
    files: Option<CodeFiles>,
    fallback: Fallback,
    made: FxHashMap<ContentId, Made>,
    /// When all tables were last made anew.
    cleared: Option<Instant>,
    usage: UnwindUse,
    /// What became of the tables on disk.
    cache: CacheCounts,
    /// Files without a table, each with the reason.
    without: BTreeMap<String, String>,
    /// Number of tables, and of processes, for which there was no room.
    no_room: (u64, u64),
    /// Number of functions with damaged unwind information.
    skipped: u64,
}

impl CodeTables {
    /// Creates empty tables in `memory`, of no files yet.
    pub fn new(memory: Arc<UnwindMemory>, fallback: Fallback) -> Self {
        // More have no room, as they would take more blocks of regions than there are.
        let limit = memory.sizes().regions as usize;
        Self {
            spaces: Spaces::new(limit),
            publisher: Publisher::new(memory),
            files: None,
            fallback,
            made: FxHashMap::default(),
            cleared: None,
            usage: UnwindUse::default(),
            cache: CacheCounts::default(),
            without: BTreeMap::new(),
            no_room: (0, 0),
            skipped: 0,
        }
    }

    /// Sets who opens the files.
    pub fn open_with(&mut self, files: CodeFiles) {
        self.files = Some(files);
    }

    /// Reads the mappings of the processes that are running. Returns those that were not known.
    pub fn look_around(&mut self, followed: &UnwindTarget) -> FxHashSet<u32> {
        let root = Path::new("/");
        let running: Vec<u32> = match followed {
            UnwindTarget::All => pids(root).unwrap_or_default(),
            UnwindTarget::These(ids) => {
                ids.iter().filter_map(|id| procfs::process_of(root, *id).ok()).collect()
            }
            UnwindTarget::Command(id) => vec![*id],
        };
        // A process that has ended is not sampled.
        let found = running.into_iter().filter(|pid| matches!(self.spaces.snapshot(root, *pid), Ok(true)));
        let found = found.collect();
        if let UnwindTarget::Command(id) = followed
            && let Ok(own) = std::fs::read_link("/proc/self/exe")
        {
            // It will most likely use the libraries of this process, but never its code.
            self.spaces.forget_file(*id, &own);
        }
        found
    }

    /// Returns the span of the regions of a process; `None` if it is not published.
    pub fn regions(&self, pid: u32) -> Option<u64> {
        self.publisher.regions(pid)
    }

    /// Publishes processes, or withdraws those that have ended. What is known already is published
    /// first, because tables take time.
    pub fn publish(&mut self, pids: FxHashSet<u32>) {
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
        let Some(found) = self.files.as_ref().and_then(|files| files.find(asked)) else { return };
        for ((pid, at), found) in places.into_iter().zip(found) {
            if let Some(map) = self.spaces.get_mut(pid).and_then(|space| space.maps.get_mut(at)) {
                map.known = Some(found.map_or(Known::Nothing, Known::File));
            }
        }
    }

    /// Makes and installs the table of a file. Returns whether there is anybody who makes tables.
    fn make(&mut self, content: ContentId) -> bool {
        let files = self.files.as_ref();
        let begun = Instant::now();
        let Some(found) = files.and_then(|files| files.unwind(content, self.fallback.frame_pointers)) else {
            return false;
        };
        let FileUnwinding { path, info, cached, counts } = found;
        self.cache = counts;
        let made = match info {
            Ok(info) => {
                self.skipped += info.skipped;
                match info.code {
                    CodeUnwinding::Table(table) => match self.publisher.install(&table) {
                        Some(installed) => {
                            self.usage.tables += 1;
                            self.usage.cached += u64::from(cached);
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
                    CodeUnwinding::FramePointers => Made::FramePointers,
                    CodeUnwinding::None(reason) => self.has_none(path, reason),
                }
            }
            Err(reason) => self.has_none(path, reason),
        };
        self.made.insert(content, made);
        self.usage.made_ns += u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        true
    }

    fn has_none(&mut self, path: String, reason: String) -> Made {
        if self.without.len() < 64 {
            self.without.insert(path, reason);
        }
        Made::Nothing
    }

    fn may_clear(&self) -> bool {
        self.cleared.is_none_or(|cleared| cleared.elapsed() > CLEAR_EACH) && self.usage.tables > 0
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
        if !publisher.publish(pid, space.program, &regions) {
            no_room.1 += 1;
        }
    }

    /// Returns what was made, and notes on what was not.
    pub fn report(self) -> UnwindReport {
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
        let counts = self.cache;
        if counts.refused > 0 {
            notes.push(format!(
                "{} on disk could not be used and had to be made again",
                counted(counts.refused, "unwind table")
            ));
        }
        notes.extend(counts.trouble.map(|why| format!("unwind tables cannot be kept for later runs: {why}")));
        let (used, room) = (self.publisher.used() as u64, self.publisher.room() as u64);
        UnwindReport { usage: UnwindUse { used, room, ..self.usage }, notes }
    }
}

/// Returns whether a mapping has a file that nobody has looked at yet.
fn has_file(map: &CodeMapping<Known>) -> bool {
    map.known.is_none() && matches!(map.mapping.kind, MapKind::File | MapKind::Vdso)
}

fn region_of(map: &CodeMapping<Known>, made: &FxHashMap<ContentId, Made>, fallback: Fallback) -> Region {
    let (start, end) = (map.mapping.start, map.mapping.end);
    let plain = |kind| Region { start, end, kind, ..Region::default() };
    let (none, not_yet) = if fallback.frame_pointers {
        (region::FRAME_POINTERS, region::GUESSED)
    } else {
        (region::NO_TABLE, region::NOT_YET)
    };
    match map.known {
        None if has_file(map) => plain(not_yet),
        // Code that a compiler made at run time.
        None => plain(none),
        Some(Known::Nothing) => plain(region::NO_TABLE),
        Some(Known::File(file)) => match made.get(&file.content) {
            None => plain(not_yet),
            Some(Made::Table(installed)) => installed.region(start, end, file.bias),
            Some(Made::FramePointers | Made::Nothing) => plain(none),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::mapping::Mapping;

    #[test]
    fn what_nobody_has_looked_at_is_guessed_if_guesses_are_wanted() {
        let of = |kind, known, frame_pointers| {
            let mapping = Mapping {
                start: 0x1000,
                end: 0x3000,
                page_offset: 0,
                executable: true,
                writable: false,
                kind,
                image: None,
                since: 0,
            };
            let region = region_of(
                &CodeMapping { mapping, known },
                &FxHashMap::default(),
                Fallback { frame_pointers },
            );
            assert_eq!((region.start, region.end), (0x1000, 0x3000));
            region.kind
        };
        for (kind, known, guessed, otherwise) in [
            (MapKind::File, None, region::GUESSED, region::NOT_YET),
            (MapKind::Vdso, None, region::GUESSED, region::NOT_YET),
            (MapKind::Anon, None, region::FRAME_POINTERS, region::NO_TABLE),
            (MapKind::File, Some(Known::Nothing), region::NO_TABLE, region::NO_TABLE),
        ] {
            assert_eq!((of(kind, known, true), of(kind, known, false)), (guessed, otherwise), "{kind:?}");
        }
    }
}
