//! Types from DWARF: which object, and which field of it, the instructions of a function access.
//!
//! Nothing of a file is believed. Each answer visits at most [`MAX_ENTRIES`] entries of the debug
//! information and holds at most `MAX_TYPES` types (`types.rs`); what is beyond has no type.

mod function;
mod index;
mod location;
mod sections;
#[cfg(test)]
pub(super) mod tests;
mod types;
mod variables;

use std::cell::Cell;
use std::collections::hash_map;
use std::fs::File;
use std::io;

use gimli::{EndianSlice, LittleEndian};
use precise_code::types::{FunctionFacts, TypedCode, Untyped, typed, untyped};
use precise_code::{Instruction, decode};
use rustc_hash::FxHashMap;

use self::index::Index;
use self::sections::SectionContents;
use self::types::TypeTable;
use super::protocol::{FileId, FoundTypes, FunctionCode, MAX_ADDRESSES, Split};

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
    /// Returns the types of a function's accesses. `copy` is the copy of the file, `supplement`
    /// that of the file with supplementary debug information.
    ///
    /// # Errors
    ///
    /// Returns an error if the debug information cannot be read.
    pub fn types(
        &mut self,
        (id, copy): (FileId, &File),
        split: Split<'_>,
        supplement: Option<(FileId, &File)>,
        code: &FunctionCode<'_>,
    ) -> io::Result<FoundTypes> {
        self.clock += 1;
        if !self.kept.contains_key(&id) {
            if self.kept.len() >= MAX_FILES {
                let oldest = self.kept.iter().min_by_key(|(_, program)| program.used).map(|(&id, _)| id);
                self.kept.remove(&oldest.unwrap_or(id));
            }
            self.kept.insert(id, Program::of(copy)?);
        }
        let Some(program) = self.kept.get_mut(&id) else {
            return Ok(FoundTypes::Code(TypedCode::default()));
        };
        program.used = self.clock;
        program.supplement(supplement)?;
        program.types(split, code)
    }

    /// Forgets a file.
    pub fn forget(&mut self, id: FileId) {
        self.kept.remove(&id);
        for program in self.kept.values_mut() {
            program.split.remove(&id);
            if program.supplement.as_ref().is_some_and(|(known, _)| *known == id) {
                (program.supplement, program.index) = (None, Index::default());
            }
        }
    }
}

/// The debug information of one file.
#[derive(Debug)]
struct Program {
    contents: SectionContents,
    /// What dwz(1) put into another file, since several files have it.
    supplement: Option<(FileId, SectionContents)>,
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
        Ok(Self { contents, supplement: None, index, split: FxHashMap::default(), used: 0 })
    }

    /// Reads the supplementary debug information from now on.
    fn supplement(&mut self, supplement: Option<(FileId, &File)>) -> io::Result<()> {
        if let Some((id, copy)) = supplement
            && self.supplement.as_ref().is_none_or(|(known, _)| *known != id)
        {
            (self.supplement, self.index) = (Some((id, SectionContents::of(copy)?)), Index::default());
        }
        Ok(())
    }

    fn types(&mut self, split: Split<'_>, code: &FunctionCode<'_>) -> io::Result<FoundTypes> {
        let mut dwarf = self.contents.dwarf();
        if let Some((_, contents)) = &self.supplement {
            dwarf.set_sup(contents.dwarf());
        }
        let budget = Budget::new();
        let mut table = match TypeTable::of(&dwarf, &mut self.index, &budget) {
            Ok(table) => table.with(code.of, &self.contents),
            Err(why) => return Ok(code.untyped(why)),
        };
        let Some((id, skeleton, name)) = table.skeleton(code.in_file()) else {
            return Ok(code.typed_by(&mut table));
        };
        let (number, copy) = match split {
            Split::Unknown => return Ok(FoundTypes::Split(name)),
            Split::Missing => return Ok(code.untyped(Untyped::NoDebugInfo)),
            Split::Found(number, copy) => (number, copy),
        };
        let part = match self.split.entry(number) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let contents = SectionContents::of_split(copy)?;
                place.insert(SplitProgram { contents, indexes: FxHashMap::default() })
            }
        };
        let Some(dwarf) = part.contents.split(id, &dwarf) else {
            return Ok(code.untyped(Untyped::NoDebugInfo));
        };
        let index = part.indexes.entry(id.0).or_default();
        Ok(match TypeTable::of_split(&dwarf, index, &budget, (id, &skeleton)) {
            Ok(mut table) => code.typed_by(&mut table),
            Err(why) => code.untyped(why),
        })
    }
}

impl FunctionCode<'_> {
    /// Returns the address in the file at which the function begins.
    const fn in_file(&self) -> u64 {
        self.start.wrapping_sub(self.of.moved())
    }

    fn wanted(&self) -> &[u64] {
        self.wanted.get(..self.wanted.len().min(MAX_ADDRESSES)).unwrap_or_default()
    }

    fn typed_by(&self, table: &mut TypeTable<'_, '_>) -> FoundTypes {
        match table.facts(self.in_file()).map(|facts| self.in_memory(facts)) {
            Ok(facts) => FoundTypes::Code(typed(&self.decoded(), &facts, table, self.wanted())),
            Err(why) => self.untyped(why),
        }
    }

    /// Returns facts about the code where it is in memory.
    fn in_memory(&self, mut facts: FunctionFacts) -> FunctionFacts {
        let moved = self.of.moved();
        if moved != 0 {
            for variable in &mut facts.variables {
                variable.start = variable.start.wrapping_add(moved);
                variable.end = variable.end.wrapping_add(moved);
            }
            let returns = facts.returns.into_iter();
            facts.returns = returns.map(|(to, ty)| (to.wrapping_add(moved), ty)).collect();
        }
        facts
    }

    fn untyped(&self, why: Untyped) -> FoundTypes {
        FoundTypes::Code(untyped(&self.decoded(), self.wanted(), why))
    }

    fn decoded(&self) -> Vec<Instruction> {
        decode(self.bytes, self.start)
    }
}
