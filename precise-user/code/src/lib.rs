//! Machine code as the views see it: instructions with their text and source lines, kinds of
//! branches, and what a load waits for.
//!
//! Everything here is computed from bytes and registers. Who reads the bytes from a binary is
//! another matter.

mod dependence;
mod disassembly;
mod flow;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

use schemars::JsonSchema;
use serde::Serialize;

pub use dependence::{Dependence, Dependences, Load, Why};
pub use disassembly::disassemble;

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
    /// Its address in the file's own numbering, as `objdump` shows it; for the kernel the runtime
    /// address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// In the AT&T syntax, as perf and objdump show it. Targets in the same function are offsets:
    /// `jne +0x1c`.
    pub text: String,
    /// Bytes of memory that it reads or writes; `None` where it is no memory access, or it depends
    /// on a register.
    pub accessed: Option<u32>,
    /// What kind of branch it is; `None` where it is none.
    pub branch: Option<Branch>,
    /// Where it came from; the innermost frame first. Empty where there is no line information.
    pub frames: Vec<SourceLine>,
    /// What it does.
    pub decoded: iced_x86::Instruction,
}

/// A branch, by its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its kind.
    pub kind: BranchKind,
    /// Where it goes when it is taken, in the numbering of [`Instruction::address`]; `None` where
    /// the instruction does not say: indirect branches and returns.
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
pub struct SourceLine {
    /// Function; one that was inlined has its own.
    pub function: String,
    /// File, as the compiler was told it.
    pub file: String,
    /// Line, 1-based.
    pub line: u32,
}
