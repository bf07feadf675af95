//! Removes what is computed, or stored in the frame, and never read.

use std::collections::BTreeMap;

use aya_obj::generated::bpf_insn;

use super::{
    Code, CodeError,
    liveness::{Liveness, is_unread},
    operation::{Operand, Operation, Place, operator},
    write,
};

/// Removes what is not needed. Returns whether anything was.
pub(super) fn sweep(code: &mut [bpf_insn]) -> Result<bool, CodeError> {
    let mut changes = BTreeMap::new();
    for function in Code(code).functions()? {
        changes_in(Code(code), function, &mut changes)?;
    }
    write(code, &changes)
}

/// Notes the instructions of a function that are not needed, and what they become.
fn changes_in(
    code: Code<'_>,
    function: usize,
    changes: &mut BTreeMap<usize, Operation>,
) -> Result<(), CodeError> {
    let instructions = code.instructions(function)?;
    let targets = code.targets(function)?;
    let liveness = Liveness::of(code, function, &instructions)?;
    for (at, operation) in instructions {
        // A pair begins before this instruction.
        if changes.contains_key(&at) {
            continue;
        }
        if is_unread(operation, liveness.after(at, operation)?) {
            changes.insert(at, Operation::NOTHING);
            continue;
        }
        let next = at + operation.slots();
        if next >= code.0.len() || targets.contains(&next) {
            continue;
        }
        let second = code.operation(next)?;
        if is_stored_back(operation, second) {
            changes.insert(next, Operation::NOTHING);
        } else if let Some((between, one)) = with_offset(operation, second).or(with_target(operation, second))
            && (second.sets() == Some(between) || liveness.after(next, second)?.registers >> between & 1 == 0)
        {
            changes.insert(at, Operation::NOTHING);
            changes.insert(next, one);
        }
    }
    Ok(())
}

/// Returns whether an instruction stores what the one before it has loaded from the same place.
fn is_stored_back(operation: Operation, next: Operation) -> bool {
    match (operation, next) {
        (
            Operation::Load { to: loaded, from, bytes, signed: false },
            Operation::Store { to, bytes: stored, operand: Operand::Register(operand) },
        ) => from == to && bytes == stored && loaded == operand && loaded != to.base,
        _ => false,
    }
}

/// Returns the register that an instruction sets and the next one copies, and an operation that
/// sets the copy.
fn with_target(operation: Operation, next: Operation) -> Option<(u8, Operation)> {
    let Operation::Compute { wide: true, operator: operator::MOVE, to, operand: Operand::Register(from) } =
        next
    else {
        return None;
    };
    match operation {
        Operation::Load { to: loaded, from: place, bytes, signed } if loaded == from => {
            Some((from, Operation::Load { to, from: place, bytes, signed }))
        }
        Operation::Compute { wide, operator: operator::MOVE, to: moved, operand } if moved == from => {
            Some((from, Operation::Compute { wide, operator: operator::MOVE, to, operand }))
        }
        _ => None,
    }
}

/// Returns the register to which an instruction adds a number and from whose address the next one
/// loads, and a load that does both.
fn with_offset(operation: Operation, next: Operation) -> Option<(u8, Operation)> {
    match (operation, next) {
        (
            Operation::Compute { wide: true, operator: operator::ADD, to: address, operand },
            Operation::Load { to, from, bytes, signed },
        ) if from.base == address => {
            let Operand::Number(more) = operand else { return None };
            let offset = from.offset.checked_add(i16::try_from(more).ok()?)?;
            Some((address, Operation::Load { to, from: Place { offset, ..from }, bytes, signed }))
        }
        _ => None,
    }
}
