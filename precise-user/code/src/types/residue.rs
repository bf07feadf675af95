//! What is known about a number: the rest that a division leaves.
//!
//! An index that a loop moves is the first one plus a multiple of the step (P. Granger, Static
//! analysis of arithmetical congruences, 1989). Overflow is left out of account.

/// The numbers `rest + n * modulus`, for all `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Residue {
    /// 0 for one number only, 1 for all numbers.
    pub modulus: u64,
    /// At least 0 and less than the modulus, unless that is 0.
    pub rest: i64,
}

impl Residue {
    /// All numbers.
    pub const ANY: Self = Self { modulus: 1, rest: 0 };

    /// Returns one number.
    pub const fn exactly(number: i64) -> Self {
        Self { modulus: 0, rest: number }
    }

    /// Returns the multiples of a number.
    pub fn multiples(of: u64) -> Self {
        Self::new(of, 0)
    }

    fn new(modulus: u64, rest: i64) -> Self {
        match i64::try_from(modulus) {
            Ok(0) => Self { modulus, rest },
            Ok(positive) => Self { modulus, rest: rest.rem_euclid(positive) },
            Err(_) => Self::ANY,
        }
    }

    /// Returns the numbers that are in one of both.
    pub fn or(self, other: Self) -> Self {
        let apart = self.rest.wrapping_sub(other.rest).unsigned_abs();
        Self::new(common(common(self.modulus, other.modulus), apart), self.rest)
    }

    /// Returns the sums.
    pub fn plus(self, other: Self) -> Self {
        Self::new(common(self.modulus, other.modulus), self.rest.wrapping_add(other.rest))
    }

    /// Returns the differences.
    pub fn minus(self, other: Self) -> Self {
        Self::new(common(self.modulus, other.modulus), self.rest.wrapping_sub(other.rest))
    }

    /// Returns the products with a constant.
    pub fn times(self, factor: u32) -> Self {
        match (self.modulus.checked_mul(u64::from(factor)), self.rest.checked_mul(i64::from(factor))) {
            (Some(modulus), Some(rest)) => Self::new(modulus, rest),
            // What is left of a product that is too large: its zeros at the end.
            _ => Self::multiples(1 << factor.trailing_zeros().min(31)),
        }
    }

    /// Returns the numbers after arithmetic of 32 bits, which may have wrapped around: multiples
    /// stay multiples of a power of two.
    pub fn cut(self) -> Self {
        if self.modulus == 0 && u32::try_from(self.rest).is_ok() {
            return self;
        }
        Self::multiples(common(self.modulus, self.rest.unsigned_abs()))
    }
}

/// Returns the greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_its_first_value_plus_a_multiple_of_the_step() {
        let first = Residue::exactly(0xa000);
        let next = first.plus(Residue::exactly(0x10000));
        let all = first.or(next);
        assert_eq!(all, Residue { modulus: 0x10000, rest: 0xa000 });
        assert_eq!(all.or(next.plus(Residue::exactly(0x10000))), all);
        assert_eq!(all.minus(Residue::exactly(0xa000)), Residue::multiples(0x10000));
        assert_eq!(all.minus(Residue::exactly(0xb000)), Residue { modulus: 0x10000, rest: 0xf000 });
        assert_eq!(all.times(2), Residue { modulus: 0x20000, rest: 0x14000 });
        assert_eq!(all.plus(Residue::ANY), Residue::ANY);
        assert_eq!(Residue::exactly(8).or(Residue::exactly(8)), Residue::exactly(8));
        assert_eq!(Residue::exactly(i64::MIN).or(Residue::exactly(i64::MAX)), Residue::ANY);
    }

    #[test]
    fn what_is_too_large_keeps_its_zeros_at_the_end() {
        assert_eq!(Residue::exactly(i64::MAX).times(24), Residue::multiples(8));
        assert_eq!(Residue::exactly(-16).cut(), Residue::multiples(16));
        assert_eq!(Residue { modulus: 24, rest: 16 }.cut(), Residue::multiples(8));
        assert_eq!(Residue::exactly(12).cut(), Residue::exactly(12));
    }
}
