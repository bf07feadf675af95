//! Tests of unwind tables of files that are made here.

use gimli::write::{
    Address, CallFrameInstruction as Cfi, CommonInformationEntry, EndianVec, Expression,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{DwEhPe, Encoding, Format, Register, X86_64};
use precise_common::unwind::{Rule, bp, kind, row};
use proptest::prelude::*;
use std::io::Write as _;

use super::*;

/// Where the code of the files of these tests begins, and how long it is.
const CODE: u64 = 0x1_2340;
const SIZE: u64 = 0x4_0000;

/// A section: name, flags and content.
type Part<'a> = (&'a str, u64, &'a [u8]);

fn words(file: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| file.extend(word.to_le_bytes()));
}

/// Returns a 64-bit program with one segment of code and these sections, which are loaded at
/// address 0.
fn elf(code: (u64, u64), sections: &[Part<'_>]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    (file[16], file[18], file[54], file[56], file[58]) = (3, 62, 56, 1, 64);
    words(&mut file, &[1 | u64::from(PF_X) << 32, 0, code.0, code.0, code.1, code.1, 1]);
    file[32] = 64;
    let mut names = vec![0];
    let mut table = vec![0; 64];
    let last = [(".names", 0, &[][..])];
    for (name, flags, content) in sections.iter().chain(&last) {
        let at = file.len() as u64;
        table.extend((names.len() as u32).to_le_bytes());
        table.extend(1_u32.to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
        let content = if content.is_empty() { &names[..] } else { content };
        words(&mut table, &[*flags, 0, at, content.len() as u64, 0, 1, 0]);
        file.extend(content);
    }
    let (at, count) = (file.len() as u64, sections.len() as u8 + 2);
    file[40..48].copy_from_slice(&at.to_le_bytes());
    (file[60], file[62]) = (count, count - 1);
    file.extend(table);
    file
}

fn info(bytes: &[u8]) -> UnwindInfo {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    let info = read(&file, false).expect("an ELF file");
    assert_eq!(info.check(), Ok(()));
    info
}

/// A function: address, length, and instructions with the offset at which they hold.
type Function = (u64, u32, Vec<(u32, Cfi)>);

fn frame_table(functions: &[Function], signal: bool) -> FrameTable {
    let mut table = FrameTable::default();
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 1 };
    let mut common = CommonInformationEntry::new(encoding, 1, -8, X86_64::RA);
    common.fde_address_encoding = DwEhPe(4);
    common.signal_trampoline = signal;
    common.add_instruction(Cfi::Cfa(X86_64::RSP, 8));
    common.add_instruction(Cfi::Offset(X86_64::RA, -8));
    let common = table.add_cie(common);
    for (address, length, instructions) in functions {
        let mut function = FrameDescriptionEntry::new(Address::Constant(*address), *length);
        for (at, instruction) in instructions {
            function.add_instruction(*at, instruction.clone());
        }
        table.add_fde(common, function);
    }
    table
}

fn eh_frame(functions: &[Function]) -> Vec<u8> {
    let mut section = gimli::write::EhFrame(EndianVec::new(LittleEndian));
    frame_table(functions, false).write_eh_frame(&mut section).expect("written");
    section.0.into_vec()
}

fn signal_frame(functions: &[Function]) -> Vec<u8> {
    let mut section = gimli::write::EhFrame(EndianVec::new(LittleEndian));
    frame_table(functions, true).write_eh_frame(&mut section).expect("written");
    section.0.into_vec()
}

fn debug_frame(functions: &[Function]) -> Vec<u8> {
    let mut table = FrameTable::default();
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
    let mut common = CommonInformationEntry::new(encoding, 1, -8, X86_64::RA);
    common.add_instruction(Cfi::Cfa(X86_64::RSP, 8));
    common.add_instruction(Cfi::Offset(X86_64::RA, -8));
    let common = table.add_cie(common);
    for (address, length, _) in functions {
        table.add_fde(common, FrameDescriptionEntry::new(Address::Constant(*address), *length));
    }
    let mut section = gimli::write::DebugFrame(EndianVec::new(LittleEndian));
    table.write_debug_frame(&mut section).expect("written");
    section.0.into_vec()
}

fn table_of(sections: &[Part<'_>]) -> (UnwindTable, u64) {
    let info = info(&elf((CODE, SIZE), sections));
    match info.code {
        Code::Table(table) => (table, info.skipped),
        other => panic!("{other:?}"),
    }
}

/// Returns the rows of a table: addresses and rules.
fn rows(table: &UnwindTable) -> Vec<(u64, Rule)> {
    let pages = table.pages.iter().enumerate();
    let pages = pages.flat_map(|(page, count)| std::iter::repeat_n(page as u64, *count as usize));
    let address = |page: u64, row| ((page + u64::from(table.first)) << 16) + u64::from(row::low(row));
    let row = |(page, row): (u64, &u32)| (address(page, *row), table.rules[row::rule(*row) as usize]);
    pages.zip(&table.rows).map(row).collect()
}

/// Returns the rule of a function with these instructions.
fn rule_of(section: &[u8]) -> Rule {
    let (table, skipped) = table_of(&[(".eh_frame", 2, section)]);
    assert_eq!(skipped, 0);
    rows(&table)[1].1
}

/// Returns the rule of a function with one instruction.
fn one(instruction: Cfi) -> Rule {
    rule_of(&eh_frame(&[(CODE, 16, vec![(0, instruction)])]))
}

fn expression(bytes: &[u8]) -> Expression {
    Expression::raw(bytes.to_vec())
}

const PLAIN: Rule = Rule::pack(kind::SP, 8, 0, bp::SAME, 0);

#[test]
fn rows_hold_until_the_next_function_or_a_gap() {
    let saved =
        vec![(1, Cfi::CfaOffset(16)), (1, Cfi::Offset(X86_64::RBP, -16)), (4, Cfi::CfaRegister(X86_64::RBP))];
    let section = eh_frame(&[(CODE, 16, saved), (CODE + 16, 0x10, vec![]), (CODE + 0x1_fff0, 8, vec![])]);
    let (table, skipped) = table_of(&[(".eh_frame", 2, &section)]);
    assert_eq!((table.first, &table.pages[..], skipped), (1, &[6, 0, 2][..], 0));
    assert_eq!(
        rows(&table),
        [
            (0x1_0000, Rule::GAP),
            (CODE, PLAIN),
            (CODE + 1, Rule::pack(kind::SP, 16, 0, bp::AT_CFA, -16)),
            (CODE + 4, Rule::pack(kind::BP, 16, 0, bp::AT_CFA, -16)),
            (CODE + 16, PLAIN),
            (CODE + 32, Rule::GAP),
            (CODE + 0x1_fff0, PLAIN),
            (CODE + 0x1_fff8, Rule::GAP),
        ]
    );
}

#[test]
fn expressions_that_compilers_and_linkers_write_are_understood() {
    let cfa = |bytes: &[u8]| one(Cfi::CfaExpression(expression(bytes)));
    for threshold in [10, 11] {
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(cfa(&plt), Rule::pack(kind::PLT, 0, threshold, bp::SAME, 0));
    }
    // gcc's functions that align the stack: the word at rbp - 8.
    assert_eq!(cfa(&[0x76, 0x78, 0x06]), Rule::pack(kind::BP_DEREF, -8, 0, bp::SAME, 0));
    // OpenSSL's assembly: the word at rsp + 152, plus 8; by one operation or by three.
    let openssl = Rule::pack(kind::SP_DEREF, 152, 8, bp::SAME, 0);
    assert_eq!(cfa(&[0x77, 0x98, 1, 0x06, 0x23, 8]), openssl);
    assert_eq!(cfa(&[0x77, 0x90, 1, 0x38, 0x22, 0x06, 0x40, 0x38, 0x1c, 0x22]), openssl);
    assert_eq!(
        one(Cfi::Expression(X86_64::RBP, expression(&[0x76, 0x70]))),
        Rule::pack(kind::SP, 8, 0, bp::AT_BP, -16)
    );
}

#[test]
fn what_cannot_be_evaluated_is_unsupported_or_lost() {
    let cfa = |bytes: &[u8]| one(Cfi::CfaExpression(expression(bytes)));
    for unknown in
        [&[0x73, 0][..], &[0x77, 0, 0x06, 0x06], &[0x77, 8, 0x06, 0x38, 0x1c], &[0x22], &[0x30], &[0xff], &[]]
    {
        assert_eq!(cfa(unknown), Rule::UNSUPPORTED, "{unknown:x?}");
    }
    assert_eq!(one(Cfi::Cfa(X86_64::R10, 0)), Rule::UNSUPPORTED);
    assert_eq!(one(Cfi::CfaOffset(i32::MAX)), Rule::pack(kind::SP, i32::MAX, 0, bp::SAME, 0));
    assert_eq!(one(Cfi::Offset(X86_64::RA, -16)), Rule::UNSUPPORTED);
    assert_eq!(one(Cfi::SameValue(X86_64::RSP)), Rule::UNSUPPORTED);
    assert_eq!(one(Cfi::Offset(X86_64::RBP, -40_000)), Rule::UNSUPPORTED);
    assert_eq!(one(Cfi::Undefined(X86_64::RA)), Rule::ROOT);
    let lost = Rule::pack(kind::SP, 8, 0, bp::LOST, 0);
    assert_eq!(one(Cfi::Undefined(X86_64::RBP)), lost);
    assert_eq!(one(Cfi::Register(X86_64::RBP, Register(3))), lost);
    assert_eq!(one(Cfi::Expression(X86_64::RBP, expression(&[0x77, 8]))), lost);
}

#[test]
fn signal_frames_are_those_of_the_kernel() {
    let frame = |ip: u8| {
        vec![
            (0, Cfi::CfaExpression(expression(&[0x77, 0xa0, 1, 0x06]))),
            (0, Cfi::Expression(X86_64::RA, expression(&[0x77, ip, 1]))),
        ]
    };
    assert_eq!(rule_of(&signal_frame(&[(CODE, 16, frame(0xa8))])), Rule::SIGNAL);
    assert_eq!(rule_of(&eh_frame(&[(CODE, 16, frame(0xa8))])), Rule::SIGNAL);
    assert_eq!(rule_of(&signal_frame(&[(CODE, 16, frame(0xa0))])), Rule::UNSUPPORTED);
    assert_eq!(rule_of(&signal_frame(&[(CODE, 16, vec![])])), Rule::UNSUPPORTED);
}

#[test]
fn debug_frame_fills_what_eh_frame_leaves() {
    let debug = debug_frame(&[(CODE, 16, vec![]), (CODE + 0x100, 16, vec![]), (0, 16, vec![])]);
    let ends = |first: u64, second: u64| {
        [(first, PLAIN), (first + 16, Rule::GAP), (second, PLAIN), (second + 16, Rule::GAP)]
    };
    let (table, skipped) = table_of(&[(".debug_frame", 0, &debug)]);
    assert_eq!((&rows(&table)[1..], skipped), (&ends(CODE, CODE + 0x100)[..], 0));
    let eh = eh_frame(&[(CODE, 16, vec![(0, Cfi::Undefined(X86_64::RA))])]);
    let (table, skipped) = table_of(&[(".eh_frame", 2, &eh), (".debug_frame", 0, &debug)]);
    let mut expected = ends(CODE, CODE + 0x100);
    expected[0].1 = Rule::ROOT;
    assert_eq!((&rows(&table)[1..], skipped), (&expected[..], 0));
    // Compressed, it is not read; the other section is.
    let (table, _) = table_of(&[(".eh_frame", 2, &eh), (".debug_frame", 1 << 11, &debug)]);
    assert_eq!(table.rows.len(), 3);
}

#[test]
fn a_file_without_a_table_says_why() {
    let code = |sections: &[Part<'_>]| info(&elf((CODE, SIZE), sections)).code;
    let reason = |sections: &[Part<'_>]| match code(sections) {
        Code::None(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&[]), "has no .eh_frame section");
    assert_eq!(
        reason(&[(".debug_frame", 1 << 11, b"x")]),
        "has a compressed section .debug_frame, which is not read"
    );
    let elsewhere = eh_frame(&[(0, 16, vec![])]);
    assert_eq!(
        reason(&[(".eh_frame", 2, &elsewhere)]),
        "has a section .eh_frame without a function that can be read"
    );
    let mut other = elf((CODE, SIZE), &[]);
    other[18] = 183;
    assert_eq!(info(&other).code, Code::None("is not a program for x86-64".to_owned()));
    (other[18], other[16]) = (62, 1);
    assert_eq!(info(&other).code, Code::None("is neither a program nor a library".to_owned()));

    assert_eq!(code(&[(".gopclntab", 2, b"x")]), Code::FramePointers);
    let little = eh_frame(&[(CODE, 16, vec![])]);
    assert_eq!(code(&[(".eh_frame", 2, &little), (".gopclntab", 2, b"x")]), Code::FramePointers);
    let much = eh_frame(&[(CODE, SIZE as u32, vec![])]);
    assert!(matches!(code(&[(".eh_frame", 2, &much), (".note.go.buildid", 2, b"x")]), Code::Table(_)));

    let far = eh_frame(&[(CODE, 16, vec![]), (CODE + (2 << 30), 16, vec![])]);
    let far = info(&elf((0, 4 << 30), &[(".eh_frame", 2, &far)]));
    assert_eq!(far.code, Code::None("has code that spans more than 1024 MiB".to_owned()));
}

#[test]
fn damage_costs_a_function_and_no_file() {
    let functions = [(CODE, 16, vec![]), (CODE + 16, 16, vec![]), (CODE + 32, 16, vec![])];
    let sound = eh_frame(&functions);
    let length = |skipped, section: &[u8]| {
        let (table, found) = table_of(&[(".eh_frame", 2, section)]);
        assert_eq!(found, skipped);
        table.rows.len()
    };
    assert_eq!(length(0, &sound), 3);
    // The second function refers to a common entry that is none.
    let entry = (sound.len() - 24) / 3;
    let mut damaged = sound.clone();
    damaged[24 + entry + 4] = 1;
    assert_eq!(length(1, &damaged), 5);
    // The last one is cut.
    assert_eq!(length(1, &sound[..sound.len() - 1]), 3);
    // Two describe the same address.
    let twice = eh_frame(&[(CODE, 16, vec![]), (CODE + 8, 16, vec![])]);
    assert_eq!(length(1, &twice), 3);
    // The rows before a damaged instruction count.
    let restore = vec![(4, Cfi::CfaOffset(16)), (8, Cfi::RestoreState)];
    let (table, skipped) = table_of(&[(".eh_frame", 2, &eh_frame(&[(CODE, 16, restore)]))]);
    assert_eq!((rows(&table)[3], skipped), ((CODE + 8, Rule::UNSUPPORTED), 1));
}

#[test]
fn a_function_with_too_many_rows_is_unsupported_from_there_on() {
    let steps = (1..=(1 << 20) + 2).map(|at| (at, Cfi::CfaOffset(8 + at as i32 % 2 * 8))).collect();
    let section = eh_frame(&[(CODE, 2 << 20, steps)]);
    let info = info(&elf((CODE, 4 << 20), &[(".eh_frame", 2, &section)]));
    let Code::Table(table) = info.code else { panic!("{:?}", info.code) };
    let rows = rows(&table);
    assert_eq!((info.skipped, rows.len()), (1, 1 + (1 << 20) + 2));
    assert_eq!(rows[1 + (1 << 20)], (CODE + (1 << 20), Rule::UNSUPPORTED));
    assert_eq!(rows[2 + (1 << 20)], (CODE + (2 << 20), Rule::GAP));
}

#[test]
fn a_table_that_is_not_sound_is_refused() {
    let (sound, _) =
        table_of(&[(".eh_frame", 2, &eh_frame(&[(CODE, 16, vec![]), (CODE + 0x2_0000, 1, vec![])]))]);
    let check = |change: &dyn Fn(&mut UnwindTable)| {
        let mut table = sound.clone();
        change(&mut table);
        UnwindInfo { segments: Vec::new(), code: Code::Table(table), skipped: 0 }.check()
    };
    assert_eq!(check(&|_| {}), Ok(()));
    assert!(check(&|table| table.pages.clear()).is_err());
    assert!(check(&|table| table.pages[0] += 1).is_err());
    assert!(check(&|table| table.pages.insert(0, 0)).is_err());
    assert!(check(&|table| table.first = u32::MAX).is_err());
    assert!(check(&|table| table.rows[0] |= 1).is_err());
    assert!(check(&|table| table.rows.swap(1, 2)).is_err());
    assert!(check(&|table| table.rows[1] |= 0xff_0000).is_err());
    assert!(check(&|table| table.rules.clear()).is_err());
    assert!(check(&|table| table.pages.resize(1 << 20, 0)).is_err());
    let reason = UnwindInfo { segments: Vec::new(), code: Code::None("x".repeat(5000)), skipped: 0 };
    assert!(reason.check().is_err());
}

#[test]
fn the_largest_table_fits_into_a_message() {
    let (rows, pages, rules) = table::LIMITS;
    // A page has at most 65,536 rows, whose number has three bytes; so has each length.
    assert!(rows * 4 + pages * 3 + rules * 8 + MAX_SEGMENTS * 50 + 1000 < crate::reader::wire::MAX_MESSAGE);
    let (table, _) = table_of(&[(".eh_frame", 2, &eh_frame(&[(CODE, 16, vec![])]))]);
    let sent = postcard::to_allocvec(&table).expect("written");
    assert_eq!(postcard::from_bytes(&sent), Ok(table));
}

#[test]
fn a_worker_makes_the_table_that_this_process_would() {
    let file = File::open("/proc/self/exe").expect("readable");
    let mut reader = crate::reader::Reader::start().expect("a reader");
    let id = reader.new_id();
    let info = reader.unwind(id, &file, false).expect("unwind information");
    assert_eq!(Ok(info), read(&file, false).map_err(|error| error.to_string()));
    assert_eq!(reader.lost_workers(), 0);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(section: Vec<u8>, at: prop::sample::Index, byte: u8, debug: bool) {
        let name = if debug { ".debug_frame" } else { ".eh_frame" };
        info(&elf((CODE, SIZE), &[(name, 0, &section), (".x", 0, b"x")]));
        let plt = expression(&[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22]);
        let steps = vec![(1, Cfi::CfaOffset(16)), (4, Cfi::RememberState), (9, Cfi::CfaExpression(plt))];
        let mut section = eh_frame(&[(CODE, 16, steps), (CODE + 0x100, 16, vec![])]);
        let at = at.index(section.len());
        section[at] = byte;
        info(&elf((CODE, SIZE), &[(name, 0, &section)]));
    }
}
