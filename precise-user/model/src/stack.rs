//! Call chains: who called the sampled instruction's function.

use super::{Capture, CodeLocation, LocationId, Name, Reason};

/// Index into [`Capture::stacks`].
pub type StackId = u32;

/// The callers of a sampled instruction. The instruction itself is the row's: the precise one,
/// where the chain begins with the instruction at which the interrupt came.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stack {
    /// From the caller of the sampled function to the outermost frame: the place of each call.
    pub callers: Vec<LocationId>,
    /// The interrupt came in another function than the sampled instruction's, and that is none of
    /// its callees: taken as the one that it had returned to.
    pub elsewhere: bool,
    /// The chain was longer than what is kept: the outermost callers are missing.
    pub cut: bool,
}

/// The call chain of a row, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chain {
    /// It is known.
    Known(StackId),
    /// It is not, and this is why.
    Unknown(Reason),
}

impl Chain {
    /// Of a run that took none.
    pub const NONE: Self = Self::Unknown(Reason::NotRecorded);
}

/// One frame that was taken, on its way to a [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenFrame {
    /// Runtime address: of the interrupted instruction, or inside of the call that a return address
    /// stands behind.
    pub address: u64,
    /// Whether it is kernel code.
    pub kernel: bool,
}

/// The frames of a chain as the kernel gave it.
pub struct Frames {
    /// From the innermost outwards. The first is the interrupted instruction where `interrupted`
    /// says so, otherwise a caller.
    pub frames: Vec<TakenFrame>,
    /// The first frame is where the interrupt came.
    pub interrupted: bool,
}

/// The frames that belong to a sample whose instruction is in the kernel, or is not.
pub fn frames(entries: &[u64], kernel: bool) -> Frames {
    use precise_common::stack::{CONTEXT_FIRST, CONTEXT_KERNEL, CONTEXT_USER};
    let mut found = Frames { frames: Vec::with_capacity(entries.len()), interrupted: false };
    let (mut in_kernel, mut first) = (kernel, true);
    for entry in entries {
        match *entry {
            CONTEXT_KERNEL => (in_kernel, first) = (true, true),
            CONTEXT_USER => (in_kernel, first) = (false, true),
            // Guests and what is to come: their addresses mean nothing here.
            marker if marker >= CONTEXT_FIRST => return found,
            // The kernel may be where the interrupt found a task whose sampled instruction was in
            // user space.
            _ if in_kernel && !kernel => {}
            entry => {
                found.interrupted |= first && in_kernel == kernel && found.frames.is_empty();
                // A return address may be the first byte of the next function, where the last thing
                // that one does is a call. What comes first on its side is no return address.
                let address = if first { entry } else { entry.saturating_sub(1) };
                found.frames.push(TakenFrame { address, kernel: in_kernel });
                first = false;
            }
        }
    }
    found
}

/// Joins a precise instruction with the chain that the interrupt found. `frames` are the locations
/// of [`Frames::frames`].
///
/// The interrupt comes some instructions later. In the same function, the chain's callers are the
/// instruction's. In a function that this one has called meanwhile, they are what is behind it. In
/// any other, the function has most likely returned to it.
pub fn join(capture: &Capture, leaf: LocationId, frames: &[LocationId], interrupted: bool) -> Stack {
    let same = |at: usize| {
        let (a, b) = (capture.code.get(leaf as usize), frames.get(at));
        match (a, b.and_then(|b| capture.code.get(*b as usize))) {
            (Some(a), Some(b)) => leaf == frames[at] || function(capture, a) == function(capture, b),
            _ => false,
        }
    };
    let (skip, elsewhere) = match interrupted {
        false => (0, false),
        true if same(0) => (1, false),
        true if same(1) => (2, false),
        true => (0, true),
    };
    Stack { callers: frames.get(skip..).unwrap_or_default().to_vec(), elsewhere, cut: false }
}

/// What makes a function this one and no other.
fn function<'a>(capture: &'a Capture, code: &'a CodeLocation) -> impl PartialEq + use<'a> {
    // Without a file, the address space is the function's.
    let at = if code.file_offset != 0 { code.file_offset } else { code.runtime_address };
    let name = match code.inlined_into.last() {
        Some(real) => Name::Known(real.function),
        None => code.function,
    };
    // Without a name there is no distance from a begin: the file is all that is known.
    let begin = matches!(name, Name::Known(_)).then(|| at.saturating_sub(code.function_offset));
    (code.kernel, code.module, capture.names.get(code.build_id), name, begin)
}

#[cfg(test)]
mod tests {
    use precise_common::stack::{CONTEXT_KERNEL, CONTEXT_USER};

    use super::*;
    use crate::testing::Builder;

    const KERNEL: u64 = 0xffff_8000_0000_0000;

    fn taken(entries: &[u64], kernel: bool) -> (Vec<u64>, bool) {
        let found = frames(entries, kernel);
        (found.frames.iter().map(|frame| frame.address).collect(), found.interrupted)
    }

    #[test]
    fn return_addresses_are_moved_into_their_calls() {
        assert_eq!(taken(&[CONTEXT_USER, 10, 20, 30], false), (vec![10, 19, 29], true));
        let both = [CONTEXT_KERNEL, KERNEL + 10, KERNEL + 20, CONTEXT_USER, 10, 20];
        assert_eq!(taken(&both, true), (vec![KERNEL + 10, KERNEL + 19, 10, 19], true));
    }

    #[test]
    fn the_side_of_the_sampled_instruction_counts() {
        // Sampled in user space, interrupted in the kernel.
        let both = [CONTEXT_KERNEL, KERNEL + 10, KERNEL + 20, CONTEXT_USER, 10, 20];
        assert_eq!(taken(&both, false), (vec![10, 19], true));
        // Sampled in the kernel, interrupted when it had returned.
        assert_eq!(taken(&[CONTEXT_USER, 10, 20], true), (vec![10, 19], false));
        assert_eq!(taken(&[], false), (vec![], false));
        assert_eq!(taken(&[CONTEXT_USER - 7, 1, 2], false).0, [0u64; 0]);
    }

    #[test]
    fn the_interrupt_may_come_in_another_function() {
        let mut builder = Builder::new();
        for (ip, function) in [(0x1000, "f"), (0x1004, "f"), (0x2000, "g"), (0x3000, "main")] {
            builder.cell().code(ip, "/bin/p", function, "", 0);
        }
        let mut capture = builder.build();
        for (code, begin) in capture.code.iter_mut().zip([0x1000, 0x1000, 0x2000, 0x3000]) {
            code.file_offset = code.runtime_address;
            code.function_offset = code.runtime_address - begin;
        }
        let join = |leaf, frames: &[LocationId], interrupted| {
            let stack = join(&capture, leaf, frames, interrupted);
            (stack.callers, stack.elsewhere)
        };
        // Two instructions of f; f has called g; f has returned to g; no interrupted frame of its
        // side.
        assert_eq!(join(0, &[1, 3], true), (vec![3], false));
        assert_eq!(join(0, &[2, 1, 3], true), (vec![3], false));
        assert_eq!(join(0, &[2, 3], true), (vec![2, 3], true));
        assert_eq!(join(0, &[2, 3], false), (vec![2, 3], false));
        assert_eq!(join(0, &[], true), (vec![], true));
    }
}
