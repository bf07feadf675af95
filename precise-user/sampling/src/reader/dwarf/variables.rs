//! The global variables of a file by its table of symbols.
//!
//! Which unit defines the variable at an address, only reading all units tells, and a kernel has
//! 200 MB of them. But the table of symbols has its name, and a unit with code that uses it
//! declares it, with its type.

use std::ops::Range;

use crate::reader::elf::{le32, le64};

/// Maximum number of variables.
const MAX_VARIABLES: usize = 1 << 20;
/// Maximum number of bytes of a name that is looked up.
const MAX_NAME: usize = 512;
/// The size of an entry of the table in bytes (`Elf64_Sym`), and the type of variables
/// (`STT_OBJECT`).
const ENTRY: usize = 24;
const OBJECT: u8 = 1;

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariableSymbol {
    pub address: u64,
    /// In bytes.
    pub size: u64,
    /// Where its name is among the texts.
    name: u32,
}

/// Where the variables of each CPU begin and end in a kernel (include/asm-generic/vmlinux.lds.h).
const PER_CPU: [&[u8]; 2] = [b"__per_cpu_start", b"__per_cpu_end"];

/// The variables of a file by its table of symbols.
#[derive(Debug)]
pub(super) struct VariableSymbols {
    by_address: Vec<VariableSymbol>,
    /// Where a kernel has the variables of which each CPU has a copy.
    pub per_cpu: Range<u64>,
}

impl VariableSymbols {
    /// Reads a table of symbols, whose names are in `texts`.
    pub fn of(table: &[u8], texts: &[u8]) -> Self {
        let of = |entry: &[u8]| {
            // st_info, st_shndx: those that the file only uses are in no section.
            let defined = entry.get(6..8) != Some(&[0, 0]);
            let is_variable = entry.get(4).is_some_and(|info| info & 0xf == OBJECT);
            let symbol =
                VariableSymbol { address: le64(entry, 8), size: le64(entry, 16), name: le32(entry, 0) };
            (defined && is_variable && symbol.size > 0).then_some(symbol)
        };
        let entries = || table.chunks_exact(ENTRY);
        let mut by_address: Vec<VariableSymbol> = entries().filter_map(of).take(MAX_VARIABLES).collect();
        by_address.sort_unstable();
        let [start, end] = PER_CPU.map(|name| {
            let found = entries().find(|entry| text(texts, le32(entry, 0)) == Some(name));
            found.map_or(0, |entry| le64(entry, 8))
        });
        Self { by_address, per_cpu: start..end }
    }

    /// Returns the variable that contains an address, with its name.
    pub fn at<'a>(&self, address: u64, texts: &'a [u8]) -> Option<(VariableSymbol, &'a [u8])> {
        let next = self.by_address.partition_point(|symbol| symbol.address <= address);
        let symbol = self.by_address.get(next.checked_sub(1)?);
        let symbol = symbol.filter(|of| address - of.address < of.size)?;
        Some((*symbol, text(texts, symbol.name)?))
    }
}

fn text(texts: &[u8], at: u32) -> Option<&[u8]> {
    let from = texts.get(at as usize..)?;
    from.get(..from.iter().take(MAX_NAME).position(|byte| *byte == 0)?)
}
