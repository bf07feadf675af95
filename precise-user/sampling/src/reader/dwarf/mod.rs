//! Types from DWARF: which object, and which field of it, the instructions of a function access.
//!
//! Nothing of a file is believed. Each answer visits at most [`MAX_ENTRIES`] entries of the debug
//! information and holds at most `MAX_TYPES` types (`types.rs`); what is beyond has no type.

mod function;
mod index;
mod location;
mod sections;
#[cfg(test)]
mod tests;
mod types;

use std::cell::Cell;
use std::collections::hash_map;
use std::fs::File;
use std::io;

use gimli::{EndianSlice, LittleEndian};
use precise_code::decode;
use precise_code::types::{TypedCode, Untyped, typed, untyped};
use rustc_hash::FxHashMap;

use self::index::Index;
use self::sections::SectionContents;
use self::types::TypeTable;
use super::protocol::{FileId, MAX_ADDRESSES};

/// Maximum number of entries of debug information that one answer visits.
const MAX_ENTRIES: u64 = 8 << 20;
/// Maximum number of files whose debug information is held ready.
const MAX_FILES: usize = 8;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Unit<'a> = gimli::Unit<Bytes<'a>>;
type Entry<'a> = gimli::DebuggingInformationEntry<Bytes<'a>>;

/// The place of an entry in `.debug_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place(usize);

/// How many entries of debug information may still be visited.
#[derive(Debug)]
struct Budget(Cell<u64>);

impl Budget {
    const fn new() -> Self {
        Self(Cell::new(MAX_ENTRIES))
    }

    /// Takes one entry. Returns an error if there is none left.
    fn take(&self) -> Result<(), Untyped> {
        self.0.set(self.0.get().checked_sub(1).ok_or(Untyped::TooLarge)?);
        Ok(())
    }
}

/// Where the debug information of a function is that was split off to another file.
#[derive(Clone, Copy, Debug)]
pub(super) enum SplitUse<'a> {
    /// Nobody has looked for the file yet.
    Unknown,
    /// In the copy of this file.
    Copy(FileId, &'a File),
    /// There is no such file.
    Missing,
}

/// What is said about the types of a function.
#[derive(Debug)]
pub(super) enum FunctionTypes {
    Code(TypedCode),
    /// The debug information was split off to the file of this name.
    Split(String),
}

/// The debug information of files, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Programs {
    kept: FxHashMap<FileId, Program>,
    clock: u64,
}

impl Programs {
    /// Returns the types of a function's accesses. `copy` is the copy of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the debug information cannot be read.
    pub fn types(
        &mut self,
        id: FileId,
        copy: &File,
        split: SplitUse<'_>,
        code: &FunctionCode<'_>,
    ) -> io::Result<FunctionTypes> {
        self.clock += 1;
        if !self.kept.contains_key(&id) {
            if self.kept.len() >= MAX_FILES {
                let oldest = self.kept.iter().min_by_key(|(_, program)| program.used).map(|(&id, _)| id);
                self.kept.remove(&oldest.unwrap_or(id));
            }
            self.kept.insert(id, Program::of(copy)?);
        }
        let Some(program) = self.kept.get_mut(&id) else {
            return Ok(FunctionTypes::Code(TypedCode::default()));
        };
        program.used = self.clock;
        program.types(split, code)
    }

    /// Forgets a file.
    pub fn forget(&mut self, id: FileId) {
        self.kept.remove(&id);
        for program in self.kept.values_mut() {
            program.split.remove(&id);
        }
    }
}

/// The code of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionCode<'a> {
    /// The virtual address at which it begins.
    pub start: u64,
    pub bytes: &'a [u8],
    /// The wanted instructions, by their distance from the start.
    pub wanted: &'a [u64],
}

/// The debug information of one file.
#[derive(Debug)]
struct Program {
    contents: SectionContents,
    index: Index,
    /// What was split off, by file.
    split: FxHashMap<FileId, SplitProgram>,
    used: u64,
}

/// A `.dwo` or a `.dwp` file.
#[derive(Debug)]
struct SplitProgram {
    contents: SectionContents,
    /// By the number that a unit has in both files.
    indexes: FxHashMap<u64, Index>,
}

impl Program {
    fn of(copy: &File) -> io::Result<Self> {
        let (contents, index) = (SectionContents::of(copy)?, Index::default());
        Ok(Self { contents, index, split: FxHashMap::default(), used: 0 })
    }

    fn types(&mut self, split: SplitUse<'_>, code: &FunctionCode<'_>) -> io::Result<FunctionTypes> {
        let dwarf = self.contents.dwarf();
        let budget = Budget::new();
        let none =
            |why| Ok(FunctionTypes::Code(untyped(&decode(code.bytes, code.start), code.wanted(), why)));
        if let Err(why) = self.index.prepare(&dwarf, &budget) {
            return none(why);
        }
        let Some((id, skeleton, name)) = self.index.skeleton(&dwarf, code.start) else {
            return Ok(FunctionTypes::Code(match TypeTable::of(&dwarf, &mut self.index, &budget) {
                Ok(mut table) => code.typed_by(&mut table),
                Err(why) => return none(why),
            }));
        };
        let (number, copy) = match split {
            SplitUse::Unknown => return Ok(FunctionTypes::Split(name)),
            SplitUse::Missing => return none(Untyped::NoDebugInfo),
            SplitUse::Copy(number, copy) => (number, copy),
        };
        let part = match self.split.entry(number) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let contents = SectionContents::of_split(copy)?;
                place.insert(SplitProgram { contents, indexes: FxHashMap::default() })
            }
        };
        let Some(dwarf) = part.contents.split(id, &dwarf) else { return none(Untyped::NoDebugInfo) };
        let index = part.indexes.entry(id.0).or_default();
        Ok(FunctionTypes::Code(match TypeTable::of_split(&dwarf, index, &budget, (id, &skeleton)) {
            Ok(mut table) => code.typed_by(&mut table),
            Err(why) => return none(why),
        }))
    }
}

impl FunctionCode<'_> {
    fn wanted(&self) -> &[u64] {
        self.wanted.get(..self.wanted.len().min(MAX_ADDRESSES)).unwrap_or_default()
    }

    fn typed_by(&self, table: &mut TypeTable<'_, '_>) -> TypedCode {
        let instructions = decode(self.bytes, self.start);
        match table.facts(self.start) {
            Ok(facts) => typed(&instructions, &facts, table, self.wanted()),
            Err(why) => untyped(&instructions, self.wanted(), why),
        }
    }
}
