//! The texts of a column that wait until their row group is complete.

use std::hash::{BuildHasher as _, RandomState};

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::batch::DistinctTexts;

/// The bytes that a text takes in the file beyond its own.
pub(super) const LENGTH: usize = 4;

/// The distinct texts of a column, one after the other in one block of memory. In blocks of their
/// own, the texts of processes and files that come and go would take twice their bytes, and would
/// keep the memory around them from going back to the kernel.
#[derive(Default)]
pub(super) struct WaitingTexts {
    bytes: Vec<u8>,
    /// Where each text ends in `bytes`.
    ends: Vec<usize>,
    /// The index of each text, by its hash; the next number that is free if another text has the
    /// hash.
    indexes: FxHashMap<u64, u32>,
    /// Seeds the hash: tenants choose the texts.
    seed: RandomState,
    /// The bytes of a dictionary that is full, and of the values that came since.
    beyond: Option<usize>,
}

/// The texts of a complete row group, by index.
#[derive(Default)]
pub(super) struct TextTable {
    bytes: Bytes,
    ends: Vec<usize>,
}

impl WaitingTexts {
    /// Adds texts, and returns the index of each. The dictionary has room for `most` bytes.
    pub fn add(&mut self, texts: &DistinctTexts, most: usize) -> Vec<Option<u64>> {
        let before = self.dictionary();
        let indexes: Vec<u64> = texts.distinct.iter().map(|text| self.index(text)).collect();
        if self.dictionary() >= most {
            let length = |key: &u32| LENGTH + texts.distinct.get(*key as usize).map_or(0, String::len);
            let added: usize = texts.keys.iter().flatten().map(length).sum();
            self.beyond = Some(self.beyond.unwrap_or(before) + added);
        }
        texts.keys.iter().map(|key| indexes.get((*key)? as usize).copied()).collect()
    }

    /// Returns the bytes that the texts take in the file before compression, without those of a
    /// dictionary that is not full and of what refers to it.
    pub fn beyond(&self) -> usize {
        self.beyond.unwrap_or(0)
    }

    /// Takes the texts.
    pub fn take(&mut self) -> TextTable {
        let (bytes, ends) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.ends));
        TextTable { bytes: bytes.into(), ends }
    }

    /// Forgets the texts that were taken, and keeps the memory that they took.
    pub fn clear(&mut self, taken: TextTable) {
        let TextTable { bytes, mut ends } = taken;
        ends.clear();
        // If something still refers to a text, this copies them.
        let mut bytes = Vec::from(bytes);
        bytes.clear();
        self.indexes.clear();
        (self.bytes, self.ends, self.beyond) = (bytes, ends, None);
    }

    /// Returns about how many bytes of memory this has.
    pub fn kept(&self) -> usize {
        let index = size_of::<u64>() + size_of::<u32>();
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.indexes.capacity() * index
    }

    /// Returns the bytes of a dictionary of the texts.
    fn dictionary(&self) -> usize {
        self.bytes.len() + LENGTH * self.ends.len()
    }

    fn index(&mut self, text: &str) -> u64 {
        let mut hash = self.seed.hash_one(text);
        while let Some(&index) = self.indexes.get(&hash) {
            let range = range(&self.ends, index as usize);
            if self.bytes.get(range).is_some_and(|known| known == text.as_bytes()) {
                return index.into();
            }
            hash = hash.wrapping_add(1);
        }
        // A row group has fewer rows than numbers of 32 bits.
        let index = self.ends.len() as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
        self.indexes.insert(hash, index);
        index.into()
    }
}

impl TextTable {
    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the text with this index; empty if there is none.
    pub fn text(&self, index: u64) -> Bytes {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let range = range(&self.ends, index);
        if range.end <= self.bytes.len() { self.bytes.slice(range) } else { Bytes::new() }
    }
}

/// Returns where a text is; an empty range if there is none with this index.
fn range(ends: &[usize], index: usize) -> std::ops::Range<usize> {
    let Some(&end) = ends.get(index) else { return 0..0 };
    let begin = index.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end);
    begin..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(distinct: &[&str]) -> DistinctTexts {
        let keys = (0..distinct.len() as u32).map(Some).collect();
        DistinctTexts { keys, distinct: distinct.iter().map(|text| (*text).to_owned()).collect() }
    }

    #[test]
    fn a_text_keeps_its_index() {
        let mut waiting = WaitingTexts::default();
        assert_eq!(waiting.add(&texts(&["", "a", "long text"]), 1 << 20), [Some(0), Some(1), Some(2)]);
        // Another text that has the same hash.
        let hash = waiting.seed.hash_one("b");
        waiting.indexes.insert(hash, 2);
        assert_eq!(waiting.add(&texts(&["b", "a", "b"]), 1 << 20), [Some(3), Some(1), Some(3)]);
        let table = waiting.take();
        let all: Vec<_> = (0..5).map(|index| table.text(index)).collect();
        assert_eq!(all, ["", "a", "long text", "b", ""]);
        let room = waiting.kept();
        waiting.clear(table);
        assert!(waiting.kept() > room, "no memory was kept");
        assert_eq!(waiting.add(&texts(&["new"]), 1 << 20), [Some(0)]);
        assert_eq!(waiting.take().text(0), "new");
    }
}
