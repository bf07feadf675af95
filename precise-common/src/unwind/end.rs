//! Why a chain has no further frame.

use super::program;

/// Why a chain has no further frame.
///
/// A chain ends with one of these as its last entry, as a marker ([`End::marker`]) that is no
/// address. So the reason is part of the chain's id, and the chains of a capture can be counted by
/// it. The numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum End {
    /// The outermost function: the chain is whole.
    Root = 1,
    /// The stack could not be read.
    Fault = 2,
    /// The address belongs to no mapping that is known.
    NoRegion = 3,
    /// The mapping has no unwind table.
    NoTable = 4,
    /// The rule of the table is of a form that is not evaluated.
    Unsupported = 5,
    /// The chain has more frames than are kept.
    TooDeep = 6,
    /// The process changed its mappings while the chain was taken.
    Changed = 7,
    /// The process, or the table of the mapping, is not known yet.
    NotYet = 8,
    /// The task has no user stack: a thread of the kernel, or a task that is ending.
    KernelOnly = 9,
    /// The caller's frame would not lie above the frame.
    Stuck = 10,
    /// A return address has no call instruction before it. Found when the chain is named.
    NoCall = 11,
    /// The caller's frame lies above the copy of the stack that was taken. Only where a copy is
    /// unwound, and not the stack itself.
    CopyEnded = 12,
    /// The kernel was to unwind the stack later, on the task's return to user space, and no record
    /// of that came. Only in recordings.
    Deferred = 13,
}

impl End {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Root,
        Self::Fault,
        Self::NoRegion,
        Self::NoTable,
        Self::Unsupported,
        Self::TooDeep,
        Self::Changed,
        Self::NotYet,
        Self::KernelOnly,
        Self::Stuck,
        Self::NoCall,
        Self::CopyEnded,
        Self::Deferred,
    ];

    /// The marker before the first without a program: the markers of the kernel are multiples of
    /// 128.
    const BASE: u64 = -2000_i64 as u64;
    /// The marker before the first of program 0. The markers of the kernel are greater than those
    /// of all programs.
    const PROGRAMS: u64 = -4090_i64 as u64;
    /// The number of markers of a program.
    const REASONS: u64 = 16;

    /// Returns the entry that ends a chain with this reason, and that tells no program.
    #[inline(always)]
    pub const fn marker(self) -> u64 {
        Self::marker_of(self as u64, program::NONE as u64)
    }

    /// Returns the entry that ends a chain with the reason of this number, unwound by the mappings
    /// of this [`program`].
    #[inline(always)]
    pub const fn marker_of(number: u64, program: u64) -> u64 {
        if program == program::NONE as u64 {
            Self::BASE + number
        } else {
            Self::PROGRAMS + program * Self::REASONS + number
        }
    }

    /// Returns the reason of an entry, and the program; `None` if it is no end of a chain.
    pub fn of_marker(entry: u64) -> Option<(Self, u8)> {
        let of_program = entry.wrapping_sub(Self::PROGRAMS);
        let program = of_program / Self::REASONS;
        let (number, program) = match program {
            1.. if program <= program::LAST as u64 => (of_program % Self::REASONS, program as u8),
            _ => (entry.wrapping_sub(Self::BASE), program::NONE),
        };
        Some((Self::ALL.into_iter().find(|end| *end as u64 == number)?, program))
    }
}

const _: () = assert!(End::ALL.len() < End::REASONS as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_markers_that_the_kernel_does_not_use() {
        use crate::stack::{CONTEXT_FIRST, CONTEXT_KERNEL, CONTEXT_USER};
        for (at, end) in End::ALL.into_iter().enumerate() {
            assert_eq!(end as usize, at + 1);
            for program in [program::NONE, program::FIRST, 40, program::LAST] {
                let marker = End::marker_of(end as u64, u64::from(program));
                assert_eq!(End::of_marker(marker), Some((end, program)));
                assert!(marker >= CONTEXT_FIRST);
            }
        }
        assert!([CONTEXT_KERNEL, CONTEXT_USER, 0, End::BASE].iter().all(|m| End::of_marker(*m).is_none()));
    }
}
