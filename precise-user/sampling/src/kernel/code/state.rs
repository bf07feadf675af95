//! What is known of registers and of the frame at one instruction.

use super::operation::{FRAME, Operand, Place};

/// What is known of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterFact {
    /// Nothing.
    Any,
    /// The number.
    Number(u64),
    /// As much more than another register, which has not changed since.
    Near { register: u8, distance: i32 },
}

/// The frame has 512 bytes, in words of four.
const WORDS: usize = 128;

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
        for other in &mut self.registers {
            if matches!(other, RegisterFact::Near { register: of, .. } if *of == register) {
                *other = RegisterFact::Any;
            }
        }
        // What is said by itself says nothing.
        let value = match value {
            RegisterFact::Near { register: of, .. } if of == register => RegisterFact::Any,
            value => value,
        };
        if let Some(known) = self.registers.get_mut(usize::from(register)) {
            *known = value;
        }
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
        let word = |offset| self.word(word_of(offset)?);
        match (place.base, bytes) {
            (FRAME, 4) => Some(u64::from(word(place.offset)?)),
            (FRAME, 8) => {
                Some(u64::from(word(place.offset.saturating_add(4))?) << 32 | u64::from(word(place.offset)?))
            }
            _ => None,
        }
    }

    /// Sets what is known of a place that is written, if it is one of the frame.
    pub fn store(&mut self, place: Place, bytes: u8, number: Option<u64>) {
        if place.base != FRAME {
            return;
        }
        for (index, offset) in
            (place.offset..place.offset.saturating_add(bytes.into())).step_by(4).enumerate()
        {
            // A store that is not of whole words changes one or two in part.
            let in_words = bytes >= 4 && word_of(offset).is_some();
            let known = number.filter(|_| in_words).map(|number| (number >> (32 * index)) as u32);
            for offset in [offset, offset.saturating_add(3)] {
                let word = (i32::from(offset) + 512).div_euclid(4);
                if let Some(word) = usize::try_from(word).ok().filter(|word| *word < WORDS) {
                    self.set_word(word, known);
                }
            }
        }
    }
}

/// Returns the index of the word of the frame that begins at this offset.
fn word_of(offset: i16) -> Option<usize> {
    let from_start = usize::try_from(i32::from(offset) + 512).ok()?;
    (offset < 0 && offset % 4 == 0).then_some(from_start / 4)
}
