//! Tests of patching, with the embedded object and with small synthetic ones.

use super::super::program::prebuilt;
use super::*;
use precise_common::config::{CAST_SENTINEL, QuestionTest, TYPED_SENTINEL, key};

/// A section of a synthetic object.
struct Section {
    kind: u32,
    flags: u64,
    bytes: Vec<u8>,
}

fn code(bytes: Vec<u8>) -> Section {
    Section { kind: 1, flags: 2 | 4, bytes }
}

fn data(bytes: Vec<u8>) -> Section {
    Section { kind: 1, flags: 2, bytes }
}

/// Builds an ELF file that contains only these sections.
fn object(sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    let mut headers = vec![0; 64];
    for Section { kind, flags, bytes } in sections {
        let mut header = [0; 64];
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[8..16].copy_from_slice(&flags.to_le_bytes());
        header[0x18..0x20].copy_from_slice(&(file.len() as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        headers.extend(header);
        file.extend(bytes);
    }
    let first = file.len() as u64;
    file[0x28..0x30].copy_from_slice(&first.to_le_bytes());
    file[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
    file[0x3c..0x3e].copy_from_slice(&(headers.len() as u16 / 64).to_le_bytes());
    file.extend(headers);
    file
}

/// `call CAST_SENTINEL`
fn call() -> Vec<u8> {
    [&[0x85, 0, 0, 0][..], &CAST_SENTINEL.to_le_bytes()].concat()
}

/// `r1 = CONSTANT` of the word at `offset`.
fn constant(offset: usize, wide: bool) -> Vec<u8> {
    let operand = offset as u32 | if wide { CONSTANT_WIDE as u32 } else { 0 };
    let halves = [&[0x18, 1, 0, 0][..], &operand.to_le_bytes(), &[0; 4], &CONSTANT_SENTINEL.to_le_bytes()];
    halves.concat()
}

/// `r2 = QUESTION`, `if r2 == 0 goto +1`
fn question(offset: usize, test: QuestionTest) -> Vec<u8> {
    let operand = Question { offset, test }.encode();
    [&[0xb7, 2, 0, 0][..], &operand.to_le_bytes(), &[0x15, 2, 1, 0, 0, 0, 0, 0]].concat()
}

const KEY: usize = std::mem::offset_of!(Config, key);
const MASK: usize = std::mem::offset_of!(Config, address_mask);

fn config() -> Config {
    Config { key: key::IP | key::CGROUP, address_mask: !0x3f, ..Config::EMPTY }
}

/// Returns the patched instructions of the first section.
fn patched(sections: &[Section]) -> Result<Vec<u8>, PatchError> {
    let mut object = object(sections);
    constants(&mut object, &config())?;
    Ok(object[64..64 + sections[0].bytes.len()].to_vec())
}

#[test]
fn constants_and_answers_go_into_the_instructions() {
    let asked = [
        question(KEY, QuestionTest::Bit(0)),
        question(KEY, QuestionTest::Bit(1)),
        question(KEY, QuestionTest::Is(5)),
    ];
    let code = code([constant(KEY, false), constant(MASK, true), asked.concat()].concat());
    let done = patched(&[code]).unwrap();
    assert_eq!(done[..16], [0x18, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(done[16..32], [0x18, 1, 0, 0, 0xc0, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255]);
    // The questions jump if the answer is 0. What is left of one is two jumps.
    let jumps = |distance| [[5, 0, 0, 0, 0, 0, 0, 0], [5, 0, distance, 0, 0, 0, 0, 0]].concat();
    assert_eq!(done[32..], [jumps(0), jumps(1), jumps(0)].concat());
}

#[test]
fn what_only_looks_like_an_instruction_stays() {
    let look_alike = [call(), constant(KEY, false), question(KEY, QuestionTest::Bit(0))].concat();
    let whole = [call(), constant(KEY, false), question(KEY, QuestionTest::Bit(0))].concat();
    // A note section is not a program, whatever its flags are.
    let note = Section { kind: 7, flags: 4, bytes: look_alike.clone() };
    let before = object(&[code(whole.clone()), data(look_alike.clone()), note]);
    let mut after = before.clone();
    constants(&mut after, &config()).unwrap();
    kfunc(&mut after, CAST_SENTINEL, 4711).unwrap();
    assert_ne!(before[64..64 + whole.len()], after[64..64 + whole.len()]);
    assert_eq!(before[64 + whole.len()..], after[64 + whole.len()..]);
    for alone in [data(look_alike.clone()), Section { kind: 8, flags: 4, bytes: look_alike }] {
        let mut alone = object(&[alone]);
        assert_eq!(constants(&mut alone, &config()), Err(PatchError::Block));
        assert_eq!(kfunc(&mut alone, CAST_SENTINEL, 1), Err(PatchError::Kfunc));
    }
}

#[test]
fn every_call_becomes_one_of_the_kfunc() {
    let mut both = object(&[code([call(), call()].concat()), code(call())]);
    kfunc(&mut both, CAST_SENTINEL, 0x1234_5678).unwrap();
    let done = [0x85, 0x20, 0, 0, 0x78, 0x56, 0x34, 0x12];
    assert!(both[64..88].chunks(8).all(|instruction| instruction == done));
}

#[test]
fn questions_are_asked_of_the_register_that_is_tested() {
    let mut other = question(KEY, QuestionTest::Bit(0));
    other[9] = 3;
    let whole = [constant(KEY, false), question(KEY, QuestionTest::Bit(0)), other.clone()].concat();
    assert_eq!(patched(&[code(whole)]).unwrap()[32..], other);
}

#[test]
fn objects_of_another_build_are_refused() {
    let beyond = [constant(size_of::<Config>(), false), question(KEY, QuestionTest::Bit(0))].concat();
    assert_eq!(patched(&[code(beyond)]), Err(PatchError::Constant));
    // Half of this wide constant lies within the block.
    let half = constant(size_of::<Config>() - 4, true);
    assert_eq!(patched(&[code(half)]), Err(PatchError::Constant));
    assert_eq!(patched(&[code(constant(KEY, false))]), Err(PatchError::Block));
    assert_eq!(patched(&[code(question(KEY, QuestionTest::Bit(0)))]), Err(PatchError::Block));
    // An instruction that is cut off at the end of its section is not read past the end.
    let cut = constant(KEY, false)[..8].to_vec();
    assert_eq!(patched(&[code(cut), code(vec![0; 8])]), Err(PatchError::Block));
}

#[test]
fn no_damage_makes_it_panic() {
    let whole = object(&[code([call(), constant(KEY, true), question(KEY, QuestionTest::Bit(0))].concat())]);
    assert_eq!(constants(&mut [], &config()), Err(PatchError::Sections));
    for length in 0..whole.len() {
        assert_eq!(
            constants(&mut whole[..length].to_vec(), &config()),
            Err(PatchError::Sections),
            "{length}"
        );
    }
    // Sets all bits of every field in the file header and in the section header.
    for at in (0..64).chain(whole.len() - 64..whole.len()) {
        for length in [1, 2, 4, 8] {
            let mut damaged = whole.clone();
            let end = (at + length).min(damaged.len());
            damaged[at..end].fill(0xff);
            let _refused = constants(&mut damaged, &config());
            let _refused = kfunc(&mut damaged, CAST_SENTINEL, 1);
        }
    }
}

#[test]
fn the_embedded_object_is_patched_in_its_programs_alone() {
    let object = prebuilt().unwrap();
    let sections = program_sections(&object).unwrap();
    let inside = |at: usize| sections.iter().any(|section| section.contains(&at));
    let mut done = object.clone();
    constants(&mut done, &config()).unwrap();
    for sentinel in [CAST_SENTINEL, TYPED_SENTINEL] {
        kfunc(&mut done, sentinel, 4711).unwrap();
    }
    assert_eq!(done.len(), object.len());
    let changed: Vec<usize> = (0..done.len()).filter(|at| done[*at] != object[*at]).collect();
    assert!(!changed.is_empty() && changed.iter().all(|at| inside(*at)));
    // Nothing is left to patch.
    assert_eq!(constants(&mut done, &config()), Err(PatchError::Block));
    for sentinel in [CAST_SENTINEL, TYPED_SENTINEL] {
        assert_eq!(kfunc(&mut done, sentinel, 4711), Err(PatchError::Kfunc));
    }
}
