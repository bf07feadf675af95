//! Every step through a table is what gimli computes from the same section: the ELF files of this
//! machine, random registers, a random stack.
//!
//! The translation here is not the one of the product. It evaluates rows to numbers, and knows
//! nothing of rules.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gimli::{
    CfaRule, CieOrFde, EvaluationResult, FrameDescriptionEntry, Location, Register, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, Value, X86_64,
};
use precise_common::unwind::{End, Frame, Memory, Region, Rule, kind, region, row, span, step};

use super::functions::Bytes;
use super::*;

/// A random number for a number (SplitMix64).
fn random(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A table, mapped somewhere, and a memory with a random word at each address.
struct Mapped<'a> {
    table: &'a UnwindTable,
    pages: Vec<u64>,
    bias: u64,
    seed: u64,
}

impl<'a> Mapped<'a> {
    fn new(table: &'a UnwindTable, seed: u64) -> Self {
        let mut first = 0;
        let page = |&count: &u32| {
            first += count;
            span::pack(first - count, count)
        };
        let pages = table.pages.iter().map(page).collect();
        Self { table, pages, bias: (random(seed) & 0xffff_ffff) << 12, seed }
    }

    /// Returns a word that lies above every stack pointer.
    fn at(&self, address: u64) -> u64 {
        0x7800_0000_0000 | random(self.seed ^ address) >> 20
    }
}

impl Memory for Mapped<'_> {
    fn region(&self, _: u32) -> Option<Region> {
        let (pages, first) = (span::pack(0, self.pages.len() as u32), self.table.first);
        Some(Region { start: 0, end: u64::MAX, bias: self.bias, pages, first, kind: region::TABLE })
    }
    fn page(&self, index: u32) -> Option<u64> {
        self.pages.get(index as usize).copied()
    }
    fn rows(&self, index: u32) -> Option<u64> {
        let row = |index| self.table.rows.get(index as usize).copied().map(u64::from);
        Some(row(index * 2)? | row(index * 2 + 1).unwrap_or(u64::MAX) << 32)
    }
    fn rule(&self, index: u32) -> Option<Rule> {
        self.table.rules.get(index as usize).copied()
    }
    fn word(&self, address: u64) -> Option<u64> {
        Some(self.at(address))
    }
    fn words(&self, address: u64) -> Option<[u64; 2]> {
        Some([self.at(address), self.at(address.wrapping_add(8))])
    }
}

/// The registers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Registers {
    ip: u64,
    sp: u64,
    /// `None`: not known.
    bp: Option<u64>,
}

/// What gimli says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Caller(Registers),
    Root,
    /// An expression that needs more than registers and memory, or a rule without a meaning.
    Unknown,
}

struct Oracle<'m, S> {
    section: &'m S,
    memory: &'m Mapped<'m>,
    now: Registers,
}

impl<'m, S> Oracle<'m, S> {
    fn register(&self, register: Register) -> Option<u64> {
        match register {
            X86_64::RSP => Some(self.now.sp),
            X86_64::RBP => self.now.bp,
            X86_64::RA => Some(self.now.ip),
            _ => None,
        }
    }

    fn expression<'a>(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64>
    where
        S: UnwindSection<Bytes<'a>>,
    {
        let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut evaluation = expression.get(self.section).ok()?.evaluation(encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.memory.at(address))).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().as_slice() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                _ => None,
            },
            _ => None,
        }
    }

    fn value<'a>(&self, rule: Option<RegisterRule<usize>>, register: Register, cfa: u64) -> Option<u64>
    where
        S: UnwindSection<Bytes<'a>>,
    {
        match rule {
            None if register == X86_64::RSP => Some(cfa),
            None | Some(RegisterRule::SameValue) => self.register(register),
            Some(RegisterRule::Offset(offset)) => Some(self.memory.at(cfa.wrapping_add_signed(offset))),
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => self.register(other),
            Some(RegisterRule::Expression(at)) => Some(self.memory.at(self.expression(&at, Some(cfa))?)),
            Some(RegisterRule::ValExpression(value)) => self.expression(&value, Some(cfa)),
            Some(_) => None,
        }
    }

    fn caller<'a>(&self, row: &gimli::UnwindTableRow<usize>) -> Expected
    where
        S: UnwindSection<Bytes<'a>>,
    {
        let rule = row.register(X86_64::RA);
        if rule == Some(RegisterRule::Undefined) {
            return Expected::Root;
        }
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(*register).map(|value| value.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.expression(expression, None),
        };
        let found = || {
            let cfa = cfa?;
            let ip = self.value(rule, X86_64::RA, cfa)?;
            let sp = self.value(row.register(X86_64::RSP), X86_64::RSP, cfa)?;
            Some(Registers { ip, sp, bp: self.value(row.register(X86_64::RBP), X86_64::RBP, cfa) })
        };
        found().map_or(Expected::Unknown, Expected::Caller)
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    files: u64,
    bytes: u64,
    text: u64,
    rows: u64,
    unsupported: u64,
    lost: u64,
    addresses: u64,
    damaged: u64,
}

impl Compared {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.text += other.text;
        self.rows += other.rows;
        self.unsupported += other.unsupported;
        self.lost += other.lost;
        self.addresses += other.addresses;
        self.damaged += other.damaged;
    }
}

/// Returns what the table says of an address.
fn found(memory: &Mapped<'_>, now: Registers) -> Result<Registers, End> {
    let region = Region::default();
    let mut frame = Frame { ip: now.ip, sp: now.sp, bp: now.bp.unwrap_or(0), exact: 1, region };
    step(memory, span::pack(0, 1), &mut frame)?;
    Ok(Registers { ip: frame.ip, sp: frame.sp, bp: (frame.bp != 0).then_some(frame.bp) })
}

/// Compares a table with a section, at the start, the end and random addresses of each row, and
/// around each function.
fn compare<'a, S>(
    path: &Path,
    table: &UnwindTable,
    section: &S,
    bases: &BaseAddresses,
    code: &[Segment],
) -> Compared
where
    S: UnwindSection<Bytes<'a>>,
{
    let mut compared = Compared::default();
    let seed = random(table.rows.len() as u64);
    let memory = Mapped::new(table, seed);
    let mut functions: Vec<FrameDescriptionEntry<Bytes<'_>>> = Vec::new();
    let mut entries = section.entries(bases);
    while let Some(entry) = entries.next().expect("a sound section") {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(S::cie_from_offset).expect("a sound function");
        let held = |s: &Segment| (s.vaddr..s.vaddr + s.file_size).contains(&fde.initial_address());
        if fde.len() > 0 && code.iter().any(held) {
            functions.push(fde);
        }
    }
    functions.sort_by_key(FrameDescriptionEntry::initial_address);
    let mut context = UnwindContext::new();
    let mut end = 0;
    for (at, fde) in functions.iter().enumerate() {
        let next = functions.get(at + 1).map_or(u64::MAX, FrameDescriptionEntry::initial_address);
        assert!(fde.initial_address() >= end && fde.end_address() <= next, "functions overlap in {path:?}");
        end = fde.end_address();
        let mut rows = fde.rows(section, bases, &mut context).expect("sound rows");
        let mut done = fde.initial_address();
        loop {
            let row = match rows.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(_) => {
                    let now = Registers { ip: done + memory.bias, sp: 8, bp: None };
                    assert_eq!(found(&memory, now), Err(End::Unsupported), "{path:?} {done:#x}: damaged");
                    compared.damaged += 1;
                    break;
                }
            };
            done = row.end_address();
            let last = row.end_address().min(end);
            if row.start_address() >= last {
                continue;
            }
            let between = random(seed ^ last) % (last - row.start_address());
            for address in [row.start_address(), row.start_address() + between, last - 1] {
                let n = random(address ^ seed);
                let sp = 0x7000_0000_0000 | n >> 28 & !7;
                let now = Registers { ip: address + memory.bias, sp, bp: Some(sp + (n & 0xff8)) };
                let expected = Oracle { section, memory: &memory, now }.caller(row);
                let found = found(&memory, now);
                compared.addresses += 1;
                match (expected, found) {
                    (_, Err(End::Unsupported)) => {}
                    (Expected::Root, Err(End::Root)) => {}
                    (Expected::Caller(caller), Err(End::Stuck)) if caller.sp <= now.sp => {}
                    (Expected::Caller(expected), Ok(found)) => {
                        let agree = (expected.ip, expected.sp) == (found.ip, found.sp)
                            && (found.bp.is_none() || found.bp == expected.bp);
                        assert!(agree, "{path:?} {address:#x}: {expected:x?}, not {found:x?}");
                        compared.lost += u64::from(found.bp.is_none() && expected.bp.is_some());
                    }
                    (expected, found) => panic!("{path:?} {address:#x}: {expected:x?}, not {found:x?}"),
                }
            }
        }
        if end < next {
            let now = Registers { ip: end + memory.bias, sp: 8, bp: None };
            assert_eq!(found(&memory, now), Err(End::NoTable), "{path:?} {end:#x}: behind a function");
        }
    }
    compared
}

/// Compares the table of a file; `None` if it has none.
fn check_file(path: &Path) -> Option<(Compared, f64)> {
    let file = File::open(path).ok()?;
    let begun = Instant::now();
    let info = read(&file, false).ok()?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!(info.check(), Ok(()), "{path:?}");
    let Code::Table(table) = &info.code else { return None };
    let mut header = [0; 64];
    let got = read_up_to(&file, &mut header, 0).ok()?;
    let sections = Sections::read(&file, &header, got).ok()?;
    let address = |name: &str| sections.named(name).map_or(0, |section| section.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let content =
        |name| content(&file, &sections, name).expect("readable").ok().flatten().unwrap_or_default();
    let eh_frame = content(".eh_frame");
    let eh_frame = EhFrame::new(&eh_frame, LittleEndian);
    let mut compared = compare(path, table, &eh_frame, &bases, &info.segments);
    assert_eq!(info.skipped, compared.damaged, "{path:?}");
    compared.files = 1;
    compared.bytes = (table.rows.len() * 4 + table.pages.len() * 8 + table.rules.len() * 8) as u64;
    compared.text = info.segments.iter().map(|segment| segment.file_size).sum();
    compared.rows = table.rows.len() as u64;
    let is = |row: &&u32, kind| table.rules[row::rule(**row) as usize].kind() == kind;
    compared.unsupported = table.rows.iter().filter(|row| is(row, kind::UNSUPPORTED)).count() as u64;
    Some((compared, ms))
}

/// Returns the files below a folder that may be programs, without links.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            programs(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn all_programs(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| programs(Path::new(folder), &mut found));
    found.sort();
    found
}

/// Compares the tables of files, and asserts that almost all rows are supported.
fn check_files(files: impl IntoIterator<Item = PathBuf>) -> Compared {
    let mut all = Compared::default();
    for path in files {
        let Some((file, ms)) = check_file(&path) else { continue };
        let (text, table) = (file.text as f64, file.bytes as f64);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = ["libc.so.6", "libstdc++.so.6", "python3"].iter().any(|known| name.starts_with(known));
        if file.text > 20 << 20 || known {
            let (per_mb, percent) = (ms / (text / 1e6), 100.0 * table / text);
            println!(
                "{ms:6.1} ms, {per_mb:.1} per MB, {} rows, {percent:.1} % of text, {} unsupported: {}",
                file.rows,
                file.unsupported,
                path.display()
            );
        }
        all.add(&file);
    }
    let unsupported = 100.0 * all.unsupported as f64 / all.rows as f64;
    println!("{all:?}: {unsupported:.3} % unsupported");
    assert!(all.rows > 1000 && unsupported <= 1.0, "{all:?}");
    all
}

/// Returns the largest library of the system; `None` if there is none.
fn largest_library() -> Option<PathBuf> {
    let mut libraries = all_programs(&["/usr/lib/x86_64-linux-gnu"]);
    libraries.retain(|path| path.to_string_lossy().contains(".so"));
    libraries.into_iter().max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
}

#[test]
fn the_table_of_the_largest_library_comes_through_a_reader() {
    let Some(path) = largest_library() else { return };
    let file = File::open(&path).expect("readable");
    let mut reader = crate::reader::Reader::start().expect("a reader");
    let id = reader.new_id();
    let info = reader.unwind(id, &file, false).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    assert!(matches!(info.code, Code::Table(_)), "{path:?}: {:?}", info.code);
    assert_eq!(reader.lost_workers(), 0);
}

#[test]
fn a_damaged_program_is_survived() {
    let path = ["/usr/bin/true", "/bin/true"].into_iter().find(|path| Path::new(path).exists());
    let Some(path) = path else { return };
    let sound = std::fs::read(path).expect("readable");
    let damaged = tempfile::tempfile().expect("a file");
    for round in 0..2000 {
        let mut bytes = sound.clone();
        // The headers, the table of sections, or anything: 1 to 8 bytes.
        let (from, room) = match round % 3 {
            0 => (0, 1024),
            1 => (bytes.len() - 2048, 2048),
            _ => (0, bytes.len()),
        };
        for change in 0..=random(round) % 8 {
            let n = random(round << 8 | change);
            bytes[from + n as usize % room] = (n >> 56) as u8;
        }
        if round % 16 == 0 {
            bytes.truncate(random(!round) as usize % bytes.len());
        }
        damaged.set_len(0).expect("truncated");
        std::os::unix::fs::FileExt::write_all_at(&damaged, &bytes, 0).expect("written");
        if let Ok(info) = read(&damaged, true) {
            assert_eq!(info.check(), Ok(()), "round {round}");
        }
    }
}

/// Files of at most this size are compared in each test run.
const SMALL: u64 = 4 << 20;

#[test]
fn a_sample_of_the_files_of_the_machine() {
    let mut files = all_programs(&["/usr/bin", "/usr/lib/x86_64-linux-gnu"]);
    files.retain(|path| path.metadata().is_ok_and(|metadata| metadata.len() <= SMALL));
    // The same ones each time, so that a failure can be repeated.
    files.sort_by_cached_key(|path| random(u64::from(crc32fast::hash(path.as_os_str().as_encoded_bytes()))));
    files.truncate(60);
    files.push("/usr/lib/x86_64-linux-gnu/libc.so.6".into());
    check_files(files);
}

/// Run it with `cargo test -p precise-sampling --lib all_files_of -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute: every ELF file of the machine"]
fn all_files_of_the_machine() {
    check_files(all_programs(&["/usr", "/opt", "/root/.rustup"]));
}
