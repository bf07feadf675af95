//! Unwinding of user stacks without frame pointers: the tables that user space publishes, and the
//! step from a frame to its caller, which the BPF program and user space share.
//!
//! User space makes a table of each binary from its `.eh_frame` or `.debug_frame` section, and
//! writes the tables into arrays of shared memory. The program finds the rule of an address in
//! four steps, each in one array:
//!
//! ```text
//! process id ─► Process ─► Region (one mapping) ─► Page (64 KiB of the file) ─► row ─► Rule
//! ```
//!
//! * A **row** is four bytes: the lower 16 bits of the address from which on it holds, and the
//!   number of its rule ([`row`]). It holds until the next row. An element of a BPF array is a
//!   multiple of eight bytes, so two rows share an element.
//! * A **page** is the 64 KiB of addresses that share their upper bits. The rows of all pages of a
//!   table lie behind each other, and the first row of a table has the lowest address of its first
//!   page. So the last row of a page without a smaller one is found in the page before it, and
//!   never in another table.
//! * A **region** is one executable mapping of a process. Regions of a process are sorted.
//! * Rules repeat: a few thousand serve all binaries of a machine, and all tables share them.
//!
//! Addresses of a table are those of the ELF file (`p_vaddr`), so that all processes that map a
//! file share its table.

mod end;
mod walk;

pub use end::End;
pub use walk::{Memory, UnwindFrame, find_region, find_rule, step};

/// The number of bits of an address within a page of a table.
pub const PAGE_BITS: u32 = 16;

/// How the canonical frame address (CFA) of a frame is computed: values of [`Rule::kind`].
pub mod kind {
    /// No unwind information covers the address.
    pub const GAP: u8 = 0;
    /// The function has no caller: the return address is undefined.
    pub const ROOT: u8 = 1;
    /// There is a rule, which is of a form that the program does not evaluate.
    pub const UNSUPPORTED: u8 = 2;
    /// A signal frame: the interrupted registers lie above the stack pointer, where the kernel
    /// wrote them (`struct rt_sigframe` of arch/x86/include/asm/sigframe.h).
    pub const SIGNAL: u8 = 3;
    /// An entry of a procedure linkage table: CFA = rsp + 8, and 8 more if the lower four bits of
    /// the address are at least [`super::Rule::extra`].
    pub const PLT: u8 = 4;
    /// CFA = rsp + offset.
    pub const SP: u8 = 5;
    /// CFA = rbp + offset.
    pub const BP: u8 = 6;
    /// CFA = the word at rsp + offset, plus [`super::Rule::extra`].
    pub const SP_DEREF: u8 = 7;
    /// CFA = the word at rbp + offset, plus [`super::Rule::extra`].
    pub const BP_DEREF: u8 = 8;
}

/// Where the caller's rbp is: values of [`Rule::bp`].
pub mod bp {
    /// In rbp: the function has not changed it.
    pub const SAME: u8 = 0;
    /// In the word at CFA + offset.
    pub const AT_CFA: u8 = 1;
    /// In the word at rbp + offset.
    pub const AT_BP: u8 = 2;
    /// Nowhere: a caller that needs it cannot be unwound.
    pub const LOST: u8 = 3;
}

/// How to get from a frame to its caller, in one word. The return address is at CFA − 8.
///
/// | bits | content |
/// | --- | --- |
/// | 0–3 | [`kind`] |
/// | 4–7 | [`bp`] |
/// | 8–15 | extra, without sign |
/// | 16–31 | offset of rbp, with sign |
/// | 32–63 | offset of the CFA, with sign |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rule(pub u64);

impl Rule {
    /// No unwind information covers the address.
    pub const GAP: Self = Self::plain(kind::GAP);
    /// The function has no caller.
    pub const ROOT: Self = Self::plain(kind::ROOT);
    /// The rule is of a form that the program does not evaluate.
    pub const UNSUPPORTED: Self = Self::plain(kind::UNSUPPORTED);
    /// A signal frame.
    pub const SIGNAL: Self = Self::plain(kind::SIGNAL);

    const fn plain(kind: u8) -> Self {
        Self(kind as u64)
    }

    /// Packs a rule.
    pub const fn pack(kind: u8, offset: i32, extra: u8, bp: u8, bp_offset: i16) -> Self {
        Self(
            (kind & 15) as u64
                | ((bp & 15) as u64) << 4
                | (extra as u64) << 8
                | (bp_offset as u16 as u64) << 16
                | (offset as u32 as u64) << 32,
        )
    }

    /// Returns the [`kind`].
    #[inline(always)]
    pub const fn kind(self) -> u8 {
        (self.0 & 15) as u8
    }

    /// Returns the [`bp`].
    #[inline(always)]
    pub const fn bp(self) -> u8 {
        (self.0 >> 4 & 15) as u8
    }

    /// Returns the extra number, whose meaning depends on the kind.
    #[inline(always)]
    pub const fn extra(self) -> u64 {
        self.0 >> 8 & 0xff
    }

    /// Returns the offset of the saved rbp, in bytes.
    #[inline(always)]
    pub const fn bp_offset(self) -> u64 {
        (self.0 as i64 >> 16) as i16 as i64 as u64
    }

    /// Returns the offset of the CFA, in bytes.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        (self.0 as i64 >> 32) as u64
    }
}

/// A row of a table: from which address on which rule holds.
pub mod row {
    /// Packs the lower 16 bits of an address and the number of a rule.
    pub const fn pack(low: u16, rule: u16) -> u32 {
        low as u32 | (rule as u32) << 16
    }

    /// Returns the lower 16 bits of the address.
    #[inline(always)]
    pub const fn low(row: u32) -> u32 {
        row & 0xffff
    }

    /// Returns the number of the rule.
    #[inline(always)]
    pub const fn rule(row: u32) -> u32 {
        row >> 16
    }
}

/// A process: the word of its identity, and the word of its regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Process {
    /// The process id, and in the upper half the generation of the entry. 0: a free entry. The
    /// generation is odd while user space changes the entry. Its upper bits are the number of the
    /// program ([`program`]).
    pub identity: u64,
    /// The [`span`] of its regions.
    pub regions: u64,
}

/// The number of a program of a process: how often the process has executed another one since it
/// became known, modulo the largest number. The end of a chain has it, so that user space knows by
/// the mappings of which program the chain was unwound: the process may have executed another one
/// a moment before.
pub mod program {
    /// No number: the chain was not unwound by the mappings of a process.
    pub const NONE: u8 = 0;
    /// The number of a process that has executed no other program.
    pub const FIRST: u8 = 1;
    /// The largest number.
    pub const LAST: u8 = 63;
    /// The first bit of the number in [`super::Process::identity`].
    pub const SHIFT: u32 = 58;

    /// Returns the number of the program that is executed after another one.
    pub const fn next(program: u8) -> u8 {
        if program >= LAST { FIRST } else { program + 1 }
    }
}

/// The largest number of regions of a process that are searched.
pub const MAX_REGIONS: u32 = (1 << 13) - 1;

/// Returns the index at which the probe number `probe`, below [`crate::config::PROBES`], looks for
/// a process in a table of `mask` + 1 entries.
#[inline(always)]
pub const fn process_index(pid: u32, probe: u32, mask: u32) -> u32 {
    (pid.wrapping_mul(0x9e37_79b1) >> 7).wrapping_add(probe) & mask
}

/// What is known about the code of a region: values of [`Region::kind`].
pub mod region {
    /// Nobody has looked yet: a table may come.
    pub const NOT_YET: u32 = 0;
    /// There is a table.
    pub const TABLE: u32 = 1;
    /// Code without a table that keeps frame pointers: of a compiler at run time, or of Go.
    pub const FRAME_POINTERS: u32 = 2;
    /// The file has no table, or one that cannot be read, or there is no room for it.
    pub const NO_TABLE: u32 = 3;
    /// As [`NOT_YET`]; until then, frame pointers are followed.
    pub const GUESSED: u32 = 4;
}

/// One executable mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// The difference between a runtime address and the address in the ELF file.
    pub bias: u64,
    /// The [`span`] of the pages.
    pub pages: u64,
    /// The number of the first page: its address in the ELF file, shifted by [`PAGE_BITS`].
    pub first: u32,
    /// What is known about the code; see [`region`].
    pub kind: u32,
}

impl Region {
    /// All of user space, as code that nobody has looked at yet.
    pub const GUESSED: Self =
        Self { start: 0, end: 1 << 63, bias: 0, pages: 0, first: 0, kind: region::GUESSED };
}

const _: () = assert!(size_of::<Process>() == 16);
const _: () = assert!(size_of::<Region>() == 40);

/// Adjacent elements of an array, in one word.
///
/// | bits | content |
/// | --- | --- |
/// | 0–31 | the index of the first |
/// | 32–55 | their number |
/// | 56–63 | the number of bits of their number, which is the number of steps of a search |
pub mod span {
    const COUNT: u32 = (1 << 24) - 1;

    /// Packs an index and a number, which is at most 2²⁴ − 1.
    pub const fn pack(first: u32, count: u32) -> u64 {
        let count = if count > COUNT { COUNT } else { count };
        first as u64 | (count as u64) << 32 | ((u32::BITS - count.leading_zeros()) as u64) << 56
    }

    /// Returns the index of the first element.
    #[inline(always)]
    pub const fn first(span: u64) -> u32 {
        span as u32
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub const fn count(span: u64) -> u64 {
        span >> 32 & COUNT as u64
    }

    /// Returns the largest power of two that is not above the number of elements; 0 if there are
    /// none.
    #[inline(always)]
    pub const fn top(span: u64) -> u64 {
        (1 << (span >> 56 & 31)) >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_their_packing() {
        let rule = Rule::pack(kind::BP_DEREF, -8, 200, bp::AT_BP, -16);
        assert_eq!((rule.kind(), rule.bp(), rule.extra()), (kind::BP_DEREF, bp::AT_BP, 200));
        assert_eq!((rule.offset() as i64, rule.bp_offset() as i64), (-8, -16));
    }
}
