//! Where DWARF expressions find variables.

use gimli::Operation;
use precise_code::types::{Home, RegisterNumber};

use super::{Bytes, Unit};

/// Maximum number of operations of an expression that are read.
const MAX_OPERATIONS: usize = 64;

/// A variable, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The distance from the start of the variable; `None` for all of it.
    pub at: Option<u64>,
    pub home: Home,
}

/// What an expression says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Located {
    pub pieces: Vec<Piece>,
    /// The address of a global variable.
    pub address: Option<u64>,
}

/// How a function finds its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameBase {
    /// The canonical frame address.
    Canonical,
    /// The value of a register plus a constant.
    Register(RegisterNumber, i64),
    /// Not known.
    Unknown,
}

/// Returns the number in machine code of a register of DWARF (System V ABI for x86-64, table 3.36);
/// `None` for registers that hold no addresses.
pub(super) fn register(number: gimli::Register) -> Option<RegisterNumber> {
    const NUMBERS: [RegisterNumber; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    match number.0 {
        low @ 0..=7 => NUMBERS.get(usize::from(low)).copied(),
        high @ 8..=15 => u8::try_from(high).ok(),
        _ => None,
    }
}

/// Returns how a function finds its frame.
pub(super) fn frame(unit: &Unit<'_>, expression: gimli::Expression<Bytes<'_>>) -> FrameBase {
    let mut operations = expression.operations(unit.encoding());
    match operations.next() {
        Ok(Some(Operation::CallFrameCFA)) => FrameBase::Canonical,
        Ok(Some(Operation::Register { register: number })) => {
            register(number).map_or(FrameBase::Unknown, |number| FrameBase::Register(number, 0))
        }
        Ok(Some(Operation::RegisterOffset { register: number, offset, .. })) => {
            register(number).map_or(FrameBase::Unknown, |number| FrameBase::Register(number, offset))
        }
        _ => FrameBase::Unknown,
    }
}

/// Returns where an expression finds a variable. Parts that are computed otherwise, such as entry
/// values and implicit pointers, are nowhere.
pub(super) fn locate(
    dwarf: &gimli::Dwarf<Bytes<'_>>,
    unit: &Unit<'_>,
    expression: gimli::Expression<Bytes<'_>>,
    frame: FrameBase,
) -> Located {
    let mut located = Located::default();
    let mut operations = expression.operations(unit.encoding());
    let (mut current, mut at, mut pieces) = (None, 0_u64, false);
    for _ in 0..MAX_OPERATIONS {
        let Ok(Some(operation)) = operations.next() else { break };
        match operation {
            Operation::Register { register: number } => current = register(number).map(|n| Home::Value(n, 0)),
            Operation::RegisterOffset { register: number, offset, .. } => {
                current = register(number).map(|number| Home::At(number, offset));
            }
            Operation::FrameOffset { offset } => {
                current = match frame {
                    FrameBase::Canonical => Some(Home::Frame(offset)),
                    FrameBase::Register(number, plus) => Some(Home::At(number, plus.wrapping_add(offset))),
                    FrameBase::Unknown => None,
                };
            }
            Operation::CallFrameCFA => current = Some(Home::Frame(0)),
            Operation::PlusConstant { value } => {
                current = current.map(|home| plus(home, value.cast_signed()))
            }
            Operation::StackValue => {
                current = match current {
                    Some(Home::At(number, offset)) => Some(Home::Value(number, offset)),
                    _ => None,
                };
            }
            Operation::Piece { size_in_bits, bit_offset: None } => {
                pieces = true;
                located.pieces.extend(current.take().map(|home| Piece { at: Some(at), home }));
                at = at.saturating_add(size_in_bits / 8);
            }
            Operation::Address { address } => {
                located.address = Some(address);
                current = None;
            }
            Operation::AddressIndex { index } => {
                located.address = dwarf.address(unit, index).ok();
                current = None;
            }
            Operation::Nop => {}
            // Computed from more than one value: the rest of the piece is not followed.
            _ => {
                located.address = None;
                current = None;
                if !skip_piece(&mut operations, &mut at) {
                    break;
                }
                pieces = true;
            }
        }
    }
    if !pieces {
        located.pieces.extend(current.map(|home| Piece { at: None, home }));
    }
    if pieces || !located.pieces.is_empty() {
        located.address = None;
    }
    located
}

/// Skips the operations up to the end of the piece. Returns whether there is one.
fn skip_piece(operations: &mut gimli::OperationIter<Bytes<'_>>, at: &mut u64) -> bool {
    for _ in 0..MAX_OPERATIONS {
        match operations.next() {
            Ok(Some(Operation::Piece { size_in_bits, .. })) => {
                *at = at.saturating_add(size_in_bits / 8);
                return true;
            }
            Ok(Some(_)) => {}
            _ => return false,
        }
    }
    false
}

fn plus(home: Home, constant: i64) -> Home {
    match home {
        Home::Value(number, offset) => Home::Value(number, offset.wrapping_add(constant)),
        Home::At(number, offset) => Home::At(number, offset.wrapping_add(constant)),
        Home::Frame(offset) => Home::Frame(offset.wrapping_add(constant)),
    }
}
