//! The code of a function that a capture names: its instructions, and the source that they came from.
//!
//! A capture keeps file, build id and file offset, so the code can be read on another day, where the same binary is. What
//! cannot be read has a [`Reason`]; a view then shows what the capture itself knows.

mod dependence;
mod disassembly;
mod flow;
mod kernel;
mod source;
#[cfg(test)]
pub(crate) mod testing;

use std::{
    fs::File,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::{Path, PathBuf},
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf as ElfSource, Source},
};

use schemars::JsonSchema;
use serde::Serialize;

pub use dependence::{Dependence, Dependences, Load, Why};
pub use source::SourceFiles;

use super::{SymbolOptions, elf::Elf, files::open_regular, kernel::KernelSymbols};
use crate::capture::Reason;

/// Bytes of one function that are read at most. The largest of the Linux kernel and of browsers are below.
const MAX_FUNCTION: u64 = 1 << 20;

/// A function to be listed, as a capture knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId {
    /// Path of the file, as the process saw it; `[kernel]`, or a kernel module.
    pub module: String,
    /// Build id of the file, lower-case hex; empty when it has none.
    pub build_id: String,
    /// Name of the real function, not of one inlined into it.
    pub name: String,
    /// Its first byte: an offset in the file, or for the kernel a runtime address.
    pub start: u64,
    /// Whether it is kernel code.
    pub kernel: bool,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Distance from the start of the function, in bytes.
    pub offset: u64,
    /// Its address in the file's own numbering, as `objdump` shows it; for the kernel the runtime address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// In the AT&T syntax, as perf and objdump show it. Targets in the same function are offsets: `jne +0x1c`.
    pub text: String,
    /// Bytes of memory that it reads or writes; `None` where it is no memory access, or it depends on a register.
    pub accessed: Option<u32>,
    /// What kind of branch it is; `None` where it is none.
    pub branch: Option<Branch>,
    /// Where it came from; the innermost frame first. Empty where there is no line information.
    pub frames: Vec<Place>,
    /// What it does.
    pub decoded: iced_x86::Instruction,
}

/// A branch, by its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its kind.
    pub kind: BranchKind,
    /// Where it goes when it is taken, in the numbering of [`Instruction::address`]; `None` where the instruction does not
    /// say: indirect branches and returns.
    pub target: Option<u64>,
}

/// Kinds of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchKind {
    /// Taken or not: `jne`.
    Conditional,
    /// Always taken, to a place that the instruction names: `jmp`.
    Jump,
    /// To a place in a register or in memory: `jmp *%rax`.
    IndirectJump,
    /// `call` of a place that the instruction names.
    Call,
    /// `call *%rax`.
    IndirectCall,
    /// `ret`.
    Return,
    /// Into the kernel, out of it, or to an exception's handler: `syscall`, `iret`, `int`.
    System,
}

impl BranchKind {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Conditional => "conditional",
            Self::Jump => "jump",
            Self::IndirectJump => "indirect jump",
            Self::Call => "call",
            Self::IndirectCall => "indirect call",
            Self::Return => "return",
            Self::System => "system",
        }
    }
}

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Place {
    /// Function; one that was inlined has its own.
    pub function: String,
    /// File, as the compiler was told it.
    pub file: String,
    /// Line, 1-based.
    pub line: u32,
}

/// Reads functions' code.
#[derive(Debug)]
pub struct Listings {
    symbolizer: Symbolizer,
    kernel: KernelSymbols,
    root: PathBuf,
    files: PathBuf,
}

impl Listings {
    /// Reads nothing yet. Binaries are looked for below `files`, the running kernel below the root of the options.
    pub fn new(options: &SymbolOptions, files: &Path) -> Self {
        let symbolizer = Symbolizer::builder().set_debug_dirs(Some(&options.debug_dirs)).build();
        let kallsyms = options.root.join("proc/kallsyms");
        let kernel = KernelSymbols::new(options.root.clone(), Some(kallsyms), true);
        Self { symbolizer, kernel, root: options.root.clone(), files: files.to_owned() }
    }

    /// The instructions of a function, in the order of their addresses.
    ///
    /// # Errors
    ///
    /// Why its code cannot be had.
    pub fn read(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        if function.kernel {
            let code = kernel::read(&self.root, &mut self.kernel, function)?;
            return Ok(disassembly::disassemble(&code, function.start));
        }
        let file = self.open(function)?;
        let elf = Elf::read(&file).ok().flatten().ok_or(Reason::FileMissing)?;
        if !function.build_id.is_empty() && elf.build_id.is_none_or(|id| id.hex() != function.build_id) {
            return Err(Reason::FileChanged);
        }
        let vaddr = elf.code_vaddr(function.start).ok_or(Reason::NoSymbol)?;
        // The file that was checked, whatever has its path by now.
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let size = self.size(&path, vaddr)?;
        let mut code = vec![0; usize::try_from(size.min(MAX_FUNCTION)).unwrap_or(0)];
        file.read_exact_at(&mut code, function.start).map_err(|_| Reason::FileChanged)?;
        let mut instructions = disassembly::disassemble(&code, vaddr);
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

    /// Size of the function that begins at `vaddr`, bytes.
    fn size(&self, path: &Path, vaddr: u64) -> Result<u64, Reason> {
        match self.symbols(path, &[vaddr]).pop() {
            Some(Symbolized::Sym(symbol)) => symbol.size.map(|size| size as u64).ok_or(Reason::NoSymbol),
            _ => Err(Reason::NoSymbol),
        }
    }

    fn frames(&self, path: &Path, addresses: &[u64]) -> Vec<Vec<Place>> {
        let place = |function: &str, info: Option<&blazesym::symbolize::CodeInfo<'_>>| {
            let info = info?;
            Some(Place {
                function: function.to_owned(),
                file: info.to_path().to_string_lossy().into_owned(),
                line: info.line?,
            })
        };
        let frames = |symbolized: Symbolized<'_>| {
            let Symbolized::Sym(symbol) = symbolized else { return Vec::new() };
            let outer = place(&symbol.name, symbol.code_info.as_deref());
            let inner = symbol.inlined.iter().map(|frame| place(&frame.name, frame.code_info.as_ref()));
            let mut frames: Vec<Place> = std::iter::once(outer).chain(inner).flatten().collect();
            // The library lists them from outside in.
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
