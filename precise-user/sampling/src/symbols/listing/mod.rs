//! The code of a function in a capture: its instructions, and their source lines.
//!
//! A capture stores file, build id and file offset, so the code can be read later, on any machine
//! with the same binary. Code that cannot be read has a [`Reason`]; views then show only what the
//! capture contains.

mod kernel;
mod source;

use std::{
    fs::File,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::{Path, PathBuf},
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf as ElfSource, Source},
};

use precise_code::{FunctionId, Instruction, SourceLine, disassemble};
pub use source::SourceFiles;

use super::{SymbolOptions, elf::Elf, files::open_regular, kernel::KernelSymbols};
use precise_model::Reason;

/// Maximum size in bytes of a function that is read. The largest functions of the Linux kernel and
/// of browsers are smaller.
const MAX_FUNCTION: u64 = 1 << 20;

/// Reads the code of functions.
#[derive(Debug)]
pub struct Listings {
    symbolizer: Symbolizer,
    kernel: KernelSymbols,
    root: PathBuf,
    files: PathBuf,
}

impl Listings {
    /// Creates a reader. Looks for binaries below `files`, and for the running kernel below the
    /// root of `options`.
    pub fn new(options: &SymbolOptions, files: &Path) -> Self {
        let symbolizer = Symbolizer::builder().set_debug_dirs(Some(&options.debug_dirs)).build();
        let kallsyms = options.root.join("proc/kallsyms");
        let kernel = KernelSymbols::new(options.root.clone(), Some(kallsyms), true);
        Self { symbolizer, kernel, root: options.root.clone(), files: files.to_owned() }
    }

    /// Returns the instructions of a function, in the order of their addresses.
    ///
    /// # Errors
    ///
    /// Returns the reason if the code cannot be read.
    pub fn read(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        if function.kernel {
            let code = kernel::read(&self.root, &mut self.kernel, function)?;
            return Ok(disassemble(&code, function.start));
        }
        let file = self.open(function)?;
        let elf = Elf::read(&file).ok().flatten().ok_or(Reason::FileMissing)?;
        if !function.build_id.is_empty() && elf.build_id.is_none_or(|id| id.hex() != function.build_id) {
            return Err(Reason::FileChanged);
        }
        let vaddr = elf.code_vaddr(function.start).ok_or(Reason::NoSymbol)?;
        // The open file that was checked, even if its path has another file by now.
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let size = self.size(&path, vaddr)?;
        let mut code = vec![0; usize::try_from(size.min(MAX_FUNCTION)).unwrap_or(0)];
        file.read_exact_at(&mut code, function.start).map_err(|_| Reason::FileChanged)?;
        let mut instructions = disassemble(&code, vaddr);
        let addresses: Vec<u64> = instructions.iter().map(|instruction| instruction.address).collect();
        for (instruction, frames) in instructions.iter_mut().zip(self.frames(&path, &addresses)) {
            instruction.frames = frames;
        }
        Ok(instructions)
    }

    fn open(&self, function: &FunctionId) -> Result<File, Reason> {
        let path = Path::new(&function.module);
        let below = path.strip_prefix("/").map_err(|_| Reason::FileMissing)?;
        open_regular(&self.files.join(below)).map_err(|_| Reason::FileMissing)
    }

    /// Returns the size in bytes of the function that begins at `vaddr`.
    fn size(&self, path: &Path, vaddr: u64) -> Result<u64, Reason> {
        match self.symbols(path, &[vaddr]).pop() {
            Some(Symbolized::Sym(symbol)) => symbol.size.map(|size| size as u64).ok_or(Reason::NoSymbol),
            _ => Err(Reason::NoSymbol),
        }
    }

    fn frames(&self, path: &Path, addresses: &[u64]) -> Vec<Vec<SourceLine>> {
        let place = |function: &str, info: Option<&blazesym::symbolize::CodeInfo<'_>>| {
            let info = info?;
            Some(SourceLine {
                function: function.to_owned(),
                file: info.to_path().to_string_lossy().into_owned(),
                line: info.line?,
            })
        };
        let frames = |symbolized: Symbolized<'_>| {
            let Symbolized::Sym(symbol) = symbolized else { return Vec::new() };
            let outer = place(&symbol.name, symbol.code_info.as_deref());
            let inner = symbol.inlined.iter().map(|frame| place(&frame.name, frame.code_info.as_ref()));
            let mut frames: Vec<SourceLine> = std::iter::once(outer).chain(inner).flatten().collect();
            // The library lists frames from the outermost to the innermost.
            frames.reverse();
            frames
        };
        self.symbols(path, addresses).into_iter().map(frames).collect()
    }

    fn symbols(&self, path: &Path, addresses: &[u64]) -> Vec<Symbolized<'_>> {
        let source = Source::Elf(ElfSource::new(path));
        self.symbolizer.symbolize(&source, Input::VirtOffset(addresses)).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "../listing_tests.rs"]
mod tests;
