//! The tests that one slot, or a few slots of one clause, can make, and the algebra that merges
//! them and finds contradictions.

use precise_common::config::{compare, operand};

/// A set of numbers as ranges with both ends included: sorted, with a gap between neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbers(Vec<(u64, u64)>);

impl Numbers {
    /// Returns the numbers of `ranges` that are at most `max`.
    pub fn new(mut ranges: Vec<(u64, u64)>, max: u64) -> Self {
        ranges.retain(|(low, high)| low <= high && *low <= max);
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (low, high) in ranges {
            let high = high.min(max);
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    pub fn complement(&self, max: u64) -> Self {
        let mut gaps = Vec::new();
        let mut next = Some(0);
        for &(low, high) in &self.0 {
            if let Some(from) = next
                && from < low
            {
                gaps.push((from, low - 1));
            }
            next = high.checked_add(1);
        }
        gaps.extend(next.map(|from| (from, max)));
        Self::new(gaps, max)
    }

    fn union(&self, other: &Self) -> Self {
        Self::new([self.ranges(), other.ranges()].concat(), u64::MAX)
    }

    fn intersection(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(|b| (a.0.max(b.0), a.1.min(b.1))));
        Self::new(pairs.collect(), u64::MAX)
    }
}

/// A test, or its opposite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    /// A number is in `numbers`; `max` is the largest possible number.
    Number { operand: u32, max: u64, numbers: Numbers },
    /// Six bits of the data source, from bit `shift` on, read as a number, are in `set`.
    Window { shift: u32, set: u64 },
    /// At least one of the bits of `mask` is set, or, if `negated`, none is.
    Bits { operand: u32, mask: u64, negated: bool },
    /// A value equals (`low`, `high`): a process name, or the task's cgroup or an ancestor of it.
    Same { operand: u32, low: u64, high: u64, negated: bool },
}

/// The result of joining two tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// One test that replaces both.
    One(Atom),
    /// The tests stay separate.
    Two,
}

impl Atom {
    pub fn opposite(&self) -> Self {
        let mut opposite = self.clone();
        match &mut opposite {
            Self::Number { max, numbers, .. } => *numbers = numbers.complement(*max),
            Self::Window { set, .. } => *set = !*set,
            Self::Bits { negated, .. } | Self::Same { negated, .. } => *negated = !*negated,
        }
        opposite
    }

    /// Returns whether no sample passes.
    pub fn is_never(&self) -> bool {
        match self {
            Self::Number { numbers, .. } => numbers.ranges().is_empty(),
            Self::Window { set, .. } => *set == 0,
            Self::Bits { mask, negated, .. } => *mask == 0 && !negated,
            Self::Same { .. } => false,
        }
    }

    /// Returns whether every sample passes.
    pub fn is_always(&self) -> bool {
        self.opposite().is_never()
    }

    /// A test that no sample passes. The choice of the operand does not matter.
    const NEVER: Self = Self::Window { shift: 0, set: 0 };

    /// Joins two tests that must both hold.
    pub fn and(&self, other: &Self) -> Joined {
        match (self, other) {
            (never, _) | (_, never) if never.is_never() => Joined::One(never.clone()),
            (always, rest) | (rest, always) if always.is_always() => Joined::One(rest.clone()),
            (
                Self::Number { operand, max, numbers },
                Self::Number { operand: other_operand, numbers: other_numbers, .. },
            ) if operand == other_operand => Joined::One(Self::Number {
                operand: *operand,
                max: *max,
                numbers: numbers.intersection(other_numbers),
            }),
            (Self::Window { shift, set }, Self::Window { shift: other_shift, set: other_set })
                if shift == other_shift =>
            {
                Joined::One(Self::Window { shift: *shift, set: set & other_set })
            }
            (
                Self::Bits { operand, mask, negated },
                Self::Bits { operand: other_operand, mask: other_mask, negated: other_negated },
            ) if operand == other_operand => match (negated, other_negated) {
                (true, true) => {
                    Joined::One(Self::Bits { operand: *operand, mask: mask | other_mask, negated: true })
                }
                (false, false) if mask == other_mask => Joined::One(self.clone()),
                (false, true) if mask & !other_mask == 0 => Joined::One(Self::NEVER),
                (true, false) if other_mask & !mask == 0 => Joined::One(Self::NEVER),
                _ => Joined::Two,
            },
            (
                Self::Same { operand, low, high, negated },
                Self::Same {
                    operand: other_operand,
                    low: other_low,
                    high: other_high,
                    negated: other_negated,
                },
            ) if operand == other_operand => {
                let same = (low, high) == (other_low, other_high);
                // A process has one name. A cgroup has one ancestor at each level (`high`).
                let exclusive = !same && (*operand == operand::COMM || high == other_high);
                match (negated, other_negated) {
                    (false, false) if exclusive => Joined::One(Self::NEVER),
                    (false, true) if exclusive => Joined::One(self.clone()),
                    (true, false) if exclusive => Joined::One(other.clone()),
                    _ if same && negated == other_negated => Joined::One(self.clone()),
                    _ if same => Joined::One(Self::NEVER),
                    _ => Joined::Two,
                }
            }
            _ => Joined::Two,
        }
    }

    /// Joins two tests of which at least one must hold.
    pub fn or(&self, other: &Self) -> Joined {
        match (self, other) {
            // Avoids two complements, each as long as the numbers.
            (
                Self::Number { operand, max, numbers },
                Self::Number { operand: other_operand, numbers: other_numbers, .. },
            ) if operand == other_operand => Joined::One(Self::Number {
                operand: *operand,
                max: *max,
                numbers: numbers.union(other_numbers),
            }),
            _ => match self.opposite().and(&other.opposite()) {
                Joined::One(neither) => Joined::One(neither.opposite()),
                Joined::Two => Joined::Two,
            },
        }
    }

    /// Returns the compares of this test in a clause: (operand, compare, low, high).
    pub fn compares(&self) -> Vec<(u32, u32, u64, u64)> {
        let not = |negated: &bool| if *negated { compare::NOT } else { 0 };
        match self {
            Self::Number { operand, max, numbers } => match numbers.complement(*max).ranges() {
                [(low, high)] if numbers.ranges().len() > 1 => {
                    vec![(*operand, compare::RANGE | compare::NOT, *low, *high)]
                }
                _ => numbers
                    .ranges()
                    .iter()
                    .map(|(low, high)| (*operand, compare::RANGE, *low, *high))
                    .collect(),
            },
            Self::Window { shift, set } => {
                vec![(operand::DATA_SRC, compare::IN_SET, u64::from(*shift), *set)]
            }
            Self::Bits { operand, mask, negated } => {
                vec![(*operand, compare::ANY_BIT | not(negated), *mask, 0)]
            }
            Self::Same { operand, low, high, negated } => vec![(*operand, not(negated), *low, *high)],
        }
    }

    /// Returns the same test as two compares that must both hold: a range that contains all
    /// numbers, and a set of 64 blocks inside of it. `None` unless the numbers are close enough to
    /// each other.
    pub fn as_set(&self) -> Option<[(u32, u32, u64, u64); 2]> {
        let Self::Number { operand, numbers, .. } = self else { return None };
        let (first, last) = (numbers.ranges().first()?.0, numbers.ranges().last()?.1);
        let aligned = |n: u64| if n == 0 { 63 } else { n.trailing_zeros() };
        let edges =
            numbers.ranges().iter().flat_map(|(low, high)| [aligned(*low), aligned(high.wrapping_add(1))]);
        let shift = edges.min()?.min(58);
        // The residues of 64 consecutive blocks are all different, wherever they begin.
        let (first_block, last_block) = (first >> shift, last >> shift);
        if last_block - first_block > 63 {
            return None;
        }
        let mut set = 0;
        for (low, high) in numbers.ranges() {
            for block in (low >> shift)..=(high >> shift) {
                set |= 1 << (block & 63);
            }
        }
        Some([(*operand, compare::RANGE, first, last), (*operand, compare::IN_SET, u64::from(shift), set)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_a_set_algebra() {
        let a = Numbers::new(vec![(5, 9), (1, 2), (3, 4), (20, u64::MAX)], u64::MAX);
        assert_eq!(a.ranges(), [(1, 9), (20, u64::MAX)]);
        assert_eq!(a.complement(u64::MAX).ranges(), [(0, 0), (10, 19)]);
        assert_eq!(a.complement(u64::MAX).complement(u64::MAX), a);
        assert_eq!(Numbers::new(vec![(0, 90)], 7).ranges(), [(0, 7)]);
        assert_eq!(Numbers::new(vec![], 7).complement(7).ranges(), [(0, 7)]);
        assert!(Numbers::new(vec![(0, 7)], 7).complement(7).ranges().is_empty());
    }

    #[test]
    fn a_set_over_a_residue_border() {
        let numbers = Numbers::new(vec![(60, 60), (62, 62), (64, 64), (66, 66)], u64::MAX);
        let atom = Atom::Number { operand: operand::CPU, max: u64::MAX, numbers };
        let set = 1 << 60 | 1 << 62 | 1 | 1 << 2;
        assert_eq!(
            atom.as_set(),
            Some([(operand::CPU, compare::RANGE, 60, 66), (operand::CPU, compare::IN_SET, 0, set)])
        );
    }
}
