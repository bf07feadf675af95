//! Patches the eBPF object before it is loaded: inserts the call of the kfunc, and writes the
//! filter block into the instructions as constants and answers.
//!
//! Only program sections are patched. Bytes in the type information or in a string may look like an
//! instruction, and stay as they are.

use std::ops::Range;

use precise_common::config::{CONSTANT_SENTINEL, CONSTANT_WIDE, Config, Question};

/// Why an object cannot be patched: it does not match this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchError {
    /// The object is not a little-endian eBPF ELF file, or its section headers lie outside of the
    /// file.
    #[error("program sections")]
    Sections,
    /// The object has no call of the kfunc.
    #[error("the place of the call of a kernel function")]
    Kfunc,
    /// A constant or question refers to an offset beyond the filter block.
    #[error("a constant that this build knows")]
    Constant,
    /// The object has no constants or no questions.
    #[error("the places of the filter block")]
    Block,
}

/// Replaces each call of the helper `sentinel`, which does not exist, with a call of the kfunc that
/// has this BTF id.
pub(super) fn kfunc(object: &mut [u8], sentinel: u32, id: u32) -> Result<(), PatchError> {
    const BPF_CALL: u8 = 0x85;
    /// `BPF_PSEUDO_KFUNC_CALL` in the source-register half of the second byte.
    const KFUNC_CALL: u8 = 2 << 4;
    let [a, b, c, d] = sentinel.to_le_bytes();
    let sentinel = [BPF_CALL, 0, 0, 0, a, b, c, d];
    let mut sites = 0;
    for section in program_sections(object)? {
        for instruction in object[section].chunks_exact_mut(8).filter(|bytes| **bytes == sentinel) {
            instruction[1] = KFUNC_CALL;
            instruction[4..].copy_from_slice(&id.to_le_bytes());
            sites += 1;
        }
    }
    if sites > 0 { Ok(()) } else { Err(PatchError::Kfunc) }
}

/// Writes the filter block into the instructions: constants into the instructions that load them,
/// answers in place of the questions.
pub(super) fn constants(object: &mut [u8], config: &Config) -> Result<(), PatchError> {
    let config = bytes_of(config);
    let mut done = Patched::default();
    for section in program_sections(object)? {
        done.section(&mut object[section], config)?;
    }
    if done.constants > 0 && done.questions > 0 { Ok(()) } else { Err(PatchError::Block) }
}

/// `BPF_JMP | BPF_JNE | BPF_K`.
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
/// `BPF_JMP | BPF_JA`.
const JUMP: u8 = 0x05;
/// A jump to the next instruction.
const NO_JUMP: [u8; 8] = [JUMP, 0, 0, 0, 0, 0, 0, 0];

/// The number of places patched so far.
#[derive(Debug, Default)]
struct Patched {
    constants: usize,
    questions: usize,
}

impl Patched {
    fn section(&mut self, code: &mut [u8], config: &[u8]) -> Result<(), PatchError> {
        /// `BPF_LD | BPF_IMM | BPF_DW`: two instruction slots, with half of the operand in each.
        const LOAD_IMMEDIATE: u8 = 0x18;
        let word = |at: usize| {
            let bytes = config.get(at..at.checked_add(4)?)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        for at in (0..code.len()).step_by(8) {
            let Some((instruction, next)) = code[at..].split_first_chunk_mut::<8>() else { break };
            let Some(next) = next.first_chunk_mut::<8>() else { break };
            let operand =
                u32::from_le_bytes([instruction[4], instruction[5], instruction[6], instruction[7]]);
            if let Some(question) = asked(instruction, next) {
                let answer = question.answer(word(question.offset).ok_or(PatchError::Constant)?);
                let jumps = answer == (next[0] == JUMP_IF_NOT_EQUAL);
                *instruction = NO_JUMP;
                *next = match *next {
                    [_, _, low, high, ..] if jumps => [JUMP, 0, low, high, 0, 0, 0, 0],
                    _ => NO_JUMP,
                };
                self.questions += 1;
            } else if instruction[0] == LOAD_IMMEDIATE
                && next[..4] == [0; 4]
                && next[4..] == CONSTANT_SENTINEL.to_le_bytes()
            {
                let wide = u64::from(operand) & CONSTANT_WIDE != 0;
                let offset = (u64::from(operand) & !CONSTANT_WIDE) as usize;
                let upper = if wide { word(offset + 4) } else { Some(0) };
                instruction[4..].copy_from_slice(&word(offset).ok_or(PatchError::Constant)?.to_le_bytes());
                next[4..].copy_from_slice(&upper.ok_or(PatchError::Constant)?.to_le_bytes());
                self.constants += 1;
            }
        }
        Ok(())
    }
}

/// Returns the question that two instructions encode: `rN = QUESTION`, then `if rN != 0 goto` or
/// `if rN == 0 goto`.
fn asked(instruction: &[u8; 8], next: &[u8; 8]) -> Option<Question> {
    /// `BPF_ALU64 | BPF_MOV | BPF_K`.
    const MOVE_IMMEDIATE: u8 = 0xb7;
    /// `BPF_JMP | BPF_JEQ | BPF_K`.
    const JUMP_IF_EQUAL: u8 = 0x15;
    let [MOVE_IMMEDIATE, register, 0, 0, operand @ ..] = *instruction else { return None };
    if !matches!(*next, [JUMP_IF_NOT_EQUAL | JUMP_IF_EQUAL, tested, _, _, 0, 0, 0, 0] if tested == register) {
        return None;
    }
    Question::decode(u32::from_le_bytes(operand))
}

/// Returns the byte ranges of an object's instructions: its executable sections that have contents
/// (elf(5)).
fn program_sections(object: &[u8]) -> Result<Vec<Range<usize>>, PatchError> {
    /// `\x7fELF`, `ELFCLASS64`, `ELFDATA2LSB`.
    const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const SHT_PROGBITS: u64 = 1;
    const SHF_EXECINSTR: u64 = 4;
    const HEADER_BYTES: usize = 64;
    let number = |at: usize, bytes: usize| {
        let little = object.get(at..at.checked_add(bytes)?)?;
        Some(little.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let find = || {
        let first = usize::try_from(number(0x28, 8)?).ok()?;
        let (size, count) = (number(0x3a, 2)? as usize, number(0x3c, 2)? as usize);
        if !object.starts_with(&MAGIC) || size < HEADER_BYTES {
            return None;
        }
        let mut sections = Vec::new();
        for index in 0..count {
            let header = first.checked_add(index * size)?;
            object.get(header..header.checked_add(HEADER_BYTES)?)?;
            let (kind, flags) = (number(header + 4, 4)?, number(header + 8, 8)?);
            if kind == SHT_PROGBITS && flags & SHF_EXECINSTR != 0 {
                let start = usize::try_from(number(header + 0x18, 8)?).ok()?;
                let length = usize::try_from(number(header + 0x20, 8)?).ok()?;
                let section = start..start.checked_add(length)?;
                object.get(section.clone())?;
                sections.push(section);
            }
        }
        Some(sections)
    };
    find().ok_or(PatchError::Sections)
}

fn bytes_of(config: &Config) -> &[u8] {
    // SAFETY: `Config` is `repr(C)` without padding (its size is asserted to be the sum of its
    // fields), so all of its bytes are initialised; the slice lives as long as the reference.
    unsafe { std::slice::from_raw_parts((&raw const *config).cast(), size_of::<Config>()) }
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
