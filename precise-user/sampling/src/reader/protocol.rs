//! What is asked of a worker, and what it answers.
//!
//! Every text and list in an answer is bounded by the worker, and the size of an answer by
//! `wire.rs`. The process that samples trusts an answer no more than the file: it may be
//! wrong, but it is not large.

use std::fs::File;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::confine::Confinement;
use super::elf::Headers;
use super::symbols::PackedSymbols;
use super::unwind::UnwindInfo;
use precise_code::ReturnSite;
use precise_code::types::TypedCode;

/// Identifies a file for as long as the reader may keep it. Never used for another file.
pub type FileId = u64;

/// Maximum number of addresses of a request.
pub const MAX_ADDRESSES: usize = 4096;
/// Maximum number of bytes of a name or of a path in an answer. The rest is cut.
pub const MAX_TEXT: usize = 4096;
/// Maximum number of inlined functions at an address.
pub const MAX_INLINED: usize = 256;

/// A question to the nursery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerOrder {
    /// Kill the worker, if there is one, and fork another.
    Start,
    /// Kill the worker.
    Kill,
}

/// An answer of the nursery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderReply {
    /// A worker with this process id was started. Its socket comes with the message.
    Started(u32),
    /// The worker has ended: the status of waitpid(2).
    Ended(i32),
    /// No worker could be started, for this reason.
    Failed(String),
}

/// A question to a worker. The descriptors of the files come with the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReaderRequest {
    /// The headers of one file.
    Inspect,
    /// The symbols at virtual addresses of a file.
    Symbols {
        /// The file: the first descriptor.
        file: FileId,
        /// The file with supplementary debug information, to which `file` refers: the second
        /// descriptor.
        supplement: Option<FileId>,
        /// Whether to read debug information: lines and inlined functions.
        lines: bool,
        /// At most [`MAX_ADDRESSES`] addresses.
        addresses: Vec<u64>,
    },
    /// The types of a function's accesses to memory.
    Types {
        /// The file with the debug information: the first descriptor.
        file: FileId,
        /// The file that the debug information was split off to.
        split: SplitFile,
        /// The file with supplementary debug information, to which `file` refers: the second
        /// descriptor, unless that is of `split`. No tool makes files with both.
        supplement: Option<FileId>,
        /// The address at which the function begins.
        start: u64,
        /// Whose code it is.
        of: CodeOwner,
        /// Its code.
        code: Vec<u8>,
        /// The wanted instructions, by their distance from the start: at most [`MAX_ADDRESSES`].
        wanted: Vec<u64>,
    },
    /// Whether the content of a file has this checksum (the CRC-32 of `.gnu_debuglink`).
    Checksum(u32),
    /// The functions of a perf map at addresses.
    Jit {
        /// The perf map: the only descriptor.
        map: FileId,
        /// At most [`MAX_ADDRESSES`] addresses.
        addresses: Vec<u64>,
    },
    /// The unwind information of one file.
    Unwind {
        /// Whether large parts of the code that have none are unwound by frame pointers.
        frame_pointers: bool,
    },
    /// Which places of a file can be return addresses: at most [`MAX_ADDRESSES`] file offsets.
    ReturnSites(Vec<u64>),
    /// Close these files.
    Forget(Vec<FileId>),
}

/// Whose code it is, and what its addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeOwner {
    /// A program's: its addresses are those of the file.
    Program,
    /// The kernel's: its addresses are those in memory, this number of bytes above those of the
    /// file (`CONFIG_RANDOMIZE_BASE`), and the segment of `gs` has the variables of each CPU.
    Kernel(u64),
}

impl CodeOwner {
    /// Returns by how many bytes the code in memory is above that of the file.
    pub const fn moved(self) -> u64 {
        match self {
            Self::Program => 0,
            Self::Kernel(bytes) => bytes,
        }
    }
}

/// The code of a function, and which of its accesses to memory are asked for.
#[derive(Clone, Copy, Debug)]
pub struct FunctionCode<'a> {
    /// The address at which it begins.
    pub start: u64,
    /// Whose code it is.
    pub of: CodeOwner,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The wanted instructions, by their distance from the start.
    pub wanted: &'a [u64],
}

/// The file that the debug information of a unit was split off to (`-gsplit-dwarf`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SplitFile {
    /// It was not looked for. If there is one, the answer is its name.
    Unknown,
    /// It is the second descriptor: a `.dwo` or a `.dwp` file.
    Found(FileId),
    /// It does not exist.
    Missing,
}

/// [`SplitFile`], with the file.
#[derive(Clone, Copy, Debug)]
pub enum Split<'a> {
    /// It was not looked for.
    Unknown,
    /// A `.dwo` or a `.dwp` file.
    Found(FileId, &'a File),
    /// It does not exist.
    Missing,
}

/// What debug information says about the types of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FoundTypes {
    /// The types of its accesses.
    Code(TypedCode),
    /// The debug information is in a file of this name, which the compiler wrote.
    Split(String),
}

/// The answer of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The first message of a worker: how it is confined.
    Ready(Confinement),
    /// The headers; `None` if the file is not an ELF file.
    Headers(Option<Headers>),
    /// The symbols, in the order of the addresses.
    Symbols(PackedSymbols),
    /// The types of a function's accesses, or where they are.
    Types(FoundTypes),
    /// Whether the checksum is right.
    Checksum(bool),
    /// The functions of a perf map.
    Jit(JitAnswer),
    /// The unwind information.
    Unwind(UnwindInfo),
    /// What is at the places, in their order; `None`: beyond the end of the file.
    ReturnSites(Vec<Option<ReturnSite>>),
    /// There is nothing to answer.
    Done,
    /// The request cannot be answered, for this reason.
    Failed(String),
}

/// What a perf map says about addresses.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JitAnswer {
    /// For each address the name of its function, and the offset from its start in bytes.
    pub functions: Vec<Option<(String, u64)>>,
    /// The number of functions of the map that there was no room for.
    pub refused: u64,
}

/// The symbol at an address, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSymbol {
    /// A symbol.
    Symbol(Symbol),
    /// The file has no symbol at the address.
    None,
    /// The symbol could not be read.
    Failed,
}

/// A symbol of a file. The symbols of one answer share their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The demangled name.
    pub name: Rc<str>,
    /// The virtual address at which the symbol begins.
    pub address: u64,
    /// The offset of the queried address, in bytes.
    pub offset: u64,
    /// The size in bytes, if the symbol has one.
    pub size: Option<u64>,
    /// The line of the queried address, if known.
    pub line: Option<FileLine>,
    /// The functions that are inlined at the address, from the outermost to the innermost.
    pub inlined: Box<[Inlined]>,
}

/// An inlined function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The demangled name.
    pub name: Rc<str>,
    /// The line of the queried address in this function, if known.
    pub line: Option<FileLine>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// The path of the source file, as the compiler wrote it.
    pub path: Rc<str>,
    /// The number of the line, if known.
    pub number: Option<u32>,
}
