//! Whether an address can be a return address: what the code before and behind it says.

use serde::{Deserialize, Serialize};

/// The code at an address that is claimed to be a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReturnSite {
    /// A call instruction ends at the address.
    Call,
    /// The address is the code that returns from a signal handler. The kernel makes it the
    /// handler's return address. The caller of such a frame is the interrupted instruction.
    Signal,
    /// The address is where the first function of a thread returns to, in a runtime that enters
    /// threads by hand.
    Thread,
    /// None of these: the address is no return address.
    None,
}

/// The number of bytes before the address that matter: the longest call instruction, without its
/// prefixes.
pub const BEFORE: usize = 7;
/// The number of bytes from the address on that matter.
pub const BEHIND: usize = 9;

/// `mov rax, 15; syscall`: rt_sigreturn(2) in glibc, musl and Go. Debuggers and unwinders know a
/// signal frame by these bytes where there is no unwind information.
const SIGRETURN: [u8; BEHIND] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// The same with a 32-bit move.
const SIGRETURN_SHORT: [u8; 7] = [0xb8, 15, 0, 0, 0, 0x0f, 0x05];
/// `nop`.
const NOP: u8 = 0x90;
/// `call` with a distance of 32 bits, and its length.
const CALL: (u8, usize) = (0xe8, 5);

impl ReturnSite {
    /// Returns what the code says about an address: the last bytes `before` it, of which
    /// [`BEFORE`] matter, and the bytes from it on, of which [`BEHIND`] matter.
    pub fn of(before: &[u8], behind: &[u8]) -> Self {
        if is_call(before) {
            Self::Call
        } else if behind.starts_with(&SIGRETURN) || behind.starts_with(&SIGRETURN_SHORT) {
            Self::Signal
        } else if is_go_exit(before, behind) {
            Self::Thread
        } else {
            Self::None
        }
    }
}

/// Returns whether the bytes end with a near call.
fn is_call(before: &[u8]) -> bool {
    let byte = |distance: usize| before.len().checked_sub(distance).and_then(|at| before.get(at)).copied();
    if byte(CALL.1) == Some(CALL.0) {
        return true;
    }
    // FF /2: the target is in a register or in memory.
    (2..=BEFORE).any(|length| match (byte(length), byte(length - 1)) {
        (Some(0xff), Some(modrm)) if modrm >> 3 & 7 == 2 => {
            let sib = if length > 2 { byte(length - 2) } else { None };
            length_of_operand(modrm, sib).is_some_and(|operand| operand + 1 == length)
        }
        _ => false,
    })
}

/// Returns the number of bytes from ModRM on; `None` if the SIB byte that it needs is not there.
fn length_of_operand(modrm: u8, sib: Option<u8>) -> Option<usize> {
    let (mode, register) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(1);
    }
    let with_sib = register == 4;
    let base = if with_sib { sib? & 7 } else { register };
    let displacement = match (mode, base) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    Some(1 + usize::from(with_sib) + displacement)
}

/// Returns whether the address is the second instruction of Go's `runtime.goexit`, which is
/// `nop; call; nop`: each goroutine's first function is entered as if it had been called there
/// (`newproc1` in runtime/proc.go).
fn is_go_exit(before: &[u8], behind: &[u8]) -> bool {
    before.last() == Some(&NOP) && behind.first() == Some(&CALL.0) && behind.get(CALL.1) == Some(&NOP)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    use super::*;

    fn site(before: &[u8]) -> ReturnSite {
        ReturnSite::of(before, &[])
    }

    #[test]
    fn every_form_of_a_call_is_one() {
        // call rel32; call rax; call r10; call [rax]; call [rip+x]; call [rax+rcx*8];
        // call [rbp+8]; call [rsp+8]; call [rax+x]; call [rsp+x]; call [x].
        let forms: [&[u8]; 11] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd2],
            &[0xff, 0x10],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc8],
            &[0xff, 0x55, 8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x90, 1, 2, 3, 4],
            &[0xff, 0x94, 0x24, 1, 2, 3, 4],
            &[0xff, 0x14, 0x25, 1, 2, 3, 4],
        ];
        for form in forms {
            assert_eq!(site(form), ReturnSite::Call, "{form:x?}");
            let cut = form.split_last().map_or(form, |(_, rest)| rest);
            assert_eq!(site(cut), ReturnSite::None, "{cut:x?}");
        }
        assert_eq!(site(&[]), ReturnSite::None);
        // jmp rax; push [rax]; call far; ret.
        for other in [&[0xff, 0xe0][..], &[0xff, 0x30], &[0xff, 0x18], &[0xc3]] {
            assert_eq!(site(other), ReturnSite::None, "{other:x?}");
        }
    }

    /// All ModRM and SIB bytes, as the disassembler reads them.
    #[test]
    fn calls_are_those_of_the_disassembler() {
        let both = (0..=255u8).flat_map(|modrm| (0..=255u8).map(move |sib| (modrm, sib)));
        // The byte of a direct call five bytes before the end is one, whatever it belongs to.
        for (modrm, sib) in both.filter(|(_, sib)| *sib != CALL.0) {
            let bytes = [0xff, modrm, sib, 0x31, 0x31, 0x31, 0x31];
            let instruction = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
            let code = bytes.get(..instruction.len()).unwrap_or_default();
            // A far call has its operand in memory only.
            let call = instruction.flow_control() == FlowControl::IndirectCall && modrm >> 3 & 7 == 2;
            assert_eq!(site(code) == ReturnSite::Call, call, "{code:x?}: {instruction:?}");
        }
    }

    #[test]
    fn what_runtimes_make_by_hand_is_known() {
        assert_eq!(ReturnSite::of(&[NOP], &SIGRETURN), ReturnSite::Signal);
        assert_eq!(ReturnSite::of(&[0xc3], &SIGRETURN_SHORT), ReturnSite::Signal);
        let call = [0xe8, 1, 2, 3, 4, NOP];
        assert_eq!(ReturnSite::of(&[0xcc, NOP], &call), ReturnSite::Thread);
        assert_eq!(ReturnSite::of(&[NOP], &call[..5]), ReturnSite::None);
        assert_eq!(ReturnSite::of(&[NOP], &[0x55]), ReturnSite::None, "the start of a function");
    }
}
