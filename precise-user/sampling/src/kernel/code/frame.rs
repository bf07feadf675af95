//! Which part of a function's frame others may read and write.

use std::ops::Range;

use super::{
    Code, CodeError,
    operation::{Callee, FRAME, Operand, Operation, operator},
};

/// The frame has 512 bytes, in words of four.
pub(super) const WORDS: usize = 128;

/// The offset of the frame's start.
const START: i32 = -4 * WORDS as i32;

/// Returns the words of the frame of which an access touches some bytes, by their indexes from the
/// frame's start.
pub(super) fn touched(offset: i32, bytes: i32) -> Range<usize> {
    let word = |offset: i32| (offset - START).div_euclid(4).clamp(0, WORDS as i32) as usize;
    word(offset)..word(offset + bytes + 3)
}

/// Returns the words that an access covers, if it is one of whole words.
pub(super) fn covered(offset: i32, bytes: i32) -> Option<Range<usize>> {
    let words = touched(offset, bytes);
    (4 * words.len() == bytes as usize).then_some(words)
}

/// Returns the lowest offset of the frame that others than the function's own loads and stores may
/// read or write: the lowest that a pointer is made for, because it may be used for all above it. 0
/// if there is no such pointer.
///
/// The compiler makes a pointer by copying the frame's register and adding to the copy in the next
/// instruction. Where a function does anything else with such a pointer but to use it as an address
/// or an argument, all of its frame is shared.
pub(super) fn shared(code: Code<'_>, function: usize) -> Result<i32, CodeError> {
    let mut pointers = Pointers { code, lowest: 0 };
    let mut all = vec![None; code.0.len() + 1];
    let mut paths = vec![(function, 0)];
    while let Some((at, more)) = paths.pop() {
        let known = all.get_mut(at).ok_or(CodeError::Outside(at as i64))?;
        let held = known.unwrap_or(0) | more;
        if *known == Some(held) {
            continue;
        }
        *known = Some(held);
        let operation = code.operation(at)?;
        let after = pointers.after(at, operation, held)?;
        let next = code.successors(at, operation)?;
        paths.extend(next.into_iter().flatten().map(|at| (at, after)));
    }
    Ok(pointers.lowest)
}

struct Pointers<'a> {
    code: Code<'a>,
    lowest: i32,
}

impl Pointers<'_> {
    /// Returns the registers that may hold a pointer to the frame after an instruction, by those
    /// before it: a bit for each.
    fn after(&mut self, at: usize, operation: Operation, held: u16) -> Result<u16, CodeError> {
        let is_pointer = |register: u8| register == FRAME || held >> register & 1 != 0;
        let of_operand = |operand| matches!(operand, Operand::Register(register) if is_pointer(register));
        let without = |register: u8| held & !(1 << register);
        Ok(match operation {
            Operation::Compute {
                wide: true,
                operator: operator::MOVE,
                to,
                operand: Operand::Register(from),
            } if is_pointer(from) => {
                if from == FRAME {
                    let offset = match self.code.operation(at + 1)? {
                        Operation::Compute {
                            wide: true,
                            operator: operator::ADD,
                            to: added,
                            operand: Operand::Number(more),
                        } if added == to => more,
                        _ => START,
                    };
                    self.lowest = self.lowest.min(offset);
                }
                held | 1 << to
            }
            Operation::Compute { operator, to, operand, .. } => {
                let copied = operator == operator::MOVE;
                let is_made = at > 0 && self.is_copy_of_frame(at - 1, to);
                let goes_up = operator == operator::ADD && matches!(operand, Operand::Number(0..));
                if of_operand(operand) || !copied && is_pointer(to) && !is_made && !goes_up {
                    self.lowest = START;
                }
                if copied { without(to) } else { held }
            }
            Operation::Convert { to, from } => {
                if is_pointer(to) || from.is_some_and(is_pointer) {
                    self.lowest = START;
                }
                without(to)
            }
            Operation::Store { operand, .. } => {
                if of_operand(operand) {
                    self.lowest = START;
                }
                held
            }
            Operation::Atomic { operand, .. } => {
                if is_pointer(operand) {
                    self.lowest = START;
                }
                without(0) & !(1 << operand)
            }
            // A function may return the pointer that it is given, which no helper does.
            Operation::Call(Callee::Function(_)) if held & 0b11_1110 != 0 => held & !0b11_1110 | 1,
            Operation::Call(_) => held & !0b11_1111,
            operation => operation.sets().map_or(held, without),
        })
    }

    /// Returns whether an instruction copies the frame's register.
    fn is_copy_of_frame(&self, at: usize, to: u8) -> bool {
        let copy = Operation::Compute {
            wide: true,
            operator: operator::MOVE,
            to,
            operand: Operand::Register(FRAME),
        };
        self.code.operation(at).is_ok_and(|operation| operation == copy)
    }
}
