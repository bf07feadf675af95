//! Machine code as the views use it: instructions with their text and source lines, kinds of
//! branches, and the data that a load waits for.
//!
//! Everything here is computed from bytes and registers. Other crates read the bytes from a binary.

mod dependence;
mod disassembly;
mod flow;
pub mod return_site;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod types;

use schemars::JsonSchema;
use serde::Serialize;

pub use dependence::{Dependence, Dependences, Load, UnknownDependence};
pub use disassembly::{decode, disassemble};
pub use return_site::ReturnSite;

/// A function to list, as a capture identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId {
    /// The path of the file as the process saw it, `[kernel]`, or a kernel module.
    pub module: String,
    /// The build id of the file in lower-case hex; empty if it has none.
    pub build_id: String,
    /// The name of the real function, not of a function inlined into it.
    pub name: String,
    /// The address of its first byte: an offset in the file, or for the kernel a runtime address.
    pub start: u64,
    /// Whether it is kernel code.
    pub kernel: bool,
}

/// A decoded instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Distance from the start of the function, in bytes.
    pub offset: u64,
    /// The address in the file's own numbering, as `objdump` shows it; for the kernel, the runtime
    /// address.
    pub address: u64,
    /// The length in bytes.
    pub length: u32,
    /// The text in AT&T syntax, as perf and objdump show it. Targets in the same function are
    /// offsets: `jne +0x1c`.
    pub text: String,
    /// The number of bytes of memory that it reads or writes; `None` if it accesses no memory, or
    /// if the number depends on a register.
    pub accessed: Option<u32>,
    /// The branch; `None` if the instruction is not a branch.
    pub branch: Option<Branch>,
    /// The source lines, the innermost frame first. Empty if there is no line information.
    pub frames: Vec<SourceLine>,
    /// The instruction as decoded by iced-x86.
    pub decoded: iced_x86::Instruction,
}

impl Instruction {
    /// Returns the address relative to the segment of `gs` that the instruction accesses, if no
    /// register is part of it.
    pub fn gs_address(&self) -> Option<u64> {
        use iced_x86::Register::{EIP, GS, None as NoRegister, RIP};
        let of_segment = self.decoded.segment_prefix() == GS;
        let fixed = matches!(self.decoded.memory_base(), NoRegister | RIP | EIP)
            && self.decoded.memory_index() == NoRegister;
        (of_segment && fixed).then(|| self.decoded.memory_displacement64())
    }

    /// Returns whether the instruction may stand in front of a kernel function's own code: the
    /// landing pad of indirect branches, or the five bytes over which the kernel's tracer is
    /// patched as a call. Neither changes a register.
    pub fn precedes_kernel_code(&self) -> bool {
        use iced_x86::Mnemonic::{Call, Endbr64, Nop};
        match self.decoded.mnemonic() {
            Endbr64 => true,
            Nop | Call => self.length == 5,
            _ => false,
        }
    }
}

/// A branch instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The kind of branch.
    pub kind: BranchKind,
    /// The target when the branch is taken, in the numbering of [`Instruction::address`]; `None` if
    /// the instruction does not contain it: indirect branches and returns.
    pub target: Option<u64>,
}

/// The kind of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchKind {
    /// A conditional branch: `jne`.
    Conditional,
    /// An unconditional jump to a target in the instruction: `jmp`.
    Jump,
    /// A jump to a target in a register or in memory: `jmp *%rax`.
    IndirectJump,
    /// A call of a target in the instruction: `call`.
    Call,
    /// A call of a target in a register or in memory: `call *%rax`.
    IndirectCall,
    /// A return: `ret`.
    Return,
    /// A jump into the kernel, out of it, or to an exception's handler: `syscall`, `iret`, `int`.
    System,
}

impl BranchKind {
    /// Returns the name of the kind in words.
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

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct SourceLine {
    /// The function; an inlined function has its own name here.
    pub function: String,
    /// The source file, as passed to the compiler.
    pub file: String,
    /// The line number, 1-based.
    pub line: u32,
}
