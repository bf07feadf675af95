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
    pub fn types(&mut self, id: FileId, copy: &File, code: &FunctionCode<'_>) -> io::Result<TypedCode> {
        self.clock += 1;
        if !self.kept.contains_key(&id) {
            if self.kept.len() >= MAX_FILES {
                let oldest = self.kept.iter().min_by_key(|(_, program)| program.used).map(|(&id, _)| id);
                self.kept.remove(&oldest.unwrap_or(id));
            }
            self.kept.insert(id, Program::of(copy)?);
        }
        let Some(program) = self.kept.get_mut(&id) else { return Ok(TypedCode::default()) };
        program.used = self.clock;
        Ok(program.types(code))
    }

    /// Forgets a file.
    pub fn forget(&mut self, id: FileId) {
        self.kept.remove(&id);
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
    used: u64,
}

impl Program {
    fn of(copy: &File) -> io::Result<Self> {
        Ok(Self { contents: SectionContents::of(copy)?, index: Index::default(), used: 0 })
    }

    fn types(&mut self, code: &FunctionCode<'_>) -> TypedCode {
        let dwarf = self.contents.dwarf();
        let budget = Budget::new();
        let instructions = decode(code.bytes, code.start);
        let wanted = code.wanted.get(..code.wanted.len().min(MAX_ADDRESSES)).unwrap_or_default();
        let mut table = match TypeTable::of(&dwarf, &mut self.index, &budget) {
            Ok(table) => table,
            Err(why) => return untyped(&instructions, wanted, why),
        };
        match table.facts(code.start) {
            Ok(facts) => typed(&instructions, &facts, &mut table, wanted),
            Err(why) => untyped(&instructions, wanted, why),
        }
    }
}
