//! The mappings of an address space, current and recently replaced.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::charge::{BLOCK, ByteAccount, COUNTERS, Charge};
use super::shared_maps::SharedMaps;
use precise_common::mode::{VSYSCALL, in_vsyscall};
use precise_records::record::MappedFileId;

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;

/// Maximum number of replaced mappings that one address space keeps.
const MAX_REPLACED: usize = 64;
/// Maximum number of address ranges for which it keeps only that code was replaced there.
const MAX_WORN: usize = 64;
/// How far below the known stack, in bytes, an address still counts as stack: stacks grow without a
/// record.
const STACK_GROWTH: u64 = 8 << 20;
/// The length of the vsyscall page in bytes.
const VSYSCALL_BYTES: u64 = 4096;
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
    /// Such memory and the heap behind it, in one: the kernel joins them where it does not give the
    /// heap a random place (`setarch -R`, `kernel.randomize_va_space` below 2).
    BssAndHeap,
    /// The heap (`brk`).
    Heap,
    /// The stack of the main thread.
    Stack,
    /// Anonymous memory, shared or private.
    Anon,
    /// The vDSO.
    Vdso,
    /// The vsyscall page, which is at one address in every process. No record reports it.
    Vsyscall,
    /// A memfd: a file without a name in any directory, used by JITs.
    Memfd,
    /// Anything else: `[vvar]`, device memory, rings.
    Special,
}

impl MapKind {
    /// Returns whether a file's zero-initialised variables may be here. How far they reach says the
    /// file.
    pub fn is_bss(self) -> bool {
        matches!(self, Self::Bss | Self::BssAndHeap)
    }
}

/// A mapped file: its path and its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// The path as the process saw it, without the kernel's suffix ` (deleted)`: see
    /// [`Image::name`].
    pub path: String,
    /// Whether the file had been deleted when it was seen.
    pub deleted: bool,
    /// The identity of the file apart from its path.
    pub id: MappedFileId,
}

/// How the path of a file of memfd_create(2) begins.
const MEMFD: &str = "/memfd:";
/// What the kernel appends to the path of a file that has been deleted.
pub(super) const DELETED: &str = " (deleted)";

impl Image {
    /// Returns the path as the kernel and perf show it: of a file that had been deleted, or that a
    /// package's new version had replaced, with the suffix ` (deleted)`.
    pub fn name(&self) -> Cow<'_, str> {
        // The file of memfd_create has no name in any folder, so each is deleted.
        match self.deleted && !self.path.starts_with(MEMFD) {
            true => Cow::Owned(format!("{}{DELETED}", self.path)),
            false => Cow::Borrowed(&self.path),
        }
    }

    /// Returns the bytes of an image that is shared, with its entry in a hash table: a table that
    /// grows takes three times the space of its entries for a moment.
    pub(super) fn bytes(image: &Arc<Self>) -> usize {
        const ENTRY: usize = 3 * (size_of::<(Arc<Image>, bool)>() + 1);
        ENTRY + size_of::<Self>() + COUNTERS + image.path.capacity() + 2 * BLOCK
    }

    /// Returns the part of these bytes of one of those that share the image.
    pub(super) fn own_bytes(image: &Arc<Self>) -> usize {
        Self::bytes(image) / Arc::strong_count(image)
    }
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
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.image == other.image
            && (self.image.is_none()
                || self.start.wrapping_sub(self.page_offset) == other.start.wrapping_sub(other.page_offset))
    }

    /// Returns the mapping of the vsyscall page.
    fn vsyscall() -> Self {
        Self {
            start: VSYSCALL,
            end: VSYSCALL + VSYSCALL_BYTES,
            page_offset: 0,
            executable: true,
            writable: false,
            kind: MapKind::Vsyscall,
            image: None,
            since: 0,
        }
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
    let (clean, deleted) = path.strip_suffix(DELETED).map_or((path, false), |clean| (clean, true));
    let kind = match clean {
        "" | "//anon" | "[anon]" => MapKind::Anon,
        "[heap]" => MapKind::Heap,
        "[stack]" => MapKind::Stack,
        "[vdso]" => MapKind::Vdso,
        _ if clean.starts_with("[stack:") => MapKind::Stack,
        _ if clean.starts_with("[anon:") || clean.starts_with("[anon_shmem:") => MapKind::Anon,
        _ if clean.starts_with(MEMFD) => MapKind::Memfd,
        "/dev/zero" | "/anon_hugepage" => MapKind::Anon,
        _ if deleted && clean.starts_with("/SYSV") => MapKind::Anon,
        _ if clean.starts_with("/[") || clean.starts_with("/dev/dri/") => MapKind::Special,
        _ if clean.starts_with('/') => MapKind::File,
        _ => MapKind::Special,
    };
    (kind, clean, deleted)
}

/// Addresses where code was replaced, of which nothing else is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WornRange {
    addresses: Range<u64>,
    /// The first and the last time at which such code was there.
    times: Range<u64>,
}

impl WornRange {
    /// Extends the range so that it includes `other`.
    fn join(&mut self, other: &Self) {
        let both = |a: &Range<u64>, b: &Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        self.addresses = both(&self.addresses, &other.addresses);
        self.times = both(&self.times, &other.times);
    }
}

/// Adds a range to `worn`, whose ranges are sorted and do not overlap. If there are too many, the
/// two with the smallest gap become one.
fn wear(worn: &mut Vec<WornRange>, mut new: WornRange) {
    let first = worn.partition_point(|range| range.addresses.end <= new.addresses.start);
    let last = worn.partition_point(|range| range.addresses.start < new.addresses.end).max(first);
    worn.drain(first..last).for_each(|old| new.join(&old));
    worn.insert(first, new);
    if worn.len() > MAX_WORN {
        let gap = |at: &usize| worn[at + 1].addresses.start - worn[*at].addresses.end;
        if let Some(at) = (0..worn.len() - 1).min_by_key(gap) {
            let above = worn.remove(at + 1);
            worn[at].join(&above);
        }
    }
}

/// The mappings of one process between two execs.
#[derive(Debug, Default)]
pub struct AddressSpace {
    maps: SharedMaps,
    /// Replaced mappings, each with the time of its replacement, oldest first.
    replaced: Vec<(u64, Mapping)>,
    /// What was in `replaced` until others took its place.
    worn: Vec<WornRange>,
    /// The bytes of `replaced` and `worn`.
    charge: Charge,
    /// The file that was mapped first: after an exec, this is the program.
    program: Option<Arc<Image>>,
    /// Whether mappings were forgotten.
    incomplete: bool,
}

impl AddressSpace {
    /// Creates an address space without mappings, whose bytes `account` counts. `incomplete` tells
    /// whether it had some that are not known.
    pub(super) fn new(account: &ByteAccount, incomplete: bool) -> Self {
        let maps = SharedMaps::new(account);
        let (replaced, worn) = (Vec::new(), Vec::new());
        Self { maps, replaced, worn, charge: account.charge(0), program: None, incomplete }
    }

    /// Returns the address space of a child. It shares the mappings until one of the two changes
    /// them. It has none of the replaced ones, because the child did not live then.
    pub(super) fn fork(&self) -> Self {
        Self {
            maps: self.maps.clone(),
            replaced: Vec::new(),
            worn: Vec::new(),
            charge: self.charge.account().charge(0),
            program: self.program.clone(),
            incomplete: self.incomplete,
        }
    }

    /// Returns the number of mappings.
    pub fn len(&self) -> usize {
        self.maps.len()
    }

    /// Returns whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.maps.len() == 0
    }

    /// Returns whether mappings were forgotten to limit memory.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns this address space's part of the bytes that it and its images take: what is shared
    /// is divided by the number of those that share it.
    pub(super) fn own_bytes(&self) -> usize {
        let replaced = self.replaced.iter().filter_map(|(_, map)| map.image.as_ref());
        self.maps.own_bytes() + self.charge.bytes() + replaced.map(Image::own_bytes).sum::<usize>()
    }

    /// Forgets all mappings.
    pub(super) fn forget(&mut self) {
        let account = self.charge.account().clone();
        *self = Self::new(&account, true);
    }

    /// Forgets the mappings that were replaced before `time`.
    pub(super) fn forget_replaced(&mut self, time: u64) {
        if self.replaced.first().is_some_and(|(until, _)| *until < time) || !self.worn.is_empty() {
            self.replaced.retain(|(until, _)| *until >= time);
            self.replaced.shrink_to_fit();
            self.worn.retain(|range| range.times.end >= time);
            self.worn.shrink_to_fit();
            self.recharge();
        }
    }

    fn recharge(&mut self) {
        fn bytes<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>() + if list.capacity() > 0 { BLOCK } else { 0 }
        }
        self.charge.set(bytes(&self.replaced) + bytes(&self.worn));
    }

    /// Adds a mapping, which replaces those that it overlaps, because the kernel does not report
    /// unmapping.
    pub fn insert(&mut self, mut new: Mapping) {
        if new.start >= new.end {
            return;
        }
        if self.program.is_none() && new.kind == MapKind::File {
            self.program.clone_from(&new.image);
        }
        let (mut lower, mut upper, mut since) = (None, None, new.since);
        let (replaced, worn) = (&mut self.replaced, &mut self.worn);
        self.maps.remove_overlapping(&(new.start..new.end), |old| {
            if old.start < new.start {
                lower = Some(old.part(old.start..new.start));
            }
            if old.end > new.end {
                upper = Some(old.part(new.end..old.end));
            }
            if old.same_content(&new) {
                // Only the protection changed, or the mapping was reported again.
                since = since.min(old.since);
            } else if old.executable || old.image.is_some() {
                if replaced.len() == MAX_REPLACED {
                    let (until, oldest) = replaced.remove(0);
                    if oldest.executable {
                        let addresses = oldest.start..oldest.end;
                        wear(worn, WornRange { addresses, times: oldest.since..until });
                    }
                }
                let range = old.start.max(new.start)..old.end.min(new.end);
                replaced.push((new.since, old.part(range)));
            }
        });
        lower.into_iter().chain(upper).for_each(|part| self.maps.insert(part));
        new.since = since;
        if !self.extend_neighbour(&new) {
            self.maps.insert(new);
        }
        self.recharge();
    }

    /// Extends the mapping directly below by `new` if both are anonymous with the same protection,
    /// as the kernel does. Returns whether it did.
    fn extend_neighbour(&mut self, new: &Mapping) -> bool {
        let merges = self.maps.below(new.start).next().is_some_and(|below| {
            below.end == new.start
                && below.kind == MapKind::Anon
                && new.kind == MapKind::Anon
                && (below.executable, below.writable) == (new.executable, new.writable)
        });
        if merges {
            self.maps.extend(new.start, new.end);
        }
        merges
    }

    /// Returns the mapping that held `address` in `window`: the newest if there were several, and
    /// whether there were several.
    pub fn find(&self, address: u64, window: &Range<u64>) -> Option<(Mapping, bool)> {
        if in_vsyscall(address) {
            return Some((Mapping::vsyscall(), false));
        }
        let current = self.current(address).filter(|m| m.since < window.end.max(1));
        let mut replaced = self.replaced_at(address, window).cloned();
        match current {
            // Mappings that were replaced before the window began are already excluded, so any that
            // is left is a second candidate.
            Some(mapping) => Some((mapping, replaced.next().is_some())),
            None => replaced.next().map(|mapping| (mapping, replaced.next().is_some())),
        }
    }

    /// Returns the newest mapping of code that held `address` in `window`. If there was none,
    /// returns the newest mapping of any kind.
    pub fn find_code(&self, address: u64, window: &Range<u64>) -> Option<Mapping> {
        let newest = self.find(address, window).map(|(mapping, _)| mapping)?;
        if newest.executable {
            return Some(newest);
        }
        let code = self.replaced_at(address, window).find(|mapping| mapping.executable).cloned();
        Some(code.unwrap_or(newest))
    }

    /// Returns whether an instruction at `address` in `window` may be another one than that which
    /// [`Self::find_code`] finds: code of several files was mapped there, one after the other.
    pub fn code_was_replaced(&self, address: u64, window: &Range<u64>) -> bool {
        if self.replaced.is_empty() && self.worn.is_empty() {
            return false;
        }
        let Some(found) = self.find_code(address, window) else { return false };
        // Mapped during the whole window.
        if found.since <= window.start {
            return false;
        }
        let mut others = self.replaced_at(address, window);
        others.any(|other| other.executable && !other.same_content(&found))
            || self.worn.iter().any(|range| {
                range.addresses.contains(&address)
                    && range.times.start < window.end
                    && range.times.end > window.start
            })
    }

    /// Returns the replaced mappings that held `address` in `window`, newest first.
    fn replaced_at(&self, address: u64, window: &Range<u64>) -> impl Iterator<Item = &Mapping> {
        let Range { start, end } = *window;
        let all = self.replaced.iter().rev();
        let held = all.filter(move |(until, mapping)| {
            (mapping.start..mapping.end).contains(&address) && mapping.since < end.max(1) && *until > start
        });
        held.map(|(_, mapping)| mapping)
    }

    /// Returns the mapping that holds `address` now, and recognises [`MapKind::Bss`], the heap, and
    /// a grown stack.
    fn current(&self, address: u64) -> Option<Mapping> {
        let below = self.maps.below(address.saturating_add(1)).next();
        if let Some(found) = below.filter(|m| m.end > address) {
            let mut found = found.clone();
            if let Some(image) = self.bss_of(&found) {
                let heap = found.kind == MapKind::Heap;
                found.kind = if heap { MapKind::BssAndHeap } else { MapKind::Bss };
                found.image = Some(image);
            } else if self.is_heap(&found) {
                found.kind = MapKind::Heap;
            }
            return Some(found);
        }
        let above = self.maps.above(address)?;
        let grown = above.kind == MapKind::Stack && above.start - address < STACK_GROWTH;
        grown.then(|| Mapping { start: address, ..above.clone() })
    }

    /// Returns the file whose zero-initialised variables may be in `mapping`: the file mapped
    /// directly below it.
    fn bss_of(&self, mapping: &Mapping) -> Option<Arc<Image>> {
        if !matches!(mapping.kind, MapKind::Anon | MapKind::Heap) {
            return None;
        }
        let below = self.maps.below(mapping.start).next()?;
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
        let mut below = self.maps.below(mapping.start).peekable();
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
        let own = (!mapping.kind.is_bss() && mapping.page_offset == 0).then_some(mapping.start);
        let below = self.maps.below(mapping.start).take(SEGMENTS);
        let mut begins = below.filter(|m| m.page_offset == 0 && m.image.as_ref() == Some(image)).peekable();
        let first = own.or_else(|| begins.next().map(|m| m.start))?;
        // lld puts the end of a segment and the begin of the next one into one page of the file,
        // and the first page is then mapped twice: to be read, and behind that as code.
        Some(begins.next_if(|m| m.end == first).map_or(first, |m| m.start))
    }
}
