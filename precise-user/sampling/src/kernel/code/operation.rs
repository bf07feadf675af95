//! What an instruction does, as far as the passes need to know.
//!
//! The encoding is in the kernel's Documentation/bpf/standardization/instruction-set.rst.

use aya_obj::generated::bpf_insn;

/// The register that points to the end of the function's frame. No instruction changes it.
pub(super) const FRAME: u8 = 10;

/// Why a program cannot be made short: it is not what this build's compiler makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// A path leaves the program.
    #[error("an instruction {0}, to which a path leads")]
    Outside(i64),
    /// An instruction is none that this build knows.
    #[error("a known instruction at {0}")]
    Unknown(usize),
    /// A jump does not fit into its 16 bits.
    #[error("jumps of less than 32,768 instructions")]
    TooLong,
}

/// The second operand of a computation or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A number, which is sign-extended where the operation has 64 bits.
    Number(i32),
    /// A register.
    Register(u8),
}

/// A place in memory: a register and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub base: u8,
    pub offset: i16,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// A helper of the kernel, by its number.
    Helper(i32),
    /// A function of the program, by its distance.
    Function(i32),
    /// Another function of the kernel, by its type.
    Kernel(i32),
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `to = to operator operand`; for a move, `to = operand`. Without `wide` in 32 bits, and the
    /// upper half of `to` becomes 0.
    Compute { wide: bool, operator: u8, to: u8, operand: Operand },
    /// The same, in a way that the passes do not follow: byte swaps, sign extensions.
    Convert { to: u8, from: Option<u8> },
    /// `to = number`, of 64 bits.
    Number { to: u8, number: u64 },
    /// `to` is the address of a map, or of the function at this distance.
    Address { to: u8, function: Option<i32> },
    /// `to = *from`.
    Load { to: u8, from: Place, bytes: u8, signed: bool },
    /// `*to = operand`.
    Store { to: Place, bytes: u8, operand: Operand },
    /// Changes memory at once; may write `operand` and register 0.
    Atomic { to: Place, bytes: u8, operand: u8 },
    /// A jump by a distance.
    Jump(i16),
    /// A jump if a comparison holds.
    Branch { wide: bool, comparison: u8, left: u8, right: Operand, distance: i16 },
    /// A call.
    Call(Callee),
    /// The function returns register 0.
    Exit,
}

/// The classes: the lower three bits of the code.
mod class {
    pub(super) const LOAD_WIDE: u8 = 0;
    pub(super) const LOAD: u8 = 1;
    pub(super) const STORE_NUMBER: u8 = 2;
    pub(super) const STORE: u8 = 3;
    pub(super) const COMPUTE_32: u8 = 4;
    pub(super) const JUMP: u8 = 5;
    pub(super) const JUMP_32: u8 = 6;
    pub(super) const COMPUTE: u8 = 7;
}

/// The upper four bits of the code of a computation.
pub(super) mod operator {
    pub const ADD: u8 = 0x00;
    pub const SUBTRACT: u8 = 0x10;
    pub const MULTIPLY: u8 = 0x20;
    pub const DIVIDE: u8 = 0x30;
    pub const OR: u8 = 0x40;
    pub const AND: u8 = 0x50;
    pub const SHIFT_LEFT: u8 = 0x60;
    pub const SHIFT_RIGHT: u8 = 0x70;
    pub const NEGATE: u8 = 0x80;
    pub const REMAINDER: u8 = 0x90;
    pub const XOR: u8 = 0xa0;
    pub const MOVE: u8 = 0xb0;
    pub const SHIFT_SIGNED: u8 = 0xc0;
    pub(super) const SWAP: u8 = 0xd0;
}

/// The upper four bits of the code of a jump.
pub(super) mod comparison {
    pub(super) const ALWAYS: u8 = 0x00;
    pub const EQUAL: u8 = 0x10;
    pub const ABOVE: u8 = 0x20;
    pub const NOT_BELOW: u8 = 0x30;
    pub const ANY_BIT: u8 = 0x40;
    pub const NOT_EQUAL: u8 = 0x50;
    pub const GREATER: u8 = 0x60;
    pub const NOT_LESS: u8 = 0x70;
    pub(super) const CALL: u8 = 0x80;
    pub(super) const EXIT: u8 = 0x90;
    pub const BELOW: u8 = 0xa0;
    pub const NOT_ABOVE: u8 = 0xb0;
    pub const LESS: u8 = 0xc0;
    pub const NOT_GREATER: u8 = 0xd0;
}

/// Set in the code of a computation or a jump whose operand is a register.
const OF_REGISTER: u8 = 0x08;

/// The upper three bits of the code of a load or a store.
mod mode {
    pub(super) const IMMEDIATE: u8 = 0x00;
    pub(super) const MEMORY: u8 = 0x60;
    pub(super) const SIGNED: u8 = 0x80;
    pub(super) const ATOMIC: u8 = 0xc0;
}

/// What the source register of a call or of a wide load says about its number.
mod names {
    pub(super) const NUMBER: u8 = 0;
    pub(super) const FUNCTION: u8 = 1;
    pub(super) const KERNEL: u8 = 2;
    pub(super) const ADDRESS_OF_FUNCTION: u8 = 4;
}

impl Operation {
    /// A jump to the next instruction, which is nothing.
    pub const NOTHING: Self = Self::Jump(0);

    /// Decodes an instruction; `next` is the one after it, in which a wide load has its upper half.
    /// `None` if it is not known.
    pub fn of(instruction: &bpf_insn, next: Option<&bpf_insn>) -> Option<Self> {
        let bpf_insn { code, off: offset, imm: number, .. } = *instruction;
        let (to, from) = (instruction.dst_reg(), instruction.src_reg());
        let (kind, upper) = (code & 0x07, code & 0xf0);
        let of_register = code & OF_REGISTER != 0;
        let operand = if of_register { Operand::Register(from) } else { Operand::Number(number) };
        let bytes = match code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        };
        let at = |base| Place { base, offset };
        Some(match (kind, code & 0xe0) {
            (class::COMPUTE | class::COMPUTE_32, _) => {
                let wide = kind == class::COMPUTE;
                match upper {
                    operator::SWAP => Self::Convert { to, from: None },
                    operator::NEGATE if offset == 0 => {
                        Self::Compute { wide, operator: upper, to, operand: Operand::Number(0) }
                    }
                    ..=operator::SHIFT_SIGNED if offset == 0 => {
                        Self::Compute { wide, operator: upper, to, operand }
                    }
                    ..=operator::SHIFT_SIGNED => Self::Convert { to, from: of_register.then_some(from) },
                    _ => return None,
                }
            }
            (class::LOAD_WIDE, mode::IMMEDIATE) if bytes == 8 => match from {
                names::NUMBER => {
                    let upper = u64::from(next?.imm as u32) << 32;
                    Self::Number { to, number: upper | u64::from(number as u32) }
                }
                names::ADDRESS_OF_FUNCTION => Self::Address { to, function: Some(number) },
                _ => Self::Address { to, function: None },
            },
            (class::LOAD, mode::MEMORY) => Self::Load { to, from: at(from), bytes, signed: false },
            (class::LOAD, mode::SIGNED) => Self::Load { to, from: at(from), bytes, signed: true },
            (class::STORE_NUMBER, mode::MEMORY) => {
                Self::Store { to: at(to), bytes, operand: Operand::Number(number) }
            }
            (class::STORE, mode::MEMORY) => {
                Self::Store { to: at(to), bytes, operand: Operand::Register(from) }
            }
            (class::STORE, mode::ATOMIC) => Self::Atomic { to: at(to), bytes, operand: from },
            (class::JUMP, _) if upper == comparison::ALWAYS && !of_register => Self::Jump(offset),
            (class::JUMP, _) if upper == comparison::EXIT => Self::Exit,
            (class::JUMP, _) if upper == comparison::CALL && !of_register => Self::Call(match from {
                names::NUMBER => Callee::Helper(number),
                names::FUNCTION => Callee::Function(number),
                names::KERNEL => Callee::Kernel(number),
                _ => return None,
            }),
            (class::JUMP | class::JUMP_32, _) => match upper {
                comparison::EQUAL..=comparison::NOT_LESS | comparison::BELOW..=comparison::NOT_GREATER => {
                    let wide = kind == class::JUMP;
                    Self::Branch { wide, comparison: upper, left: to, right: operand, distance: offset }
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Writes this operation in place of an instruction of one slot. Only computations, loads,
    /// stores, jumps and branches can be written.
    pub fn write(self, instruction: &mut bpf_insn) {
        let of = |operand| match operand {
            Operand::Number(number) => (0, 0, number),
            Operand::Register(register) => (OF_REGISTER, register, 0),
        };
        let size = |bytes| match bytes {
            4 => 0x00,
            2 => 0x08,
            1 => 0x10,
            _ => 0x18,
        };
        let (code, to, from, offset, number) = match self {
            Self::Compute { wide, operator, to, operand } => {
                let (source, from, number) = of(operand);
                let kind = if wide { class::COMPUTE } else { class::COMPUTE_32 };
                (kind | operator | source, to, from, 0, number)
            }
            Self::Load { to, from, bytes, signed } => {
                let mode = if signed { mode::SIGNED } else { mode::MEMORY };
                (class::LOAD | mode | size(bytes), to, from.base, from.offset, 0)
            }
            Self::Store { to, bytes, operand: Operand::Register(from) } => {
                (class::STORE | mode::MEMORY | size(bytes), to.base, from, to.offset, 0)
            }
            Self::Store { to, bytes, operand: Operand::Number(number) } => {
                (class::STORE_NUMBER | mode::MEMORY | size(bytes), to.base, 0, to.offset, number)
            }
            Self::Jump(distance) => (class::JUMP, 0, 0, distance, 0),
            Self::Branch { wide, comparison, left, right, distance } => {
                let (source, from, number) = of(right);
                let kind = if wide { class::JUMP } else { class::JUMP_32 };
                (kind | comparison | source, left, from, distance, number)
            }
            Self::Convert { .. }
            | Self::Number { .. }
            | Self::Address { .. }
            | Self::Atomic { .. }
            | Self::Call(_)
            | Self::Exit => return,
        };
        instruction.code = code;
        instruction.set_dst_reg(to);
        instruction.set_src_reg(from);
        instruction.off = offset;
        instruction.imm = number;
    }

    /// Returns the number of slots that the instruction takes.
    pub const fn slots(self) -> usize {
        if matches!(self, Self::Number { .. } | Self::Address { .. }) { 2 } else { 1 }
    }

    /// Returns the distance of the function that the instruction calls or names.
    pub const fn function(self) -> Option<i32> {
        match self {
            Self::Call(Callee::Function(distance)) => Some(distance),
            Self::Address { function, .. } => function,
            _ => None,
        }
    }

    /// Returns the register that the instruction sets, unless it is a call.
    pub const fn sets(self) -> Option<u8> {
        match self {
            Self::Compute { to, .. }
            | Self::Convert { to, .. }
            | Self::Number { to, .. }
            | Self::Address { to, .. }
            | Self::Load { to, .. } => Some(to),
            _ => None,
        }
    }
}
