//! Keeps words of the frame in registers, and puts those that remain close together.
//!
//! The compiler allocates registers for the code of all features at once, and most of what it has
//! moved to the frame would have room in a register when only one run's code is left. A frame of 64
//! bytes or more has a price of its own: since Linux 6.13 the kernel gives such a program a stack
//! for each CPU (`BPF_PRIV_STACK_MIN_SIZE` in kernel/bpf/verifier.c), whose lines are in no cache
//! when a sample arrives, while those of the kernel's own stack are.

use std::collections::{BTreeMap, BTreeSet};

use aya_obj::generated::bpf_insn;

use super::{
    Code, CodeError,
    liveness::Liveness,
    operation::{FRAME, Operand, Operation, Place, operator},
    write,
};

/// The size of a word here: that of a register.
const WORD: i32 = 8;

/// The registers that a call leaves as they are.
const SAVED: u16 = 0b11_1100_0000;

/// The registers that a call changes.
const CHANGED: u16 = 0b11_1111;

/// Keeps words of the frame in registers that are free as long as the words are in use. Returns
/// whether it found any.
pub(super) fn promote(code: &mut [bpf_insn]) -> Result<bool, CodeError> {
    let mut changes = BTreeMap::new();
    for function in Code(code).functions()? {
        let values = Values::of(Code(code), function)?;
        let mut registers = Registers::of(&values);
        let mut webs: Vec<_> = values.webs.iter().collect();
        webs.sort_by_key(|web| (std::cmp::Reverse(web.accesses.len()), web.offset));
        for web in webs {
            let Some(register) = registers.free_for(web, &values) else { continue };
            registers.take(register, web, &values);
            for at in &web.accesses {
                changes.insert(*at, in_register(values.code.operation(*at)?, register));
            }
        }
    }
    write(code, &changes)
}

/// Puts the words of the frame that remain close together, if that makes the frame smaller.
pub(super) fn pack(code: &mut [bpf_insn]) -> Result<(), CodeError> {
    let mut changes = BTreeMap::new();
    for function in Code(code).functions()? {
        let values = Values::of(Code(code), function)?;
        let mut taken: BTreeMap<i16, BTreeSet<usize>> = BTreeMap::new();
        let mut moved = Vec::new();
        for web in values.webs.iter().rev() {
            let fits = |offset: &i16| {
                let others = taken.get(offset);
                !values.is_fixed(*offset) && others.is_none_or(|others| others.is_disjoint(&web.points))
            };
            let Some(offset) = values.offsets().find(fits) else { continue };
            taken.entry(offset).or_default().extend(&web.points);
            moved.push((web, offset));
        }
        let lowest = |offsets: &mut dyn Iterator<Item = i16>| offsets.min().unwrap_or(0);
        let before = lowest(&mut values.webs.iter().map(|web| web.offset));
        if moved.len() < values.webs.len() || lowest(&mut moved.iter().map(|(_, offset)| *offset)) <= before {
            continue;
        }
        for (web, offset) in moved {
            for at in &web.accesses {
                changes.insert(*at, at_offset(values.code.operation(*at)?, offset));
            }
        }
    }
    write(code, &changes).map(drop)
}

/// Returns a move in place of a load or a store.
fn in_register(access: Operation, register: u8) -> Operation {
    let (to, operand) = match access {
        Operation::Load { to, .. } => (to, Operand::Register(register)),
        Operation::Store { operand, .. } => (register, operand),
        other => return other,
    };
    if operand == Operand::Register(to) {
        return Operation::NOTHING;
    }
    Operation::Compute { wide: true, operator: operator::MOVE, to, operand }
}

/// Returns a load or a store of another word of the frame.
fn at_offset(access: Operation, offset: i16) -> Operation {
    let place = Place { base: FRAME, offset };
    match access {
        Operation::Load { to, bytes, signed, .. } => Operation::Load { to, from: place, bytes, signed },
        Operation::Store { bytes, operand, .. } => Operation::Store { to: place, bytes, operand },
        other => other,
    }
}

/// The values that a function keeps in words of its frame.
struct Values<'a> {
    code: Code<'a>,
    instructions: Vec<(usize, Operation)>,
    liveness: Liveness<'a>,
    webs: Vec<Web>,
    /// The offsets of the words that are accessed in other ways, and stay where they are.
    fixed: BTreeSet<i32>,
}

/// A value in a word of the frame, from the stores that set it to the last loads of it.
struct Web {
    offset: i16,
    /// The instructions before which the value is kept.
    points: BTreeSet<usize>,
    /// The loads and stores.
    accesses: Vec<usize>,
}

impl<'a> Values<'a> {
    fn of(code: Code<'a>, function: usize) -> Result<Self, CodeError> {
        let instructions = code.instructions(function)?;
        let liveness = Liveness::of(code, function, &instructions)?;
        let shared = liveness.shared_from;
        let mut words: BTreeMap<i16, Vec<(usize, bool)>> = BTreeMap::new();
        let mut others = Vec::new();
        for (at, operation) in &instructions {
            let (place, bytes, stores) = match *operation {
                Operation::Load { from, bytes, signed, .. } => (from, if signed { 0 } else { bytes }, false),
                Operation::Store { to, bytes, .. } => (to, bytes, true),
                // It may be a whole word, but is not a load or a store.
                Operation::Atomic { to, .. } => (to, 0, true),
                _ => continue,
            };
            if place.base != FRAME {
                continue;
            }
            let offset = i32::from(place.offset);
            if i32::from(bytes) == WORD && offset % WORD == 0 && offset + WORD <= shared {
                words.entry(place.offset).or_default().push((*at, stores));
            } else {
                // At most two words, of which others may have parts.
                others.extend([offset, offset + WORD - 1].map(|byte| byte.div_euclid(WORD) * WORD));
            }
        }
        let mut values =
            Self { code, instructions, liveness, webs: Vec::new(), fixed: others.into_iter().collect() };
        for (offset, accesses) in words {
            let webs = match values.fixed.contains(&offset.into()) {
                true => None,
                false => values.webs_of(offset, &accesses, function)?,
            };
            match webs {
                Some(webs) => values.webs.extend(webs),
                None => drop(values.fixed.insert(offset.into())),
            }
        }
        Ok(values)
    }

    /// Returns the values that are kept in one word; `None` if the word is read before it is set,
    /// or set and not read.
    fn webs_of(
        &self,
        offset: i16,
        accesses: &[(usize, bool)],
        function: usize,
    ) -> Result<Option<Vec<Web>>, CodeError> {
        let is_kept = |at: usize| self.liveness.before(at).has_word(offset);
        if is_kept(function) {
            return Ok(None);
        }
        let mut sets = Sets::new(self.code.0.len());
        for (at, operation) in &self.instructions {
            for next in self.code.successors(*at, *operation)?.into_iter().flatten() {
                if is_kept(*at) && is_kept(next) {
                    sets.join(*at, next);
                }
            }
        }
        let mut webs: BTreeMap<usize, Web> = BTreeMap::new();
        for (at, stores) in accesses {
            let point = at + usize::from(*stores);
            if !is_kept(point) {
                return Ok(None);
            }
            let new = || Web { offset, points: BTreeSet::new(), accesses: Vec::new() };
            webs.entry(sets.first(point)).or_insert_with(new).accesses.push(*at);
        }
        for (at, _) in &self.instructions {
            if is_kept(*at)
                && let Some(web) = webs.get_mut(&sets.first(*at))
            {
                web.points.insert(*at);
            }
        }
        Ok(Some(webs.into_values().collect()))
    }

    /// Iterates over the offsets at which words may be, from the highest.
    fn offsets(&self) -> impl Iterator<Item = i16> {
        let highest = self.liveness.shared_from.div_euclid(WORD) - 1;
        (0..64).map(move |below| ((highest - below) * WORD) as i16).filter(|offset| *offset >= -512)
    }

    fn is_fixed(&self, offset: i16) -> bool {
        self.fixed.contains(&offset.into())
    }
}

/// Which registers are in use, and where.
struct Registers {
    /// The registers that are read later, before each instruction: a bit for each.
    read: Vec<u16>,
    /// The registers that each instruction changes.
    changed: Vec<u16>,
    /// The registers that the function saves for its caller anyway, and those that it need not.
    usable: u16,
}

impl Registers {
    fn of(values: &Values<'_>) -> Self {
        let length = values.code.0.len();
        let mut registers = Self { read: vec![0; length], changed: vec![0; length], usable: CHANGED };
        for (at, operation) in &values.instructions {
            registers.read[*at] = values.liveness.before(*at).registers;
            let changed = match *operation {
                Operation::Call(_) => CHANGED,
                Operation::Atomic { operand, .. } => 1 | 1 << operand,
                operation => operation.sets().map_or(0, |register| 1 << register),
            };
            registers.changed[*at] = changed;
            registers.usable |= changed & SAVED;
        }
        registers
    }

    /// Returns a register that is free as long as the value is kept: one that saves a move, if
    /// there is one.
    fn free_for(&self, web: &Web, values: &Values<'_>) -> Option<u8> {
        let mut free = self.usable;
        let mut moves = [0; FRAME as usize];
        for at in &web.points {
            let operation = values.code.operation(*at).ok()?;
            let next = values.code.successors(*at, operation).ok()?;
            free &= !self.read[*at];
            if next.into_iter().flatten().any(|next| web.points.contains(&next)) {
                free &= !self.changed[*at];
            }
        }
        for at in &web.accesses {
            let moved = match values.code.operation(*at).ok()? {
                Operation::Load { to, .. } => Some(to),
                Operation::Store { operand: Operand::Register(from), .. } => Some(from),
                _ => None,
            };
            if let Some(count) = moved.and_then(|register| moves.get_mut(usize::from(register))) {
                *count += 1;
            }
        }
        let of_free = (0..FRAME).filter(|register| free >> register & 1 != 0);
        of_free.max_by_key(|register| (moves[usize::from(*register)], std::cmp::Reverse(*register)))
    }

    /// Notes that a register has a value.
    fn take(&mut self, register: u8, web: &Web, values: &Values<'_>) {
        for at in &web.points {
            self.read[*at] |= 1 << register;
        }
        for at in &web.accesses {
            if let Ok(Operation::Store { .. }) = values.code.operation(*at) {
                self.changed[*at] |= 1 << register;
            }
        }
    }
}

/// Disjoint sets of instructions.
struct Sets(Vec<usize>);

impl Sets {
    fn new(length: usize) -> Self {
        Self((0..=length).collect())
    }

    /// Returns the member that stands for the set of an instruction.
    fn first(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.0[one.max(other)] = one.min(other);
    }
}
