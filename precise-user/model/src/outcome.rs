//! The outcome of a branch, or of an instruction fetch.

use precise_common::{cell::Class, ibs::OutcomeBits as Bits};

/// The outcome of an op or a fetch: the hardware's bits, limited to those that the run groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// [`precise_common::ibs::OutcomeBits`] of an op.
    Op(u64),
    /// [`precise_common::ibs::OutcomeBits`] of a fetch.
    Fetch(u64),
}

/// The words for each bit that is set, for an op that is a branch, and for a fetch.
const OF_BRANCH: &[(u64, &str)] =
    &[(Bits::MISPREDICTED, "mispredicted"), (Bits::FUSED, "fused"), (Bits::MICROCODE, "microcode")];
const OF_FETCH: &[(u64, &str)] = &[
    (Bits::UNKNOWN, "IC unknown"),
    (Bits::IC_MISS, "IC miss"),
    (Bits::FETCH_L2_MISS, "L2 miss"),
    (Bits::FETCH_L3_MISS, "L3 miss"),
    (Bits::OP_CACHE_MISS, "op cache miss"),
    (Bits::ITLB_L2_MISS, "ITLB walk"),
];

impl Outcome {
    /// Returns the outcome of a cell; `None` if it has none.
    pub fn of(class: Class) -> Option<Self> {
        let op = class.op_outcome().map(|outcome| Self::Op(outcome.0));
        op.or_else(|| class.fetch_outcome().map(|outcome| Self::Fetch(outcome.0)))
    }

    /// Returns the hardware's bits.
    pub const fn bits(self) -> u64 {
        match self {
            Self::Op(bits) | Self::Fetch(bits) => bits,
        }
    }

    /// Returns the outcome limited to the bits that [`Outcome::words`] prints, so that two outcomes
    /// with the same words are equal.
    pub const fn said(self) -> Self {
        match self {
            Self::Op(bits) if bits & Bits::BRANCH == 0 => Self::Op(0),
            Self::Op(bits) => Self::Op(bits & Bits::OF_BRANCH),
            Self::Fetch(bits) => {
                // A miss in the L2 TLB implies one in the L1 TLB. The words do not include whether
                // an address is valid, or how large its page is.
                let one = if bits & Bits::ITLB_L2_MISS == 0 { 0 } else { Bits::ITLB_L1_MISS };
                Self::Fetch((bits | one) & Bits::OF_FETCH & !Bits::PHYSICAL_VALID & !Bits::FETCH_PAGE)
            }
        }
    }

    /// Returns the outcome in words, most important first: "taken, mispredicted", "aborted, IC
    /// miss, ITLB walk".
    pub fn words(self) -> String {
        let bits = Bits(self.bits());
        let (mut words, more) = match self {
            Self::Op(_) if !bits.has(Bits::BRANCH) => return "not a branch".to_owned(),
            Self::Op(_) => {
                let taken = if bits.has(Bits::TAKEN) { "taken" } else { "not taken" };
                (vec![if bits.has(Bits::RETURN) { "return" } else { taken }], OF_BRANCH)
            }
            Self::Fetch(_) => {
                (vec![if bits.has(Bits::COMPLETED) { "completed" } else { "aborted" }], OF_FETCH)
            }
        };
        words.extend(more.iter().filter(|(bit, _)| bits.has(*bit)).map(|(_, word)| *word));
        if bits.has(Bits::ITLB_L1_MISS) && !bits.has(Bits::ITLB_L2_MISS) && matches!(self, Self::Fetch(_)) {
            words.push("L2 ITLB hit");
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_in_words() {
        let branch = |bits| Outcome::Op(Bits::BRANCH | bits).words();
        assert_eq!(branch(Bits::TAKEN | Bits::MISPREDICTED), "taken, mispredicted");
        assert_eq!(branch(0), "not taken");
        assert_eq!(branch(Bits::TAKEN | Bits::RETURN), "return");
        assert_eq!(Outcome::Op(Bits::LOAD).words(), "not a branch");
        let fetch = |bits| Outcome::Fetch(bits).words();
        assert_eq!(fetch(Bits::COMPLETED), "completed");
        assert_eq!(
            fetch(Bits::IC_MISS | Bits::ITLB_L1_MISS | Bits::ITLB_L2_MISS),
            "aborted, IC miss, ITLB walk"
        );
        assert_eq!(fetch(Bits::COMPLETED | Bits::ITLB_L1_MISS), "completed, L2 ITLB hit");
    }

    #[test]
    fn what_reads_the_same_is_the_same() {
        assert_eq!(Outcome::Op(Bits::LOAD | Bits::LOCKED).said(), Outcome::Op(Bits::STORE).said());
        assert_eq!(Outcome::Op(Bits::BRANCH | Bits::LOAD).said(), Outcome::Op(Bits::BRANCH));
        let fetches = |bits| Outcome::Fetch(Bits::COMPLETED | bits).said();
        assert_eq!(fetches(Bits::PHYSICAL_VALID), fetches(1 << 4));
        assert_ne!(fetches(Bits::PHYSICAL_VALID), fetches(Bits::IC_MISS));
        for bit in 0..46 {
            for outcome in
                [Outcome::Op(1 << bit | Bits::BRANCH), Outcome::Op(1 << bit), Outcome::Fetch(1 << bit)]
            {
                assert_eq!(outcome.said().words(), outcome.words());
            }
        }
    }
}
