//! Types from DWARF: which object, and which field of it, the instructions of a function access.
//!
//! Nothing of a file is believed. Each answer visits at most [`MAX_ENTRIES`] entries of the debug
//! information and holds at most `MAX_TYPES` types (`types.rs`); what is beyond has no type.

mod function;
mod index;
mod layout;
mod location;
mod sections;
#[cfg(test)]
mod tests;
mod types;

use std::cell::Cell;
use std::fs::File;
use std::io;

use gimli::{EndianSlice, LittleEndian};
use precise_code::types::{
    Access, GlobalVariable, Object, TypedAccess, TypedCode, TypedInstruction, Untyped, accesses,
};
use precise_code::{Instruction, disassemble};
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
        let instructions = disassemble(code.bytes, code.start);
        let mut table = match TypeTable::of(&dwarf, &mut self.index, &budget) {
            Ok(table) => table,
            Err(why) => return untyped(&instructions, code.wanted, why),
        };
        let facts = match table.facts(code.start) {
            Ok(facts) => facts,
            Err(why) => return untyped(&instructions, code.wanted, why),
        };
        let wanted = code.wanted.get(..code.wanted.len().min(MAX_ADDRESSES)).unwrap_or_default();
        match accesses(&instructions, &facts, &mut table, wanted) {
            Ok(found) => answer(&mut table, found, wanted),
            Err(why) => untyped(&instructions, code.wanted, why),
        }
    }
}

/// Returns the answer for code of which nothing is known, for one reason.
fn untyped(instructions: &[Instruction], wanted: &[u64], why: Untyped) -> TypedCode {
    let of = |offset: &u64| {
        let at = instructions.binary_search_by_key(offset, |instruction| instruction.offset).ok();
        let width = at.and_then(|at| instructions.get(at)).and_then(|instruction| instruction.accessed);
        let access = |width| TypedAccess { width, reads: false, writes: false, object: Err(why) };
        match at {
            Some(_) => {
                TypedInstruction { offset: *offset, accesses: width.map(access).into_iter().collect() }
            }
            None => not_decoded(*offset),
        }
    };
    TypedCode { instructions: wanted.iter().take(MAX_ADDRESSES).map(of).collect(), ..TypedCode::default() }
}

fn not_decoded(offset: u64) -> TypedInstruction {
    let access = TypedAccess { width: 0, reads: false, writes: false, object: Err(Untyped::NotDecoded) };
    TypedInstruction { offset, accesses: vec![access] }
}

/// Returns the answer with the layouts that it refers to.
fn answer(table: &mut TypeTable<'_, '_>, found: FxHashMap<u64, Vec<Access>>, wanted: &[u64]) -> TypedCode {
    let mut code = TypedCode::default();
    let mut layouts = FxHashMap::default();
    let mut globals = FxHashMap::default();
    for offset in wanted {
        let Some(accesses) = found.get(offset) else {
            code.instructions.push(not_decoded(*offset));
            continue;
        };
        let mut typed = Vec::with_capacity(accesses.len());
        for access in accesses {
            let object = access.place.map(|place| {
                let layout = *layouts.entry(place.ty).or_insert_with(|| {
                    code.layouts.push(table.layout(place.ty));
                    u32::try_from(code.layouts.len() - 1).unwrap_or(u32::MAX)
                });
                let global = place.global.map(|global| {
                    *globals.entry(global.address).or_insert_with(|| {
                        let name = table.global_name(global.address);
                        let size = table.size_of(global.ty);
                        code.globals.push(GlobalVariable { name, address: global.address, size });
                        u32::try_from(code.globals.len() - 1).unwrap_or(u32::MAX)
                    })
                });
                Object { layout, offset: place.offset, indexed: place.indexed, origin: place.origin, global }
            });
            let Access { width, reads, writes, .. } = *access;
            typed.push(TypedAccess { width, reads, writes, object });
        }
        code.instructions.push(TypedInstruction { offset: *offset, accesses: typed });
    }
    code
}
