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
/// The number of steps in which an element is found among 2¹⁷ − 1. A page has at most 65,536 rows:
/// one for each address.
const STEPS: u32 = 17;

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

/// What a step reads. The program reads BPF arrays and the memory of the task; tests read their
/// own.
pub trait Memory {
    /// Returns a region by its index.
    fn region(&self, index: u32) -> Option<Region>;
    /// Returns the first address of a region by its index.
    fn region_start(&self, index: u32) -> Option<u64> {
        self.region(index).map(|region| region.start)
    }
    /// Returns a page by its index: the [`span`] of its rows.
    fn page(&self, index: u32) -> Option<u64>;
    /// Returns two rows: those with twice the index, and with twice the index plus one.
    fn rows(&self, index: u32) -> Option<u64>;
    /// Returns a rule by its number.
    fn rule(&self, index: u32) -> Option<Rule>;
    /// Reads a word of the task's memory.
    fn word(&self, address: u64) -> Option<u64>;
    /// Reads two adjacent words of the task's memory.
    fn words(&self, address: u64) -> Option<[u64; 2]>;
}

/// The state between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct UnwindFrame {
    /// The instruction: of the innermost frame the next one to execute, of the others the one
    /// after the call.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer register. 0 if it is lost.
    pub bp: u64,
    /// Whether `ip` is the address of an instruction that was interrupted: in the innermost frame,
    /// and in the frame that a signal interrupted.
    pub exact: u64,
    /// The region in which the frame before this one was found.
    pub region: Region,
}

/// The offsets of the interrupted registers from the stack pointer in a signal frame:
/// `rt_sigframe.uc.uc_mcontext` (arch/x86/include/uapi/asm/sigcontext.h), behind the return
/// address, which the handler's return has taken.
mod signal {
    pub const BP: u64 = 40 + 10 * 8;
    /// The instruction pointer is in the next word.
    pub const SP: u64 = 40 + 15 * 8;
}

/// The largest distance between a frame pointer and the one before it. Code without a table may
/// use rbp for anything.
const FRAME_LIMIT: u64 = 1 << 20;

/// Returns the index of the last element of a sorted span for which `at_most` is 1 and not 0;
/// `None` if there is none, or if an element cannot be read.
///
/// No branch depends on an element. The verifier would follow both sides of each, and a CPU would
/// guess every second one wrong.
#[inline(always)]
fn search(span: u64, at_most: impl Fn(u32) -> Option<u64>) -> Option<u32> {
    let (mut step, mut found) = (span::top(span), 0u64);
    for _ in 0..STEPS {
        if step == 0 {
            break;
        }
        let next = found + step;
        // 1 if there are fewer elements: then the first one is read instead.
        let beyond = span::count(span).wrapping_sub(next) >> 63;
        let offset = (next - 1) & beyond.wrapping_sub(1);
        let passes = at_most(span::first(span).wrapping_add(offset as u32))? & (beyond ^ 1);
        found += step & passes.wrapping_neg();
        step >>= 1;
    }
    if found == 0 {
        return None;
    }
    Some(span::first(span).wrapping_add(found as u32).wrapping_sub(1))
}

/// Returns 1 if `a` is at most `b`, and 0 otherwise. The two are less than 2⁶³ apart.
#[inline(always)]
const fn at_most(a: u64, b: u64) -> u64 {
    b.wrapping_sub(a) >> 63 ^ 1
}

/// Finds the region of an address among those of a process; `None` if there is none.
#[inline(always)]
pub fn find_region(memory: &impl Memory, regions: u64, address: u64) -> Option<Region> {
    let index = search(regions, |index| Some(at_most(memory.region_start(index)?, address)))?;
    let found = memory.region(index)?;
    if address < found.end { Some(found) } else { None }
}

/// Finds the rule of an address of the ELF file in the table of a region.
#[inline(always)]
pub fn find_rule(memory: &impl Memory, region: &Region, address: u64) -> Option<Rule> {
    let page = (address >> PAGE_BITS).wrapping_sub(region.first as u64);
    if page >= span::count(region.pages) {
        return None;
    }
    let rows = memory.page(span::first(region.pages).wrapping_add(page as u32))?;
    let low = address & 0xffff;
    let row = |index: u32| Some((memory.rows(index >> 1)? >> ((index & 1) * 32)) as u32);
    let index = match search(rows, |index| Some(at_most(row::low(row(index)?) as u64, low))) {
        Some(index) => index,
        // The last row of the page before still holds.
        None => span::first(rows).checked_sub(1)?,
    };
    memory.rule(row::rule(row(index)?))
}

/// Goes from a frame to its caller. On an end, the frame stays as it is.
///
/// # Errors
///
/// Returns why there is no caller.
#[inline(always)]
pub fn step(memory: &impl Memory, regions: u64, frame: &mut UnwindFrame) -> Result<(), End> {
    // Whatever a guess ends with says nothing about the code.
    known_step(memory, regions, frame)
        .map_err(|end| if frame.region.kind == region::GUESSED { End::NotYet } else { end })
}

#[inline(always)]
fn known_step(memory: &impl Memory, regions: u64, frame: &mut UnwindFrame) -> Result<(), End> {
    // A call may be the last instruction of its function, so that the return address belongs to
    // the next one.
    let pc = frame.ip.wrapping_sub(1 - (frame.exact & 1));
    if pc < frame.region.start || pc >= frame.region.end {
        frame.region = find_region(memory, regions, pc).ok_or(End::NoRegion)?;
    }
    let rule = match frame.region.kind {
        region::TABLE => {
            let address = pc.wrapping_sub(frame.region.bias);
            find_rule(memory, &frame.region, address).ok_or(End::NoTable)?
        }
        region::FRAME_POINTERS => return by_frame_pointer(memory, frame),
        region::GUESSED => {
            // A table from here on would take a guess for a fact.
            frame.region = Region::GUESSED;
            return by_frame_pointer(memory, frame);
        }
        region::NOT_YET => return Err(End::NotYet),
        _ => return Err(End::NoTable),
    };
    follow(memory, rule, pc, frame)
}

/// Applies a rule to a frame at `pc`.
#[inline(always)]
fn follow(memory: &impl Memory, rule: Rule, pc: u64, frame: &mut UnwindFrame) -> Result<(), End> {
    let base = match rule.kind() {
        kind::SP | kind::SP_DEREF => frame.sp.wrapping_add(rule.offset()),
        kind::BP | kind::BP_DEREF => {
            if frame.bp == 0 {
                return Err(End::Unsupported);
            }
            frame.bp.wrapping_add(rule.offset())
        }
        kind::PLT => frame.sp.wrapping_add(if pc & 15 >= rule.extra() { 16 } else { 8 }),
        kind::SIGNAL => return interrupted(memory, frame),
        kind::ROOT => return Err(End::Root),
        kind::GAP => return Err(End::NoTable),
        _ => return Err(End::Unsupported),
    };
    let cfa = match rule.kind() {
        kind::SP_DEREF | kind::BP_DEREF => memory.word(base).ok_or(End::Fault)?.wrapping_add(rule.extra()),
        _ => base,
    };
    if cfa <= frame.sp {
        return Err(End::Stuck);
    }
    let saved = match rule.bp() {
        bp::AT_CFA => cfa.wrapping_add(rule.bp_offset()),
        bp::AT_BP => frame.bp.wrapping_add(rule.bp_offset()),
        _ => 0,
    };
    // Most functions that save rbp push it first: one read instead of two.
    let (saved_bp, ip) = if saved == cfa.wrapping_sub(16) {
        let [bp, ip] = memory.words(saved).ok_or(End::Fault)?;
        (bp, ip)
    } else {
        let ip = memory.word(cfa.wrapping_sub(8)).ok_or(End::Fault)?;
        let bp = match rule.bp() {
            bp::SAME => frame.bp,
            bp::LOST => 0,
            _ => memory.word(saved).ok_or(End::Fault)?,
        };
        (bp, ip)
    };
    arrive(frame, ip, cfa, saved_bp, 0)
}

/// Goes to the frame that a signal interrupted.
#[inline(always)]
fn interrupted(memory: &impl Memory, frame: &mut UnwindFrame) -> Result<(), End> {
    let bp = memory.word(frame.sp.wrapping_add(signal::BP)).ok_or(End::Fault)?;
    // The stack pointer may be lower: the handler may run on a stack of its own.
    let [sp, ip] = memory.words(frame.sp.wrapping_add(signal::SP)).ok_or(End::Fault)?;
    arrive(frame, ip, sp, bp, 1)
}

/// Goes to the caller by the frame pointer: rbp points to the caller's rbp, below the return
/// address.
#[inline(always)]
fn by_frame_pointer(memory: &impl Memory, frame: &mut UnwindFrame) -> Result<(), End> {
    // The outermost frame of such code has rbp 0.
    if frame.bp == 0 {
        return Err(End::Root);
    }
    if frame.bp < frame.sp || frame.bp.wrapping_sub(frame.sp) > FRAME_LIMIT {
        return Err(End::Stuck);
    }
    let [bp, ip] = memory.words(frame.bp).ok_or(End::Fault)?;
    arrive(frame, ip, frame.bp.wrapping_add(16), bp, 0)
}

#[inline(always)]
fn arrive(frame: &mut UnwindFrame, ip: u64, sp: u64, bp: u64, exact: u64) -> Result<(), End> {
    // A return address of 0 is how a thread's first function is entered by hand.
    if ip == 0 {
        return Err(End::Root);
    }
    (frame.ip, frame.sp, frame.bp, frame.exact) = (ip, sp, bp, exact);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One table of two pages, mapped at 0x7000_0000, and a stack at 0x1000.
    struct Made {
        rules: [Rule; 6],
        stack: [u64; 16],
    }

    const STACK: u64 = 0x1000;
    const TEXT: u64 = 0x7000_0000;

    impl Memory for Made {
        fn region(&self, index: u32) -> Option<Region> {
            // Two mappings below and one above, to search among.
            let start = TEXT - 0x20_0000 + u64::from(index) * 0x10_0000;
            let region = Region {
                start,
                end: start + 0x2_0000,
                bias: TEXT,
                pages: span::pack(0, 2),
                first: 0,
                kind: region::TABLE,
            };
            (index < 4).then_some(region)
        }

        fn page(&self, index: u32) -> Option<u64> {
            // The second page has no row of its own.
            [span::pack(0, 6), span::pack(6, 0)].get(index as usize).copied()
        }

        fn rows(&self, index: u32) -> Option<u64> {
            let row = |n: u32| u64::from(row::pack(n as u16 * 0x100, n as u16));
            (index < 3).then(|| row(index * 2) | row(index * 2 + 1) << 32)
        }

        fn rule(&self, index: u32) -> Option<Rule> {
            self.rules.get(index as usize).copied()
        }

        fn word(&self, address: u64) -> Option<u64> {
            self.stack.get((address.checked_sub(STACK)? / 8) as usize).copied()
        }

        fn words(&self, address: u64) -> Option<[u64; 2]> {
            Some([self.word(address)?, self.word(address + 8)?])
        }
    }

    fn made() -> Made {
        let mut stack = [0; 16];
        for (at, word) in stack.iter_mut().enumerate() {
            *word = TEXT + at as u64;
        }
        let rules = [
            Rule::GAP,
            Rule::pack(kind::SP, 8, 0, bp::SAME, 0),
            Rule::pack(kind::BP, 16, 0, bp::AT_CFA, -16),
            Rule::pack(kind::PLT, 0, 11, bp::SAME, 0),
            Rule::ROOT,
            Rule::pack(kind::BP_DEREF, -8, 0, bp::AT_BP, 0),
        ];
        Made { rules, stack }
    }

    fn frame(ip: u64, bp: u64) -> UnwindFrame {
        UnwindFrame { ip: TEXT + ip, sp: STACK, bp, exact: 1, region: Region::default() }
    }

    fn after(ip: u64, bp: u64) -> Result<(u64, u64, u64), End> {
        let mut frame = frame(ip, bp);
        step(&made(), span::pack(0, 4), &mut frame)?;
        Ok((frame.ip - TEXT, frame.sp - STACK, frame.bp))
    }

    #[test]
    fn rules_survive_their_packing() {
        let rule = Rule::pack(kind::BP_DEREF, -8, 200, bp::AT_BP, -16);
        assert_eq!((rule.kind(), rule.bp(), rule.extra()), (kind::BP_DEREF, bp::AT_BP, 200));
        assert_eq!((rule.offset() as i64, rule.bp_offset() as i64), (-8, -16));
    }

    #[test]
    fn a_search_finds_the_last_that_is_at_most() {
        for count in 0..40u32 {
            // Odd numbers, behind others that do not belong to the span.
            let element = |index: u32| Some(u64::from(index.checked_sub(7)? * 2 + 1));
            for wanted in 0..90u64 {
                let found = search(span::pack(7, count), |index| Some(at_most(element(index)?, wanted)));
                let expected = u64::from(count).min(wanted.div_ceil(2));
                assert_eq!(found, expected.checked_sub(1).map(|at| at as u32 + 7), "{count} {wanted}");
            }
        }
        assert_eq!(span::count(span::pack(u32::MAX, u32::MAX)), (1 << 24) - 1);
    }

    #[test]
    fn a_rule_holds_until_the_next_row() {
        let rule = |address| find_rule(&made(), &made().region(2).unwrap(), address);
        assert_eq!(rule(0), Some(Rule::GAP));
        assert_eq!((rule(0x1ff), rule(0x200)), (Some(made().rules[1]), Some(made().rules[2])));
        assert_eq!(rule(0x1_ffff), Some(made().rules[5]), "the last row of the page before");
        assert_eq!(rule(0x2_0000), None);
    }

    #[test]
    fn steps_follow_the_rules() {
        assert_eq!(after(0x100, 7), Ok((0, 8, 7)));
        // rbp 16 bytes above the stack: its word is the caller's, the next one the return address.
        assert_eq!(after(0x200, STACK + 16), Ok((3, 32, TEXT + 2)));
        assert_eq!(after(0x305, 0), Ok((0, 8, 0)));
        assert_eq!(after(0x30b, 0), Ok((1, 16, 0)));
        assert_eq!(after(0x400, 0), Err(End::Root));
        assert_eq!(after(0x000, 0), Err(End::NoTable));
        assert_eq!(after(0x200, 0), Err(End::Unsupported), "rbp is lost");
        assert_eq!(after(0x200, STACK + 8 * 20), Err(End::Fault));
        assert_eq!(after(0x200, STACK - 16), Err(End::Stuck));
        assert_eq!(after(0x9_0000, 0), Err(End::NoRegion));
        let mut caller = frame(0x200, STACK);
        caller.exact = 0;
        assert_eq!(step(&made(), span::pack(0, 4), &mut caller), Ok(()), "the call is in the row before");
        assert_eq!(caller.sp, STACK + 8);
    }

    #[test]
    fn a_guess_stays_a_guess() {
        // From code that nobody has looked at yet into code that has a table: rbp leads from frame
        // to frame, and no rule of the table is followed.
        let mut guess = UnwindFrame { region: Region::GUESSED, ..frame(0x100, STACK + 16) };
        step(&made(), span::pack(0, 4), &mut guess).unwrap();
        assert_eq!((guess.ip, guess.sp, guess.bp), (TEXT + 3, STACK + 32, TEXT + 2));
        assert_eq!(guess.region, Region::GUESSED);
        // What it ends with is no fact about the code: neither a root nor an address without code.
        for (ip, bp) in [(TEXT + 0x400, 0), (TEXT + 0x100, 1), (1 << 63, STACK + 16)] {
            let mut guess = UnwindFrame { ip, bp, ..guess };
            assert_eq!(step(&made(), span::pack(0, 4), &mut guess), Err(End::NotYet));
        }
    }

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
