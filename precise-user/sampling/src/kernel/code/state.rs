//! What is known of registers and of the frame at one instruction.

use super::{
    frame::{self, WORDS},
    operation::{FRAME, Operand, Place},
};

/// What is known of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterFact {
    /// Nothing.
    Any,
    /// The number.
    Number(u64),
    /// As much more than another register, which has not changed since.
    Near { register: u8, distance: i32 },
    /// The eight bytes at this offset of the frame, which have not changed since.
    Word { offset: i16 },
}

/// What holds at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    registers: [RegisterFact; FRAME as usize],
    /// The words of the frame that are known: a bit for each, of the lowest address first.
    known: u128,
    /// The numbers of those words; 0 for the others.
    frame: [u32; WORDS],
}

impl State {
    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { registers: [RegisterFact::Any; FRAME as usize], known: 0, frame: [0; WORDS] };

    /// Keeps what holds in both. Returns whether that is less.
    pub fn meet(&mut self, other: &Self) -> bool {
        let mut less = false;
        for (value, other) in self.registers.iter_mut().zip(&other.registers) {
            if *value != *other && *value != RegisterFact::Any {
                *value = RegisterFact::Any;
                less = true;
            }
        }
        let mut left = self.known;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            if other.word(index) != self.word(index) {
                self.set_word(index, None);
                less = true;
            }
        }
        less
    }

    fn word(&self, index: usize) -> Option<u32> {
        (self.known >> index & 1 != 0).then_some(self.frame[index])
    }

    fn set_word(&mut self, index: usize, number: Option<u32>) {
        let bit = 1 << index;
        self.known = if number.is_some() { self.known | bit } else { self.known & !bit };
        self.frame[index] = number.unwrap_or(0);
    }

    /// Returns what is known of a register's value.
    pub fn value(&self, register: u8) -> RegisterFact {
        match self.registers.get(usize::from(register)) {
            Some(value) => *value,
            None => RegisterFact::Near { register, distance: 0 },
        }
    }

    /// Returns a register's number, if it is known.
    pub fn number(&self, register: u8) -> Option<u64> {
        match self.value(register) {
            RegisterFact::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the number that an operand of 64 bits has, if it is known.
    pub fn operand(&self, operand: Operand) -> Option<u64> {
        match operand {
            Operand::Number(number) => Some(i64::from(number) as u64),
            Operand::Register(register) => self.number(register),
        }
    }

    /// Sets what is known of a register, whose value changes.
    pub fn set(&mut self, register: u8, value: RegisterFact) {
        // A copy takes the place of the value from which others are a distance away.
        let copy = |value: &RegisterFact| *value == RegisterFact::Near { register, distance: 0 };
        let heir = self.registers.iter().position(copy).map(|heir| heir as u8);
        let old = self.value(register);
        for (index, other) in self.registers.iter_mut().enumerate() {
            let RegisterFact::Near { register: of, distance } = *other else { continue };
            if of == register {
                *other = match heir {
                    Some(heir) if usize::from(heir) == index => old,
                    Some(heir) => RegisterFact::Near { register: heir, distance },
                    None => RegisterFact::Any,
                };
            }
        }
        let value = match (value, heir) {
            (RegisterFact::Near { register: of, distance }, Some(heir)) if of == register => {
                RegisterFact::Near { register: heir, distance }
            }
            // What is said by itself says nothing.
            (RegisterFact::Near { register: of, .. }, None) if of == register => RegisterFact::Any,
            (value, _) => value,
        };
        if let Some(known) = self.registers.get_mut(usize::from(register)) {
            *known = value;
        }
    }

    /// Notes what is known of a register, whose value stays.
    pub fn note(&mut self, register: u8, value: RegisterFact) {
        if let Some(known) = self.registers.get_mut(usize::from(register))
            && *known == RegisterFact::Any
        {
            *known = value;
        }
    }

    /// Returns a register that has the eight bytes at an offset of the frame: `wanted`, if it has
    /// them.
    pub fn holder(&self, offset: i16, wanted: u8) -> Option<u8> {
        let holds = |register: &u8| self.value(*register) == RegisterFact::Word { offset };
        Some(wanted).filter(holds).or_else(|| (0..FRAME).find(holds))
    }

    /// Returns a place as one that is a distance from a register that does not change in between:
    /// mostly the frame's, or the one from which the address was computed.
    pub fn place(&self, place: Place) -> Place {
        let RegisterFact::Near { register, distance } = self.value(place.base) else { return place };
        match i16::try_from(i32::from(place.offset).saturating_add(distance)) {
            Ok(offset) => Place { base: register, offset },
            Err(_) => place,
        }
    }

    /// Returns the number at a place of the frame, if it is known.
    pub fn load(&self, place: Place, bytes: u8) -> Option<u64> {
        let words = frame::covered(place.offset.into(), bytes.into()).filter(|_| place.base == FRAME)?;
        words.rev().try_fold(0, |upper, index| Some(upper << 32 | u64::from(self.word(index)?)))
    }

    /// Sets what is known of a place that is written, if it is one of the frame.
    pub fn store(&mut self, place: Place, bytes: u8, number: Option<u64>) {
        if place.base != FRAME {
            return;
        }
        let (offset, bytes) = (place.offset.into(), bytes.into());
        let written = frame::touched(offset, bytes);
        for value in &mut self.registers {
            if let RegisterFact::Word { offset } = *value {
                let held = frame::touched(offset.into(), 8);
                if held.start < written.end && written.start < held.end {
                    *value = RegisterFact::Any;
                }
            }
        }
        // A store that is not of whole words changes some in part.
        let number = number.filter(|_| frame::covered(offset, bytes).is_some());
        for (part, index) in written.enumerate() {
            self.set_word(index, number.map(|number| (number >> (32 * part)) as u32));
        }
    }
}
