//! Makes the call chain of a sample: from the entries that the kernel delivered to a [`Stack`].

use precise_common::unwind::{End, program};

use super::{ChainEnd, CodeLocation, LocationId, Name, Names, Stack};

/// A frame of a recorded chain, before it becomes part of a [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenFrame {
    /// The runtime address: the interrupted instruction, or for a return address, a byte inside the
    /// call instruction before it.
    pub address: u64,
    /// Whether the frame is kernel code.
    pub kernel: bool,
    /// Whether the frame was found as a return address.
    pub is_return: bool,
}

/// The frames of a call chain as the kernel delivered it.
pub struct Frames {
    /// The frames from the innermost outwards. The first is the interrupted instruction if
    /// `interrupted` is true, otherwise a caller.
    pub frames: Vec<TakenFrame>,
    /// Whether the first frame is the instruction that the interrupt arrived at.
    pub interrupted: bool,
    /// Why the chain has no further frame; `None` if that is not known.
    pub end: Option<ChainEnd>,
    /// The number of the program by whose mappings the chain was unwound
    /// ([`precise_common::unwind::program`]).
    pub program: u8,
}

/// Returns the frames of a kernel chain that belong to a sample; `kernel` is whether the sampled
/// instruction is in the kernel.
pub fn frames(entries: &[u64], kernel: bool) -> Frames {
    use precise_common::stack::{CONTEXT_FIRST, CONTEXT_KERNEL, CONTEXT_USER};
    let frames = Vec::with_capacity(entries.len());
    let mut found = Frames { frames, interrupted: false, end: None, program: program::NONE };
    let (mut in_kernel, mut first) = (kernel, true);
    for entry in entries {
        match *entry {
            CONTEXT_KERNEL => (in_kernel, first) = (true, true),
            CONTEXT_USER => (in_kernel, first) = (false, true),
            // Markers of guests, and markers that later kernels may add: their addresses mean
            // nothing here.
            marker if marker >= CONTEXT_FIRST => {
                if let Some((end, program)) = End::of_marker(marker) {
                    (found.end, found.program) = (ChainEnd::of(end), program);
                }
                return found;
            }
            // A task that was sampled in user space may be interrupted in the kernel.
            _ if in_kernel && !kernel => {}
            entry => {
                found.interrupted |= first && in_kernel == kernel && found.frames.is_empty();
                // A return address may be the first byte of the next function, if the calling
                // function ends with the call. The first entry of the kernel's or the user's part
                // is not a return address.
                let address = if first { entry } else { entry.saturating_sub(1) };
                found.frames.push(TakenFrame { address, kernel: in_kernel, is_return: !first });
                first = false;
            }
        }
    }
    found
}

/// Joins a precise instruction with the chain that the interrupt found. `frames` are the locations
/// of [`Frames::frames`].
///
/// The interrupt arrives some instructions after the sampled one. In the same function, the chain's
/// callers are the instruction's callers. In a function that the sampled one has called meanwhile,
/// its callers are the frames after it. In any other function, the sampled function has most likely
/// returned to it.
///
/// The ids are indexes into `code`, whose names are in `names`.
pub fn join(
    code: &[CodeLocation],
    names: &Names,
    leaf: LocationId,
    frames: &[LocationId],
    interrupted: bool,
) -> Stack {
    let same = |at: usize| {
        let (a, b) = (code.get(leaf as usize), frames.get(at));
        match (a, b.and_then(|b| code.get(*b as usize))) {
            (Some(a), Some(b)) => leaf == frames[at] || function(names, a) == function(names, b),
            _ => false,
        }
    };
    let (skip, elsewhere) = match interrupted {
        false => (0, false),
        true if same(0) => (1, false),
        true if same(1) => (2, false),
        true => (0, true),
    };
    Stack { callers: frames.get(skip..).unwrap_or_default().to_vec(), elsewhere, cut: false, end: None }
}

/// Returns what identifies the function of a location.
fn function<'a>(names: &'a Names, code: &'a CodeLocation) -> impl PartialEq + use<'a> {
    // Without a file, the function is identified by its address in memory.
    let at = if code.file_offset != 0 { code.file_offset } else { code.runtime_address };
    let name = match code.inlined_into.last() {
        Some(real) => Name::Known(real.function),
        None => code.function,
    };
    // Without a name, the start of the function is not known, so the file is the only
    // identification.
    let begin = matches!(name, Name::Known(_)).then(|| at.saturating_sub(code.function_offset));
    (code.kernel, code.module, names.get(code.build_id), name, begin)
}

#[cfg(test)]
mod tests {
    use precise_common::stack::{CONTEXT_KERNEL, CONTEXT_USER};

    use super::*;
    use crate::testing::CaptureBuilder;

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
        // The sample is in user space, the interrupt in the kernel.
        let both = [CONTEXT_KERNEL, KERNEL + 10, KERNEL + 20, CONTEXT_USER, 10, 20];
        assert_eq!(taken(&both, false), (vec![10, 19], true));
        // The sample is in the kernel, which had returned by the time of the interrupt.
        assert_eq!(taken(&[CONTEXT_USER, 10, 20], true), (vec![10, 19], false));
        assert_eq!(taken(&[], false), (vec![], false));
        assert_eq!(taken(&[CONTEXT_USER - 7, 1, 2], false).0, [0u64; 0]);
        // An end is no frame.
        let ended = frames(&[CONTEXT_USER, 10, End::Root.marker()], false);
        assert_eq!((ended.frames.len(), ended.end), (1, Some(ChainEnd::Root)));
        assert_eq!(frames(&[CONTEXT_USER, 10], false).end, None);
    }

    #[test]
    fn the_interrupt_may_come_in_another_function() {
        let mut builder = CaptureBuilder::new();
        for (ip, function) in [(0x1000, "f"), (0x1004, "f"), (0x2000, "g"), (0x3000, "main")] {
            builder.cell().code(ip, "/bin/p", function, "", 0);
        }
        let mut capture = builder.build();
        for (code, begin) in capture.code.iter_mut().zip([0x1000, 0x1000, 0x2000, 0x3000]) {
            code.file_offset = code.runtime_address;
            code.function_offset = code.runtime_address - begin;
        }
        let join = |leaf, frames: &[LocationId], interrupted| {
            let stack = join(&capture.code, &capture.names, leaf, frames, interrupted);
            (stack.callers, stack.elsewhere)
        };
        // In order: two instructions of f; f has called g; f has returned to g; there is no
        // interrupted frame on the sample's side.
        assert_eq!(join(0, &[1, 3], true), (vec![3], false));
        assert_eq!(join(0, &[2, 1, 3], true), (vec![3], false));
        assert_eq!(join(0, &[2, 3], true), (vec![2, 3], true));
        assert_eq!(join(0, &[2, 3], false), (vec![2, 3], false));
        assert_eq!(join(0, &[], true), (vec![], true));
    }
}
