//! What debug information says about registers and the stack at each instruction.

use super::residue::Residue;
use super::value::{KnownValue, Pointer, PointerSource, ValueState, encloses, pointer_at, telling};
use super::{FunctionFacts, Home, RegisterNumber, TypeId, TypeShape, Types, Variable};
use crate::Instruction;

/// Maximum number of pairs of an instruction and a variable that is there.
const MAX_PAIRS: usize = 4 << 20;
/// The numbers of registers that may hold the frame.
pub(super) const RSP: RegisterNumber = 4;
const RBP: RegisterNumber = 5;
/// The canonical frame address, as the distance from the stack pointer at the entry: the return
/// address is between the two.
const FRAME: i64 = 8;

/// The variables at each instruction.
pub(super) struct KnownVariables<'a> {
    facts: &'a FunctionFacts,
    /// For each instruction the indices of its variables.
    at: Vec<Vec<u32>>,
}

impl<'a> KnownVariables<'a> {
    /// Returns the variables of some code, in the order of its addresses; `None` if there are too
    /// many.
    pub fn of(instructions: &[Instruction], facts: &'a FunctionFacts) -> Option<Self> {
        let mut at = vec![Vec::new(); instructions.len()];
        let mut pairs = 0_usize;
        for (number, variable) in facts.variables.iter().enumerate() {
            let from = instructions.partition_point(|i| i.address < variable.start);
            let to = instructions.partition_point(|i| i.address < variable.end);
            let range = at.get_mut(from..to).unwrap_or_default();
            pairs = pairs.checked_add(range.len()).filter(|pairs| *pairs <= MAX_PAIRS)?;
            let number = u32::try_from(number).ok()?;
            range.iter_mut().for_each(|here| here.push(number));
        }
        Some(Self { facts, at })
    }

    /// Returns whether there are any variables at all.
    pub fn is_empty(&self) -> bool {
        !self.facts.described
    }

    /// Returns the variables at an instruction.
    fn variables(&self, at: usize) -> impl Iterator<Item = &'a Variable> {
        let here = self.at.get(at).map(Vec::as_slice).unwrap_or_default();
        here.iter().filter_map(|number| self.facts.variables.get(*number as usize))
    }

    /// Adds what the variables at an instruction say about its registers.
    pub fn refine(&self, at: usize, state: &mut ValueState, types: &mut dyn Types) {
        for variable in self.variables(at) {
            let (register, pointer) = match variable.home {
                Home::Value(register, plus) => {
                    if is_number(state.get(register), plus) {
                        continue;
                    }
                    // The pointer leads to another place in the frame than the register does.
                    if plus != 0 && matches!(state.get(register), KnownValue::Stack(_)) {
                        continue;
                    }
                    let Some(to) = held(variable, types) else { continue };
                    let pointer =
                        Pointer { offset: plus.wrapping_neg(), ..Pointer::to(to, PointerSource::Variable) };
                    (register, pointer)
                }
                Home::At(register, plus) if !self.is_frame(at, register, state) => {
                    let piece = variable.piece.and_then(|piece| i64::try_from(piece).ok()).unwrap_or(0);
                    let offset = piece.wrapping_sub(plus);
                    (register, Pointer { offset, ..Pointer::to(variable.ty, PointerSource::Variable) })
                }
                Home::At(..) | Home::Frame(_) => continue,
            };
            let flow = state.get(register);
            let covered = matches!(flow, KnownValue::Stack(address) if self.on_stack(at, state, address, types).is_some());
            if !covered {
                state.set(register, KnownValue::Pointer(combined(flow, pointer, types)));
            }
        }
    }

    /// Returns whether a register with variables is the frame, and no pointer to one variable.
    fn is_frame(&self, at: usize, register: RegisterNumber, state: &ValueState) -> bool {
        let shared = || {
            let of_register = |v: &&Variable| matches!(v.home, Home::At(other, _) if other == register);
            self.variables(at).filter(of_register).count() > 1
        };
        register == RSP
            || matches!(state.get(register), KnownValue::Stack(_))
            || (register == RBP && shared())
    }

    /// Returns the variable on the stack that contains an address.
    pub fn on_stack(
        &self,
        at: usize,
        state: &ValueState,
        address: i64,
        types: &mut dyn Types,
    ) -> Option<Pointer> {
        let mut found: Option<(Pointer, u64)> = None;
        for variable in self.variables(at) {
            let start = match variable.home {
                Home::Frame(offset) => offset.wrapping_add(FRAME),
                Home::At(register, offset) => match state.get(register) {
                    KnownValue::Stack(base) => base.wrapping_add(offset),
                    _ => continue,
                },
                Home::Value(..) => continue,
            };
            let piece = i64::try_from(variable.piece.unwrap_or(0)).unwrap_or(0);
            let offset = address.wrapping_sub(start).wrapping_add(piece);
            let size = types.size(variable.ty).unwrap_or(0);
            let inside = u64::try_from(offset).is_ok_and(|offset| offset < size);
            // The enclosing variable: a parameter of an inlined function may be a part of another.
            if inside && found.is_none_or(|(_, other)| size > other) {
                let pointer = Pointer { offset, ..Pointer::to(variable.ty, PointerSource::Variable) };
                found = Some((pointer, size));
            }
        }
        found.map(|(pointer, _)| pointer)
    }
}

/// Returns whether a value was made of constants, so that it is no pointer. LLVM replaces a pointer
/// by an index that counts from a constant, and still says that the register, or the register plus
/// some bytes, is the pointer. (A pointer that was aligned is a multiple, too.)
fn is_number(value: KnownValue, plus: i64) -> bool {
    let KnownValue::Number(number) = value else { return false };
    number != Residue::ANY && number != Residue::exactly(0) && (plus != 0 || number.rest != 0)
}

/// Returns the type that the value of a variable in a register points to.
fn held(variable: &Variable, types: &mut dyn Types) -> Option<TypeId> {
    match variable.piece {
        Some(piece) => pointer_at(variable.ty, piece, types),
        None if types.size(variable.ty) == Some(8) => pointer_at(variable.ty, 0, types),
        None => None,
    }
}

/// Returns what a register points to, of what the data flow and a variable say.
fn combined(flow: KnownValue, variable: Pointer, types: &mut dyn Types) -> Pointer {
    let KnownValue::Pointer(flow) = flow else { return variable };
    if flow.ty == variable.ty {
        // The same object, or a later element.
        let (stepped, source) = (flow.stepped || flow.offset != variable.offset, variable.source);
        return Pointer { stepped, source, ..variable };
    }
    if encloses(flow, variable, types) {
        return telling(flow, variable, types);
    }
    if encloses(variable, flow, types) {
        return telling(variable, flow, types);
    }
    // A cast. Bytes behind a header are not another header.
    let (old, new) = (rank(flow.ty, types), rank(variable.ty, types));
    if new >= old || (flow.stepped && new > 0) { variable } else { flow }
}

/// Returns how much a type says about what a pointer to it points to.
fn rank(ty: TypeId, types: &mut dyn Types) -> u8 {
    match types.shape(ty) {
        TypeShape::Opaque => 0,
        TypeShape::Scalar => 1,
        TypeShape::Array { .. } => 2,
        TypeShape::Composite => 3,
    }
}
