//! Replaces what is known before the program runs: numbers that are computed from numbers, branches
//! that they decide, and addresses that are a register and a distance.
//!
//! It follows each function from its start, and keeps for every register and for the words of the
//! frame what holds on all paths (sparse conditional constant propagation, Wegman and Zadeck 1991).

use std::collections::{BTreeMap, BTreeSet};

use aya_obj::generated::bpf_insn;

use super::{
    Code, CodeError,
    arithmetic::{compare, compute},
    frame,
    operation::{FRAME, Operand, Operation, Place, comparison, operator},
    state::{RegisterFact, State},
    write,
};

/// Replaces what is known. Returns whether anything was.
pub(super) fn fold(code: &mut [bpf_insn]) -> Result<bool, CodeError> {
    let mut changes = BTreeMap::new();
    for function in Code(code).functions()? {
        let facts = Facts::of(Code(code), function)?;
        facts.changes(&mut changes)?;
    }
    write(code, &changes)
}

/// What holds in a function.
struct Facts<'a> {
    code: Code<'a>,
    /// The frame's lowest offset that another function or the kernel may write to: what a pointer
    /// to the frame was made for, and all above it.
    shared: i32,
    /// What holds where paths meet.
    states: BTreeMap<usize, State>,
}

impl<'a> Facts<'a> {
    fn of(code: Code<'a>, function: usize) -> Result<Self, CodeError> {
        let mut facts = Self { code, shared: frame::shared(code, function)?, states: BTreeMap::new() };
        // Where paths meet: also where one only arrives from above.
        let mut meets = code.targets(function)?;
        meets.insert(function);
        facts.states.insert(function, State::UNKNOWN);
        // In the order of the code, so that most paths have met where they are followed on.
        let mut changed = BTreeSet::from([function]);
        let mut reached = Vec::new();
        while let Some(start) = changed.pop_first() {
            facts.follow(start, |at| meets.contains(&at), |_, _, _| (), &mut reached)?;
            for (at, state) in reached.drain(..) {
                let is_less = match facts.states.get_mut(&at) {
                    Some(known) => known.meet(&state),
                    None => facts.states.insert(at, state).is_none(),
                };
                if is_less {
                    changed.insert(at);
                }
            }
        }
        Ok(facts)
    }

    /// Follows the path from where others meet it to where it meets others again.
    fn follow(
        &self,
        start: usize,
        meets: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, Operation, &State),
        reached: &mut Vec<(usize, State)>,
    ) -> Result<(), CodeError> {
        let Some(state) = self.states.get(&start) else { return Ok(()) };
        let mut state = state.clone();
        let mut at = start;
        loop {
            let operation = self.code.operation(at)?;
            visit(at, operation, &state);
            let decided = self.decided(operation, &state);
            match operation {
                Operation::Exit => return Ok(()),
                Operation::Jump(distance) => {
                    reached.push((self.code.target(at, distance.into())?, state));
                    return Ok(());
                }
                Operation::Branch { distance, .. } => {
                    let target = self.code.target(at, distance.into())?;
                    if decided == Some(true) {
                        reached.push((target, state));
                        return Ok(());
                    }
                    if decided.is_none() {
                        reached.push((target, state.clone()));
                    }
                }
                operation => self.apply(operation, &mut state),
            }
            at += operation.slots();
            if meets(at) {
                reached.push((at, state));
                return Ok(());
            }
        }
    }

    /// Returns the offset of a place, if it is a whole word of the frame that nobody else accesses.
    fn word(&self, place: Place, bytes: u8) -> Option<i16> {
        let is_own = i32::from(place.offset) + 8 <= self.shared;
        (place.base == FRAME && bytes == 8 && is_own).then_some(place.offset)
    }

    /// Returns whether a branch is taken, if that is known.
    fn decided(&self, operation: Operation, state: &State) -> Option<bool> {
        let Operation::Branch { wide, comparison, left, right, .. } = operation else { return None };
        let left = state.number(left);
        if let (Some(left), Some(right)) = (left, state.operand(right)) {
            return compare(wide, comparison, left, right);
        }
        match (comparison, left.map(|left| if wide { left } else { left & 0xffff_ffff })) {
            (comparison::ABOVE, Some(0)) => Some(false),
            (comparison::NOT_ABOVE, Some(0)) => Some(true),
            _ => None,
        }
    }

    /// Changes the state as the instruction does.
    fn apply(&self, operation: Operation, state: &mut State) {
        match operation {
            Operation::Call(_) => {
                for register in 0..=5 {
                    state.set(register, RegisterFact::Any);
                }
            }
            Operation::Atomic { to, bytes, operand } => {
                state.store(state.place(to), bytes, None);
                state.set(0, RegisterFact::Any);
                state.set(operand, RegisterFact::Any);
            }
            Operation::Store { to, bytes, operand } => {
                let place = state.place(to);
                // Others may change what is shared.
                let end = i32::from(place.offset) + i32::from(bytes);
                let number = state.operand(operand).filter(|_| end <= self.shared);
                state.store(place, bytes, number);
                if let (Some(offset), Operand::Register(from)) = (self.word(place, bytes), operand) {
                    state.note(same(from, state), RegisterFact::Word { offset });
                }
            }
            operation => {
                if let Some(register) = operation.sets() {
                    state.set(register, self.result(operation, state));
                }
            }
        }
    }

    /// Returns what is known of the value that the instruction sets.
    fn result(&self, operation: Operation, state: &State) -> RegisterFact {
        match operation {
            Operation::Number { number, .. } => RegisterFact::Number(number),
            Operation::Load { to, from, bytes, signed: false } => {
                let from = state.place(from);
                match (state.load(from, bytes), self.word(from, bytes)) {
                    (Some(number), _) => RegisterFact::Number(number),
                    (None, Some(offset)) => match state.holder(offset, to) {
                        Some(register) if register != to => RegisterFact::Near { register, distance: 0 },
                        _ => RegisterFact::Word { offset },
                    },
                    (None, None) => RegisterFact::Any,
                }
            }
            Operation::Compute {
                wide: true,
                operator: operator::MOVE,
                operand: Operand::Register(from),
                ..
            } => match state.value(from) {
                RegisterFact::Any | RegisterFact::Word { .. } => {
                    RegisterFact::Near { register: from, distance: 0 }
                }
                known => known,
            },
            Operation::Compute { wide, operator, to, operand } => {
                let (left, right) = (state.value(to), state.operand(operand));
                match (left, right) {
                    (_, Some(right)) if operator == operator::MOVE => {
                        RegisterFact::Number(if wide { right } else { right & 0xffff_ffff })
                    }
                    (RegisterFact::Number(left), Some(right)) => {
                        compute(wide, operator, left, right).map_or(RegisterFact::Any, RegisterFact::Number)
                    }
                    (RegisterFact::Near { register, distance }, Some(right))
                        if wide && operator == operator::ADD =>
                    {
                        let more = i32::try_from(right as i64).ok();
                        match more.and_then(|more| distance.checked_add(more)) {
                            Some(distance) => RegisterFact::Near { register, distance },
                            None => RegisterFact::Any,
                        }
                    }
                    _ => RegisterFact::Any,
                }
            }
            _ => RegisterFact::Any,
        }
    }

    /// Notes the instructions that can be replaced, and by what.
    fn changes(&self, changes: &mut BTreeMap<usize, Operation>) -> Result<(), CodeError> {
        for start in self.states.keys() {
            self.follow(
                *start,
                |at| self.states.contains_key(&at),
                |at, operation, state| {
                    if let Some(replacement) = self.replacement(operation, state)
                        && replacement != operation
                    {
                        changes.insert(at, replacement);
                    }
                },
                &mut Vec::new(),
            )?;
        }
        Ok(())
    }

    /// Returns what does the same as an instruction, where that is known and simpler.
    fn replacement(&self, operation: Operation, state: &State) -> Option<Operation> {
        match operation {
            Operation::Compute { .. } | Operation::Load { .. }
                if let RegisterFact::Number(number) = self.result(operation, state) =>
            {
                let to = operation.sets()?;
                if state.number(to) == Some(number) {
                    return Some(Operation::NOTHING);
                }
                let (wide, number) = match i32::try_from(number as i64) {
                    Ok(number) => (true, number),
                    Err(_) => (false, u32::try_from(number).ok()? as i32),
                };
                Some(Operation::Compute {
                    wide,
                    operator: operator::MOVE,
                    to,
                    operand: Operand::Number(number),
                })
            }
            Operation::Compute { wide, operator, to, operand } => {
                let operand = simpler(wide, operand, state);
                if wide && is_nothing(operator, operand) {
                    return Some(Operation::NOTHING);
                }
                Some(Operation::Compute { wide, operator, to, operand })
            }
            Operation::Load { to, from, bytes, signed } => {
                let from = state.place(from);
                Some(match self.result(operation, state) {
                    RegisterFact::Near { register, distance: 0 } => Operation::Compute {
                        wide: true,
                        operator: operator::MOVE,
                        to,
                        operand: Operand::Register(register),
                    },
                    word @ RegisterFact::Word { .. } if state.value(to) == word => Operation::NOTHING,
                    _ => Operation::Load { to, from, bytes, signed },
                })
            }
            Operation::Store { to, bytes, operand: Operand::Register(from) } => {
                let operand = Operand::Register(same(from, state));
                Some(Operation::Store { to: state.place(to), bytes, operand })
            }
            Operation::Branch { wide, comparison, left, right, distance } => {
                match self.decided(operation, state) {
                    Some(true) => Some(Operation::Jump(distance)),
                    Some(false) => Some(Operation::NOTHING),
                    None => {
                        let (left, right) = (same(left, state), simpler(wide, right, state));
                        Some(Operation::Branch { wide, comparison, left, right, distance })
                    }
                }
            }
            _ => None,
        }
    }
}

/// Returns the same operand as a number, or as the register that it is a copy of.
fn simpler(wide: bool, operand: Operand, state: &State) -> Operand {
    let Operand::Register(register) = operand else { return operand };
    match state.value(register) {
        RegisterFact::Number(number) if wide => i32::try_from(number as i64).map_or(operand, Operand::Number),
        RegisterFact::Number(number) => Operand::Number(number as i32),
        _ => Operand::Register(same(register, state)),
    }
}

/// Returns the register that a register is a copy of, or itself. A copy of the frame's register is
/// no other: what is done with the frame's own is looked at by [`frame::shared`].
fn same(register: u8, state: &State) -> u8 {
    match state.value(register) {
        RegisterFact::Near { register: of, distance: 0 } if of != FRAME => of,
        _ => register,
    }
}

/// Returns whether an operation of 64 bits leaves the value as it is.
fn is_nothing(operator: u8, operand: Operand) -> bool {
    match operator {
        operator::ADD
        | operator::SUBTRACT
        | operator::OR
        | operator::XOR
        | operator::SHIFT_LEFT
        | operator::SHIFT_RIGHT
        | operator::SHIFT_SIGNED => operand == Operand::Number(0),
        operator::MULTIPLY | operator::DIVIDE => operand == Operand::Number(1),
        operator::AND => operand == Operand::Number(-1),
        _ => false,
    }
}
