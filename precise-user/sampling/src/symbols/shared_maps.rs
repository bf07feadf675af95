//! The mappings of an address space by address, which forked processes share.
//!
//! A fork copies nothing. The mappings are in chunks; a process that changes one of its mappings
//! afterwards copies the list of chunks, which is a hundredth of the whole, and one chunk.

use std::ops::Range;
use std::sync::Arc;

use super::charge::{BLOCK, ByteAccount, COUNTERS, Charge};
use super::mapping::{Image, Mapping};

/// The largest number of mappings in a chunk.
const CHUNK: usize = 64;

/// Mappings in the order of their addresses; no two overlap.
#[derive(Clone, Debug)]
pub(super) struct SharedMaps(Arc<List>);

#[derive(Debug)]
struct List {
    /// None of the chunks is empty.
    chunks: Vec<Arc<Chunk>>,
    /// The number of mappings.
    len: usize,
    charge: Charge,
}

#[derive(Debug)]
struct Chunk {
    maps: Vec<Mapping>,
    charge: Charge,
    /// The chunk's part of the bytes of its images, as they were shared when it last changed.
    images: usize,
}

/// The place of a mapping: the index of its chunk, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: usize,
    index: usize,
}

impl List {
    fn new(chunks: Vec<Arc<Chunk>>, len: usize, account: &ByteAccount) -> Self {
        let mut list = Self { chunks, len, charge: account.charge(0) };
        list.recharge();
        list
    }

    fn recharge(&mut self) {
        let pointers = self.chunks.capacity() * size_of::<Arc<Chunk>>();
        self.charge.set(pointers + size_of::<Self>() + COUNTERS + 2 * BLOCK);
    }
}

impl Clone for List {
    fn clone(&self) -> Self {
        Self::new(self.chunks.clone(), self.len, self.charge.account())
    }
}

impl Chunk {
    fn new(maps: Vec<Mapping>, account: &ByteAccount) -> Arc<Self> {
        let mut chunk = Self { maps, charge: account.charge(0), images: 0 };
        chunk.recharge();
        Arc::new(chunk)
    }

    fn insert(&mut self, index: usize, map: Mapping) {
        let capacity = self.maps.capacity();
        self.images += image_bytes(&map);
        self.maps.insert(index, map);
        if self.maps.capacity() != capacity {
            self.recharge();
        }
    }

    fn recharge(&mut self) {
        let maps = self.maps.capacity() * size_of::<Mapping>();
        self.charge.set(maps + size_of::<Self>() + COUNTERS + 2 * BLOCK);
        self.images = self.maps.iter().map(image_bytes).sum();
    }
}

/// Returns the part of one mapping of the bytes of its image.
fn image_bytes(map: &Mapping) -> usize {
    map.image.as_ref().map_or(0, Image::own_bytes)
}

impl Clone for Chunk {
    fn clone(&self) -> Self {
        let charge = self.charge.account().charge(0);
        let mut chunk = Self { maps: self.maps.clone(), charge, images: 0 };
        chunk.recharge();
        chunk
    }
}

impl Default for SharedMaps {
    fn default() -> Self {
        Self::new(&ByteAccount::default())
    }
}

impl SharedMaps {
    /// Creates an empty list, whose bytes `account` counts.
    pub fn new(account: &ByteAccount) -> Self {
        Self(Arc::new(List::new(Vec::new(), 0, account)))
    }

    /// Returns the number of mappings.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns this list's part of the bytes that it and its images take: what is shared is divided
    /// by the number of those that share it.
    pub fn own_bytes(&self) -> usize {
        let of_chunk = |chunk: &Arc<Chunk>| (chunk.charge.bytes() + chunk.images) / Arc::strong_count(chunk);
        let chunks: usize = self.0.chunks.iter().map(of_chunk).sum();
        (self.0.charge.bytes() + chunks) / Arc::strong_count(&self.0)
    }

    /// Returns the mappings that start below `address`, from the highest down.
    pub fn below(&self, address: u64) -> impl Iterator<Item = &Mapping> {
        let place = self.place(address);
        let chunks = &self.0.chunks;
        let part = chunks.get(place.chunk).map_or(&[][..], |chunk| &chunk.maps[..place.index]);
        let before = chunks[..place.chunk].iter().rev().flat_map(|chunk| chunk.maps.iter().rev());
        part.iter().rev().chain(before)
    }

    /// Returns the first mapping that starts at `address` or above.
    pub fn above(&self, address: u64) -> Option<&Mapping> {
        let place = self.place(address);
        self.0.chunks.get(place.chunk)?.maps.get(place.index)
    }

    /// Returns the place of the first mapping that starts at `address` or above; a place after the
    /// last chunk if there is none.
    fn place(&self, address: u64) -> Place {
        let chunks = &self.0.chunks;
        let lower = |chunk: &Arc<Chunk>| chunk.maps.last().is_some_and(|last| last.start < address);
        let chunk = chunks.partition_point(lower);
        let index = chunks.get(chunk).map_or(0, |chunk| chunk.maps.partition_point(|m| m.start < address));
        Place { chunk, index }
    }

    /// Extends the mapping that ends at `end`, the highest one below it, to `to`.
    pub fn extend(&mut self, end: u64, to: u64) {
        let place = self.place(end);
        let (chunk, index) = match (place.chunk.checked_sub(1), place.index.checked_sub(1)) {
            (_, Some(index)) => (place.chunk, index),
            (Some(chunk), None) => (chunk, self.0.chunks[chunk].maps.len() - 1),
            (None, None) => return,
        };
        let list = Arc::make_mut(&mut self.0);
        let maps = &mut Arc::make_mut(&mut list.chunks[chunk]).maps;
        if maps[index].end == end {
            maps[index].end = to;
        }
    }

    /// Removes the mappings that overlap `range`, and calls `each` with them.
    pub fn remove_overlapping(&mut self, range: &Range<u64>, mut each: impl FnMut(Mapping)) {
        let before = self.below(range.start).next().filter(|below| below.end > range.start);
        let from = before.map_or(range.start, |below| below.start);
        let (begin, end) = (self.place(from), self.place(range.end));
        if begin == end {
            return;
        }
        let list = Arc::make_mut(&mut self.0);
        let last = if end.index == 0 { end.chunk } else { end.chunk + 1 };
        for (number, chunk) in list.chunks[begin.chunk..last].iter_mut().enumerate() {
            let chunk = Arc::make_mut(chunk);
            let lower = if number == 0 { begin.index } else { 0 };
            let upper = if begin.chunk + number == end.chunk { end.index } else { chunk.maps.len() };
            list.len -= upper - lower;
            chunk.maps.drain(lower..upper).for_each(&mut each);
            chunk.recharge();
        }
        let kept = list.chunks[begin.chunk..last].iter().filter(|chunk| !chunk.maps.is_empty());
        let kept: Vec<_> = kept.cloned().collect();
        list.chunks.splice(begin.chunk..last, kept);
        list.recharge();
    }

    /// Adds a mapping that overlaps no other.
    pub fn insert(&mut self, map: Mapping) {
        let Place { chunk, index } = self.place(map.start);
        let list = Arc::make_mut(&mut self.0);
        let account = list.charge.account().clone();
        list.len += 1;
        // Between two chunks, the lower one is filled first: mappings are often read in ascending
        // order.
        let lower = chunk.checked_sub(1).filter(|lower| index == 0 && list.chunks[*lower].maps.len() < CHUNK);
        let (chunk, index) = lower.map_or((chunk, index), |lower| (lower, list.chunks[lower].maps.len()));
        if chunk == list.chunks.len() {
            list.chunks.push(Chunk::new(vec![map], &account));
            list.recharge();
            return;
        }
        let room = Arc::make_mut(&mut list.chunks[chunk]);
        if room.maps.len() < CHUNK {
            room.insert(index, map);
            return;
        }
        let mut upper = room.maps.split_off(CHUNK / 2);
        room.maps.shrink_to_fit();
        match index.checked_sub(CHUNK / 2) {
            Some(index) => upper.insert(index, map),
            None => room.maps.insert(index, map),
        }
        room.recharge();
        list.chunks.insert(chunk + 1, Chunk::new(upper, &account));
        list.recharge();
    }
}
