//! Translates a row of call frame information into a rule.

use gimli::{
    CfaRule, Expression, FrameDescriptionEntry, Operation, Register, RegisterRule, UnwindExpression,
    UnwindSection, UnwindTableRow, X86_64,
};
use precise_common::unwind::{Rule, bp, kind};

use super::functions::Bytes;

/// Maximum number of operations of an expression. Those that are understood have at most nine.
const MAX_OPERATIONS: usize = 16;
/// The offsets of the interrupted rip, rsp and rbp in a signal frame, from the stack pointer. They
/// are those of `precise_common::unwind`.
const SIGNAL_SP: i64 = 40 + 15 * 8;
const SIGNAL_IP: i64 = SIGNAL_SP + 8;

type Row = UnwindTableRow<usize>;

/// Returns the rule of a row.
pub(super) fn of<'a, S: UnwindSection<Bytes<'a>>>(
    row: &Row,
    fde: &FrameDescriptionEntry<Bytes<'a>>,
    section: &S,
) -> Rule {
    if fde.cie().return_address_register() != X86_64::RA {
        return Rule::UNSUPPORTED;
    }
    let cfa = match *row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Cfa::Value(Value::Register { register, offset }),
        CfaRule::Expression(expression) => cfa_of(&operations(expression, section)),
    };
    match row.register(X86_64::RA) {
        Some(RegisterRule::Undefined) => return Rule::ROOT,
        Some(RegisterRule::Offset(-8)) if !fde.is_signal_trampoline() => {}
        Some(RegisterRule::Expression(address)) if is_signal(cfa, linear(&operations(address, section))) => {
            return Rule::SIGNAL;
        }
        _ => return Rule::UNSUPPORTED,
    }
    // The stack pointer of the caller is the CFA, unless a row says something else.
    if !matches!(row.register(X86_64::RSP), None | Some(RegisterRule::ValOffset(0))) {
        return Rule::UNSUPPORTED;
    }
    saved(row, section)
        .and_then(|(bp, bp_offset)| {
            let (kind, offset, extra) = cfa.packed()?;
            Some(Rule::pack(kind, offset, extra, bp, bp_offset))
        })
        .unwrap_or(Rule::UNSUPPORTED)
}

/// Returns whether these are the interrupted stack pointer and the address of the interrupted
/// instruction pointer.
fn is_signal(cfa: Cfa, ip: Option<Value>) -> bool {
    cfa == Cfa::Value(Value::Loaded { register: X86_64::RSP, offset: SIGNAL_SP, extra: 0 })
        && ip == Some(Value::Register { register: X86_64::RSP, offset: SIGNAL_IP })
}

/// Returns where the caller's rbp is; `None` if the offset has no room in a rule.
fn saved<'a, S: UnwindSection<Bytes<'a>>>(row: &Row, section: &S) -> Option<(u8, i16)> {
    let at = |how, offset| i16::try_from(offset).ok().map(|offset| (how, offset));
    match row.register(X86_64::RBP) {
        None | Some(RegisterRule::SameValue) => Some((bp::SAME, 0)),
        Some(RegisterRule::Offset(offset)) => at(bp::AT_CFA, offset),
        Some(RegisterRule::Expression(expression)) => match linear(&operations(expression, section)) {
            Some(Value::Register { register: X86_64::RBP, offset }) => at(bp::AT_BP, offset),
            _ => Some((bp::LOST, 0)),
        },
        Some(_) => Some((bp::LOST, 0)),
    }
}

/// How a CFA is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cfa {
    Value(Value),
    /// An entry of a procedure linkage table, of which this is the address in it from which on the
    /// stack has one word more.
    Plt(u64),
    Unknown,
}

impl Cfa {
    /// Returns the kind, the offset and the extra number; `None` if they cannot be packed.
    fn packed(self) -> Option<(u8, i32, u8)> {
        let (kind, offset, extra) = match self {
            Self::Plt(threshold) => return Some((kind::PLT, 0, u8::try_from(threshold).ok()?)),
            Self::Value(Value::Register { register: X86_64::RSP, offset }) => (kind::SP, offset, 0),
            Self::Value(Value::Register { register: X86_64::RBP, offset }) => (kind::BP, offset, 0),
            Self::Value(Value::Loaded { register: X86_64::RSP, offset, extra }) => {
                (kind::SP_DEREF, offset, extra)
            }
            Self::Value(Value::Loaded { register: X86_64::RBP, offset, extra }) => {
                (kind::BP_DEREF, offset, extra)
            }
            Self::Value(_) | Self::Unknown => return None,
        };
        Some((kind, i32::try_from(offset).ok()?, u8::try_from(extra).ok()?))
    }
}

/// What an expression computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Constant(i64),
    /// A register plus an offset.
    Register {
        register: Register,
        offset: i64,
    },
    /// The word at a register plus an offset, plus another number.
    Loaded {
        register: Register,
        offset: i64,
        extra: i64,
    },
}

impl Value {
    fn plus(self, number: i64) -> Option<Self> {
        Some(match self {
            Self::Constant(constant) => Self::Constant(constant.checked_add(number)?),
            Self::Register { register, offset } => {
                Self::Register { register, offset: offset.checked_add(number)? }
            }
            Self::Loaded { register, offset, extra } => {
                Self::Loaded { register, offset, extra: extra.checked_add(number)? }
            }
        })
    }
}

type Operations<'a> = Vec<Operation<Bytes<'a>>>;

/// Returns the operations of an expression; nothing if it has too many of them or is damaged.
fn operations<'a, S: UnwindSection<Bytes<'a>>>(
    expression: UnwindExpression<usize>,
    section: &S,
) -> Operations<'a> {
    // Of call frame information; expressions there do not depend on the format.
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let parse = |expression: Expression<Bytes<'a>>| {
        let mut all = Vec::new();
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next()? {
            if all.len() == MAX_OPERATIONS {
                return Ok(Vec::new());
            }
            all.push(operation);
        }
        Ok::<_, gimli::Error>(all)
    };
    expression.get(section).and_then(parse).unwrap_or_default()
}

fn cfa_of(operations: &Operations<'_>) -> Cfa {
    use Operation::{And, Ge, Plus, RegisterOffset, Shl, UnsignedConstant as Number};
    match operations[..] {
        // rsp + 8 + ((rip & 15 >= threshold) << 3): linkers write it for .plt.
        [
            RegisterOffset { register: X86_64::RSP, offset: 8, .. },
            RegisterOffset { register: X86_64::RA, offset: 0, .. },
            Number { value: 15 },
            And,
            Number { value: threshold },
            Ge,
            Number { value: 3 },
            Shl,
            Plus,
        ] => Cfa::Plt(threshold),
        _ => linear(operations).map_or(Cfa::Unknown, Cfa::Value),
    }
}

/// Evaluates an expression of sums and at most one load.
fn linear(operations: &Operations<'_>) -> Option<Value> {
    let mut stack = Vec::new();
    for operation in operations {
        let value = match *operation {
            Operation::RegisterOffset { register, offset, base_type } if base_type.0 == 0 => {
                Value::Register { register, offset }
            }
            Operation::UnsignedConstant { value } => Value::Constant(value.cast_signed()),
            Operation::SignedConstant { value } => Value::Constant(value),
            Operation::PlusConstant { value } => {
                stack.pop().and_then(|v: Value| v.plus(value.cast_signed()))?
            }
            Operation::Plus => match (stack.pop()?, stack.pop()?) {
                (Value::Constant(number), value) | (value, Value::Constant(number)) => value.plus(number)?,
                _ => return None,
            },
            Operation::Minus => match (stack.pop()?, stack.pop()?) {
                (Value::Constant(number), value) => value.plus(number.checked_neg()?)?,
                _ => return None,
            },
            Operation::Deref { base_type, size: 8, space: false } if base_type.0 == 0 => match stack.pop()? {
                Value::Register { register, offset } => Value::Loaded { register, offset, extra: 0 },
                _ => return None,
            },
            Operation::Nop => continue,
            _ => return None,
        };
        stack.push(value);
    }
    stack.pop()
}
