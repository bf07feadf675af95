//! The mappings of an address space, current and recently replaced.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use precise_records::record::FileId;

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;

/// Maximum number of mappings of one address space: the kernel's default `vm.max_map_count`, with a
/// margin.
const MAX_MAPPINGS: usize = 1 << 16;
/// Maximum number of replaced mappings that one address space keeps.
const MAX_REPLACED: usize = 64;
/// How far below the known stack, in bytes, an address still counts as stack: stacks grow without a
/// record.
const STACK_GROWTH: u64 = 8 << 20;
/// The largest distance in bytes between the program and the heap, which the kernel randomizes.
const BRK_RANDOM: u64 = 1 << 30;

/// What backs a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// A file.
    File,
    /// Anonymous memory directly after the mapping of a file, which holds the file's
    /// zero-initialised variables.
    Bss,
    /// The heap (`brk`).
    Heap,
    /// The stack of the main thread.
    Stack,
    /// Anonymous memory, shared or private.
    Anon,
    /// The vDSO.
    Vdso,
    /// A memfd: a file without a name in any directory, used by JITs.
    Memfd,
    /// Anything else: `[vvar]`, device memory, rings.
    Special,
}

/// A mapped file: its path and its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// The path as the process saw it, without the kernel's suffix ` (deleted)`.
    pub path: String,
    /// Whether the file had been deleted when it was seen.
    pub deleted: bool,
    /// The identity of the file apart from its path.
    pub id: FileId,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The first address after the mapping.
    pub end: u64,
    /// The file offset of `start`, in bytes.
    pub page_offset: u64,
    /// Whether the mapping is executable.
    pub executable: bool,
    /// Whether the mapping is writable.
    pub writable: bool,
    /// What backs the mapping.
    pub kind: MapKind,
    /// The file, also for a [`MapKind::Memfd`]; `None` if the mapping has no file.
    pub image: Option<Arc<Image>>,
    /// The time when the mapping was first seen; 0 if it existed before.
    pub since: u64,
}

impl Mapping {
    /// Returns whether `other` has the same content wherever the two overlap.
    fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.image == other.image
            && (self.image.is_none()
                || self.start.wrapping_sub(self.page_offset) == other.start.wrapping_sub(other.page_offset))
    }

    /// Returns the part of this mapping in `range`.
    fn part(&self, range: Range<u64>) -> Self {
        let page_offset = self.page_offset.wrapping_add(range.start - self.start);
        Self { start: range.start, end: range.end, page_offset, ..self.clone() }
    }
}

/// A mapping that holds an address, with what symbolization needs to know. Owns its data, so it
/// outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The process id.
    pub pid: u32,
    /// Serial number of the generation of the process, which distinguishes reuses of a pid and
    /// execs.
    pub generation: u64,
    /// The mapping.
    pub mapping: Mapping,
    /// The address at which offset 0 of the image is mapped, if known.
    pub image_base: Option<u64>,
}

impl Mapped {
    /// Returns the offset of `address` in the mapped file.
    pub fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.mapping.start).wrapping_add(self.mapping.page_offset)
    }
}

/// Splits a path from `/proc/PID/maps` or from a record into the kind of the mapping, the path
/// without suffix, and whether the file was deleted.
pub fn classify(path: &str) -> (MapKind, &str, bool) {
    let (clean, deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |clean| (clean, true));
    let kind = match clean {
        "" | "//anon" | "[anon]" => MapKind::Anon,
        "[heap]" => MapKind::Heap,
        "[stack]" => MapKind::Stack,
        "[vdso]" => MapKind::Vdso,
        _ if clean.starts_with("[stack:") => MapKind::Stack,
        _ if clean.starts_with("[anon:") || clean.starts_with("[anon_shmem:") => MapKind::Anon,
        _ if clean.starts_with("/memfd:") => MapKind::Memfd,
        "/dev/zero" | "/anon_hugepage" => MapKind::Anon,
        _ if deleted && clean.starts_with("/SYSV") => MapKind::Anon,
        _ if clean.starts_with("/[") || clean.starts_with("/dev/dri/") => MapKind::Special,
        _ if clean.starts_with('/') => MapKind::File,
        _ => MapKind::Special,
    };
    (kind, clean, deleted)
}

/// The mappings of one process between two execs.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Mappings by first address; no two overlap.
    maps: BTreeMap<u64, Mapping>,
    /// Replaced mappings, each with the time of its replacement, oldest first.
    replaced: Vec<(u64, Mapping)>,
    /// The file that was mapped first: after an exec, this is the program.
    program: Option<Arc<Image>>,
}

impl AddressSpace {
    /// Returns the number of mappings.
    pub fn len(&self) -> usize {
        self.maps.len()
    }

    /// Returns whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// Adds a mapping, which replaces those that it overlaps, because the kernel does not report
    /// unmapping. Returns false if there was no room.
    pub fn insert(&mut self, mut new: Mapping) -> bool {
        if new.start >= new.end {
            return true;
        }
        if self.program.is_none() && new.kind == MapKind::File {
            self.program.clone_from(&new.image);
        }
        for start in self.overlapping(new.start..new.end) {
            let Some(old) = self.maps.remove(&start) else { continue };
            if old.start < new.start {
                self.maps.insert(old.start, old.part(old.start..new.start));
            }
            if old.end > new.end {
                self.maps.insert(new.end, old.part(new.end..old.end));
            }
            if old.same_content(&new) {
                // Only the protection changed, or the mapping was reported again.
                new.since = new.since.min(old.since);
            } else if old.executable || old.image.is_some() {
                if self.replaced.len() == MAX_REPLACED {
                    self.replaced.remove(0);
                }
                let range = old.start.max(new.start)..old.end.min(new.end);
                self.replaced.push((new.since, old.part(range)));
            }
        }
        if self.extend_neighbour(&new) {
            return true;
        }
        if self.maps.len() >= MAX_MAPPINGS {
            return false;
        }
        self.maps.insert(new.start, new);
        true
    }

    /// Returns the first addresses of the mappings that overlap `range`.
    fn overlapping(&self, range: Range<u64>) -> Vec<u64> {
        let before = self.maps.range(..range.start).next_back().filter(|(_, m)| m.end > range.start);
        before.into_iter().chain(self.maps.range(range)).map(|(&start, _)| start).collect()
    }

    /// Extends the mapping directly below by `new` if both are anonymous with the same protection,
    /// as the kernel does. Returns whether it did.
    fn extend_neighbour(&mut self, new: &Mapping) -> bool {
        let Some((_, below)) = self.maps.range_mut(..new.start).next_back() else { return false };
        let merges = below.end == new.start
            && below.kind == MapKind::Anon
            && new.kind == MapKind::Anon
            && (below.executable, below.writable) == (new.executable, new.writable);
        if merges {
            below.end = new.end;
        }
        merges
    }

    /// Returns the mapping that held `address` in `window`: the newest if there were several, and
    /// whether there were several.
    pub fn find(&self, address: u64, window: &Range<u64>) -> Option<(Mapping, bool)> {
        let current = self.current(address).filter(|m| m.since < window.end.max(1));
        let earlier = |m: &&(u64, Mapping)| {
            let (until, mapping) = m;
            (mapping.start..mapping.end).contains(&address)
                && mapping.since < window.end.max(1)
                && *until > window.start
        };
        let mut replaced = self.replaced.iter().rev().filter(earlier).map(|(_, m)| m.clone());
        match current {
            // Mappings that were replaced before the window began are already excluded, so any that
            // is left is a second candidate.
            Some(mapping) => Some((mapping, replaced.next().is_some())),
            None => replaced.next().map(|mapping| (mapping, replaced.next().is_some())),
        }
    }

    /// Returns the mapping that holds `address` now, and recognises [`MapKind::Bss`], the heap and
    /// a grown stack.
    fn current(&self, address: u64) -> Option<Mapping> {
        let below = self.maps.range(..=address).next_back().map(|(_, m)| m);
        if let Some(found) = below.filter(|m| m.end > address) {
            let mut found = found.clone();
            if let Some(image) = self.bss_of(&found) {
                found.kind = MapKind::Bss;
                found.image = Some(image);
            } else if self.is_heap(&found) {
                found.kind = MapKind::Heap;
            }
            return Some(found);
        }
        let (_, above) = self.maps.range(address..).next()?;
        let grown = above.kind == MapKind::Stack && above.start - address < STACK_GROWTH;
        grown.then(|| Mapping { start: address, ..above.clone() })
    }

    /// Returns the file whose zero-initialised variables may be in `mapping`: the file mapped
    /// directly below it.
    fn bss_of(&self, mapping: &Mapping) -> Option<Arc<Image>> {
        if mapping.kind != MapKind::Anon {
            return None;
        }
        let (_, below) = self.maps.range(..mapping.start).next_back()?;
        if below.kind != MapKind::File || below.end != mapping.start {
            return None;
        }
        below.image.clone()
    }

    /// Returns whether `mapping` is the heap although its record says `//anon`. The kernel
    /// recognises the heap by the position of `brk`, and reports the first growth before it moves
    /// `brk`. The heap is the first memory above the program and its variables.
    fn is_heap(&self, mapping: &Mapping) -> bool {
        if mapping.kind != MapKind::Anon || mapping.since == 0 || mapping.executable || !mapping.writable {
            return false;
        }
        let mut below = self.maps.range(..mapping.start).rev().map(|(_, m)| m).peekable();
        if let Some(bss) = below.next_if(|m| m.kind == MapKind::Anon)
            && below.peek().is_none_or(|file| file.end != bss.start)
        {
            return false;
        }
        let Some(program) = below.next() else { return false };
        program.image.is_some() && program.image == self.program && mapping.start - program.end < BRK_RANDOM
    }

    /// Returns the address of offset 0 of the image of `mapping`, searching downwards from it.
    pub fn image_base(&self, mapping: &Mapping) -> Option<u64> {
        /// An image has only a few segments, and anonymous memory may lie between them.
        const SEGMENTS: usize = 16;
        let image = mapping.image.as_ref()?;
        let own = (mapping.kind != MapKind::Bss && mapping.page_offset == 0).then_some(mapping.start);
        own.or_else(|| {
            let mut below = self.maps.range(..mapping.start).rev().map(|(_, m)| m).take(SEGMENTS);
            below.find(|m| m.page_offset == 0 && m.image.as_ref() == Some(image)).map(|m| m.start)
        })
    }
}
