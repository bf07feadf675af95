//! The step from a frame to its caller.

use super::{End, PAGE_BITS, Region, Rule, bp, kind, region, row, span};

/// The number of steps in which an element is found among 2¹⁷ − 1. A page has at most 65,536 rows:
/// one for each address.
const STEPS: u32 = 17;

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
}
