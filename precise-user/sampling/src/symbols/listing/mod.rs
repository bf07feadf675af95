//! The code of a function in a capture: its instructions, and their source lines.
//!
//! A capture stores file, build id and file offset, so the code can be read later, on any machine
//! with the same binary. Code that cannot be read has a [`Reason`]; views then show only what the
//! capture contains.

mod kernel;
mod kernel_debug;
#[cfg(test)]
mod kernel_tests;
mod kernel_types;
mod source;
mod split;

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use kernel::KernelCode;
use kernel_debug::KernelDebug;
use kernel_types::BtfTypes;
use precise_code::types::{TypedCode, Untyped, typed, untyped};
use precise_code::{FunctionId, Instruction, SourceLine, decode, disassemble};
pub use source::{MAX_SOURCES, Outside, SourceFiles};
use split::SplitFiles;

use super::{
    DebugServer, SymbolOptions,
    files::OpenFiles,
    kernel::{KERNEL, KernelSymbols},
    mapping::DELETED,
    notes::Notes,
    opening::open_in_root,
};
use crate::btf::Btf;
use crate::machine::Root;
use crate::reader::{
    CodeOwner, FoundTypes, FunctionCode, Reader, ReaderUse, Split,
    protocol::{FileId, FileLine, Symbol},
};
use precise_model::Reason;

/// Maximum size in bytes of a function that is read. The largest functions of the Linux kernel and
/// of browsers are smaller.
const MAX_FUNCTION: u64 = 1 << 20;
/// Maximum number of files that are held open.
const MAX_FILES: usize = 32;
/// Maximum number of sentences about files that cannot be read.
const MAX_TROUBLES: usize = 8;

/// Reads the code of functions.
#[derive(Debug)]
pub struct Listings {
    /// Started when the first function of a file is read.
    reader: Option<Reader>,
    open: OpenFiles,
    /// Files that the debug information of others was split off to.
    split: SplitFiles,
    /// Why files could not be read.
    troubles: Notes,
    kernel: KernelSymbols,
    kernel_code: Option<KernelCode>,
    /// The debug information of the kernel; `None` inside if there is none.
    kernel_debug: Option<Option<KernelDebug>>,
    /// The types of the kernel; `None` inside if they cannot be read.
    kernel_types: Option<Option<BtfTypes>>,
    root: PathBuf,
    files: PathBuf,
}

impl Listings {
    /// Creates a reader. Looks for binaries below `files`, and for the running kernel below the
    /// root of `options`.
    pub fn new(options: &SymbolOptions, files: &Path) -> Self {
        let kallsyms = options.root.join("proc/kallsyms");
        let kernel = KernelSymbols::new(options.root.clone(), Some(kallsyms), true);
        let open = OpenFiles::new(options.root.join("proc"), options.debug_dirs.clone(), None, MAX_FILES);
        let (root, files) = (options.root.clone(), files.to_owned());
        Self {
            reader: None,
            open,
            split: SplitFiles::default(),
            troubles: Notes::new(MAX_TROUBLES),
            kernel,
            kernel_code: None,
            kernel_debug: None,
            kernel_types: None,
            root,
            files,
        }
    }

    /// Asks a server for debug information that is not below the debug folders, from now on.
    pub fn ask(&mut self, server: Box<dyn DebugServer>) {
        self.open.ask(server);
    }

    /// Returns the instructions of a function, in the order of their addresses.
    ///
    /// # Errors
    ///
    /// Returns the reason if the code cannot be read.
    pub fn read(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        if function.kernel {
            return Ok(disassemble(&self.kernel_code(function)?, function.start));
        }
        let id = self.add(function)?;
        let reader = self.reader.as_mut().ok_or(Reason::Failed)?;
        disassembled(reader, &mut self.open, id, function)
    }

    /// Returns the types of a function's accesses to memory. `wanted` are the instructions, by
    /// their distance from the start of the function, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns the reason if the code cannot be read.
    pub fn types(&mut self, function: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        if function.kernel {
            return self.types_of_kernel(function, wanted);
        }
        let id = self.add(function)?;
        let reader = self.reader.as_mut().ok_or(Reason::Failed)?;
        let (vaddr, code) = code(reader, &mut self.open, id, function)?;
        let open = self.open.get(id).ok_or(Reason::FileMissing)?;
        let separate = open.debug.as_ref().map(|separate| (separate.id, &separate.file));
        let file = separate.unwrap_or((id, &open.file));
        let supplement = open.supplement.as_ref().map(|separate| (separate.id, &separate.file));
        let code = FunctionCode { start: vaddr, of: CodeOwner::Program, bytes: &code, wanted };
        let mut found = reader.types(file, (Split::Unknown, supplement), &code);
        if let Ok(FoundTypes::Split(name)) = &found {
            let split = self.split.find(reader, (id, &function.module), name, &self.files);
            found = reader.types(file, (split, None), &code);
        }
        match found {
            Ok(FoundTypes::Code(types)) => Ok(types),
            Ok(FoundTypes::Split(_)) => Err(Reason::Failed),
            Err(why) => {
                self.troubles.add(format!("cannot use the types of {}: {why}", function.module));
                Err(Reason::Failed)
            }
        }
    }

    fn kernel_code(&mut self, function: &FunctionId) -> Result<Vec<u8>, Reason> {
        let code = match &self.kernel_code {
            Some(code) => code,
            None => self.kernel_code.insert(KernelCode::open(&self.root)?),
        };
        code.read(&mut self.kernel, function)
    }

    fn types_of_kernel(&mut self, function: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        let code = self.kernel_code(function)?;
        if let Some(types) = self.described_kernel(function, &code, wanted) {
            return Ok(types);
        }
        let instructions = decode(&code, function.start);
        if self.kernel_types.is_none() {
            self.kernel_types = Some(self.read_kernel_types());
        }
        // Types of modules are in files of their own.
        let types = self.kernel_types.as_mut().and_then(Option::as_mut);
        let Some(types) = types.filter(|_| function.module == KERNEL) else {
            return Ok(untyped(&instructions, wanted, Untyped::NoDebugInfo));
        };
        let facts = types.facts(&function.name, &instructions, &mut self.kernel);
        Ok(typed(&instructions, &facts, types, wanted))
    }

    /// Returns the types of a function of the kernel by its debug information; `None` if there is
    /// none.
    fn described_kernel(&mut self, function: &FunctionId, bytes: &[u8], wanted: &[u64]) -> Option<TypedCode> {
        if function.module != KERNEL {
            return None;
        }
        if self.kernel_debug.is_none() {
            let reader = started(&mut self.reader, &mut self.troubles).ok();
            let found = reader
                .and_then(|reader| KernelDebug::find(reader, &mut self.open, &mut self.kernel, &self.root));
            self.kernel_debug = Some(found);
        }
        let debug = self.kernel_debug.as_ref().and_then(Option::as_ref)?;
        let code = FunctionCode { start: function.start, of: debug.of, bytes, wanted };
        let file = (debug.file.id, &debug.file.file);
        match self.reader.as_mut()?.types(file, (Split::Unknown, None), &code) {
            Ok(FoundTypes::Code(types)) => return Some(types),
            Ok(FoundTypes::Split(_)) => self.troubles.add(
                "the debug information of the kernel is split off (CONFIG_DEBUG_INFO_SPLIT), which is \
                 not read: types of the kernel are by BTF"
                    .to_owned(),
            ),
            Err(why) => self
                .troubles
                .add(format!("cannot use the debug information of the kernel: {why}; its types are by BTF")),
        }
        self.kernel_debug = Some(None);
        None
    }

    /// Returns the types of the running kernel; `None`, and a sentence, if they cannot be read.
    fn read_kernel_types(&mut self) -> Option<BtfTypes> {
        match Btf::read(&Root(self.root.clone())) {
            Ok(btf) => {
                let mut types = BtfTypes::new(btf);
                if let Some(code) = &self.kernel_code {
                    types.find_per_cpu(code, &mut self.kernel);
                }
                Some(types)
            }
            Err(error) => {
                self.troubles.add(format!("kernel code has no types: {error}"));
                None
            }
        }
    }

    /// Opens the file of a function, and starts the reader if there is none.
    fn add(&mut self, function: &FunctionId) -> Result<FileId, Reason> {
        let file = self.open(function)?;
        let reader = started(&mut self.reader, &mut self.troubles)?;
        let id = self.open.add(reader, file, &function.module)?;
        reader.forget(self.open.take_closed());
        Ok(id)
    }

    /// Returns why files could not be read since the last call, one sentence each.
    pub fn take_troubles(&mut self) -> Vec<String> {
        for trouble in self.open.take_troubles() {
            self.troubles.add(trouble);
        }
        self.troubles.take()
    }

    fn open(&self, function: &FunctionId) -> Result<File, Reason> {
        // What replaced a deleted file may be the same program: the build id decides.
        let path = Path::new(function.module.strip_suffix(DELETED).unwrap_or(&function.module));
        if !path.is_absolute() {
            return Err(Reason::FileMissing);
        }
        open_in_root(&self.files, path).map_err(|_| Reason::FileMissing)
    }
}

/// Returns the reader; starts it if there is none.
fn started<'a>(reader: &'a mut Option<Reader>, troubles: &mut Notes) -> Result<&'a mut Reader, Reason> {
    match reader {
        Some(reader) => Ok(reader),
        none => match Reader::start_for(ReaderUse::Code) {
            Ok(reader) => Ok(none.insert(reader)),
            Err(error) => {
                troubles.add(error.to_string());
                Err(Reason::Failed)
            }
        },
    }
}

/// Reads a function of an open file.
fn disassembled(
    reader: &mut Reader,
    files: &mut OpenFiles,
    id: FileId,
    function: &FunctionId,
) -> Result<Vec<Instruction>, Reason> {
    let (vaddr, code) = code(reader, files, id, function)?;
    let mut instructions = disassemble(&code, vaddr);
    let addresses: Vec<u64> = instructions.iter().map(|instruction| instruction.address).collect();
    for (instruction, found) in instructions.iter_mut().zip(files.symbols(reader, id, &addresses, None)) {
        instruction.frames = found.map(|symbol| frames(&symbol)).unwrap_or_default();
    }
    Ok(instructions)
}

/// Reads the code of a function of an open file. Returns the virtual address at which it begins,
/// and its bytes.
fn code(
    reader: &mut Reader,
    files: &mut OpenFiles,
    id: FileId,
    function: &FunctionId,
) -> Result<(u64, Vec<u8>), Reason> {
    let open = files.get(id).ok_or(Reason::FileMissing)?;
    let elf = open.elf.as_ref().ok_or(Reason::FileMissing)?;
    if !function.build_id.is_empty() && open.build_id.is_none_or(|id| id.hex() != function.build_id) {
        return Err(Reason::FileChanged);
    }
    let vaddr = elf.code_vaddr(function.start).ok_or(Reason::NoSymbol)?;
    let found = files.symbols(reader, id, &[vaddr], None).pop().ok_or(Reason::NoSymbol)??;
    let size = found.size.ok_or(Reason::NoSymbol)?.min(MAX_FUNCTION);
    let mut code = vec![0; usize::try_from(size).unwrap_or(0)];
    let open = files.get(id).ok_or(Reason::FileMissing)?;
    open.file.read_exact_at(&mut code, function.start).map_err(|_| Reason::FileChanged)?;
    Ok((vaddr, code))
}

/// Returns the source lines of an address, from the innermost to the outermost function.
fn frames(symbol: &Symbol) -> Vec<SourceLine> {
    let place = |function: &str, line: Option<&FileLine>| {
        let line = line?;
        Some(SourceLine { function: function.to_owned(), file: line.path.to_string(), line: line.number? })
    };
    let outer = place(&symbol.name, symbol.line.as_ref());
    let inner = symbol.inlined.iter().map(|frame| place(&frame.name, frame.line.as_ref()));
    let mut frames: Vec<SourceLine> = std::iter::once(outer).chain(inner).flatten().collect();
    frames.reverse();
    frames
}

#[cfg(test)]
#[path = "../listing_tests.rs"]
mod tests;
