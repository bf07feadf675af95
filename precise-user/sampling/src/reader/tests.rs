//! Tests of the reader with real processes.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::dwarf::tests::{compiled, symbol};
use super::protocol::FoundSymbol;
use super::*;

/// Makes the program of these tests the reader when it is executed as one: it has no `main` of its
/// own to do so.
#[used]
#[unsafe(link_section = ".init_array")]
static AS_READER: extern "C" fn() = {
    extern "C" fn first() {
        run_if_reader();
    }
    first
};

#[inline(never)]
fn a_known_function(n: u64) -> u64 {
    std::hint::black_box(n) + 1
}

/// Returns this program, and the virtual address in it of [`a_known_function`].
pub(super) fn own() -> (File, u64) {
    let base = std::fs::read_to_string("/proc/self/maps")
        .expect("readable")
        .lines()
        .find_map(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
        .expect("a mapping");
    let first = a_known_function as fn(u64) -> u64 as usize as u64;
    (File::open("/proc/self/exe").expect("readable"), first - base)
}

/// Returns the names and the notes of a file.
fn names(reader: &mut Reader, file: &File, addresses: &[u64]) -> (Vec<FoundSymbol>, Vec<String>) {
    let (id, mut notes) = (reader.new_id(), Vec::new());
    let found =
        reader.symbols((id, file), None, addresses, None, |what, why| notes.push(format!("{what}: {why}")));
    (found, notes)
}

#[test]
fn functions_and_lines_of_this_program() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let (found, notes) = names(&mut reader, &file, &[address, 1 << 60]);
    assert_eq!(notes, Vec::<String>::new());
    let [FoundSymbol::Symbol(symbol), FoundSymbol::None] = &found[..] else { panic!("{found:?}") };
    assert_eq!((symbol.address, symbol.offset), (address, 0));
    assert!(symbol.name.ends_with("reader::tests::a_known_function"), "{}", symbol.name);
    assert!(symbol.line.as_ref().is_some_and(|line| line.path.ends_with("reader/tests.rs")), "{symbol:?}");
    assert_eq!(a_known_function(1), 2);
    assert_eq!(reader.lost_workers(), 0);
}

#[test]
fn a_worker_has_no_rights() {
    let mut reader = Reader::start().expect("a reader");
    let confinement = reader.confinement().expect("a worker");
    let (nursery, worker) = reader.processes();
    for process in [nursery, worker.expect("running")] {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("readable");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(u64::from_str_radix(&field(set), 16), Ok(0), "{set} of {process}");
        }
        assert_eq!(field("NoNewPrivs"), "1");
        if confinement.own_user {
            assert_eq!(u64::from_str_radix(&field("CapBnd"), 16), Ok(0));
            let users: Vec<u32> = field("Uid").split('\t').map(|id| id.parse().expect("a number")).collect();
            assert!(users.iter().all(|&user| user >= 1 << 31), "{users:?}");
            assert_eq!(field("Groups"), "");
        }
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker.unwrap())).expect("readable");
    // 2: a filter (include/uapi/linux/seccomp.h).
    assert!(status.contains("Seccomp:\t2\n"), "{status}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", worker.unwrap())).expect("readable");
    assert!(limits.contains("Max processes             0 "), "{limits}");
    // SAFETY: the call has no preconditions and cannot fail (geteuid(2)).
    if unsafe { libc::geteuid() } == 0 {
        assert!(confinement.own_user && confinement.empty_root, "{confinement:?}");
    }
}

/// Runs `attempt` in a process with the filter of a worker. Returns its error number; 0 if it
/// succeeded.
fn under_the_filter(attempt: impl FnOnce() -> io::Result<()>) -> i32 {
    // SAFETY: the child only makes system calls and allocates, which glibc allows after a fork.
    match unsafe { libc::fork() } {
        0 => {
            let tried = super::paths::handle_traps()
                .and_then(|()| super::confine::allow_few_calls().map_err(io::Error::other))
                .map_err(|_| io::Error::from_raw_os_error(255))
                .and_then(|()| attempt());
            let code = tried.map_or_else(|error| error.raw_os_error().unwrap_or(254), |()| 0);
            // SAFETY: ends the child without the handlers of the test program.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child that was just forked; `status` outlives the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            libc::WEXITSTATUS(status)
        }
    }
}

#[test]
fn a_worker_cannot_reach_anything() {
    let file = File::open("/proc/self/exe").expect("readable");
    assert_eq!(under_the_filter(|| File::open("/etc/passwd").map(drop)), libc::ENOENT);
    assert_eq!(under_the_filter(|| std::fs::metadata("/etc/passwd").map(drop)), libc::ENOENT);
    assert_eq!(under_the_filter(|| std::fs::read_link("/proc/self/exe").map(drop)), libc::ENOENT);
    assert_eq!(under_the_filter(|| File::create("/tmp/x").map(drop)), libc::ENOENT);
    assert_eq!(under_the_filter(|| std::fs::remove_file("/tmp/nonexistent")), libc::EPERM);
    assert_eq!(under_the_filter(|| std::net::UdpSocket::bind("127.0.0.1:0").map(drop)), libc::EPERM);
    assert_eq!(under_the_filter(|| std::process::Command::new("/bin/true").status().map(drop)), libc::EPERM);
    // SAFETY: an ordinary call that takes numbers.
    let kill = || if unsafe { libc::kill(1, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    assert_eq!(under_the_filter(kill), libc::EPERM);
    // Only what is in the table can be opened, by the name that it has there.
    let known = |path: &str| {
        let path = path.to_owned();
        under_the_filter(|| {
            super::paths::set([("/7-1", &file)]);
            let opened = File::open(&path)?;
            (opened.metadata()?.len() == file.metadata()?.len()).then_some(()).ok_or(io::ErrorKind::Other)?;
            Ok(())
        })
    };
    assert_eq!((known("/7-1"), known("/7-2")), (0, libc::ENOENT));
}

/// A section: name, type, flags, link, content, and the size that the table claims.
type Section<'a> = (&'a str, u32, u64, u32, &'a [u8], u64);

/// Returns a 64-bit ELF file with these sections.
fn elf(sections: &[Section<'_>]) -> File {
    let mut names = vec![0];
    let mut table = vec![0; 64];
    let mut content = Vec::new();
    let names_size = sections.iter().map(|(name, ..)| name.len() + 1).sum::<usize>() + 1;
    let after_header = |content: &Vec<u8>| 64 + content.len() as u64;
    for (name, kind, flags, link, bytes, claimed) in sections {
        let mut entry = Vec::new();
        entry.extend((names.len() as u32).to_le_bytes());
        entry.extend(kind.to_le_bytes());
        entry.extend(flags.to_le_bytes());
        entry.extend([0; 8]);
        entry.extend(after_header(&content).to_le_bytes());
        entry.extend(claimed.to_le_bytes());
        entry.extend(link.to_le_bytes());
        entry.resize(64, 0);
        entry[56] = 24;
        table.extend(&entry);
        names.extend(name.as_bytes());
        names.push(0);
        content.extend(*bytes);
    }
    let mut entry = vec![0; 64];
    entry[4] = 3;
    entry[24..32].copy_from_slice(&after_header(&content).to_le_bytes());
    entry[32..40].copy_from_slice(&(names_size as u64).to_le_bytes());
    table.extend(&entry);
    content.extend(&names);
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(64, 0);
    header[16] = 3;
    header[18] = 62;
    header[40..48].copy_from_slice(&after_header(&content).to_le_bytes());
    header[58] = 64;
    header[60] = (sections.len() + 2) as u8;
    header[62] = (sections.len() + 1) as u8;
    let mut file = tempfile::tempfile().expect("a file");
    for part in [&header, &content, &table] {
        file.write_all(part).expect("written");
    }
    file
}

/// A table of symbols with one function of 16 bytes at `address`, and its names.
fn function(address: u64, name: &str) -> (Vec<u8>, Vec<u8>) {
    let mut symbols = vec![0; 24];
    symbols.extend(1_u32.to_le_bytes());
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend(address.to_le_bytes());
    symbols.extend(16_u64.to_le_bytes());
    (symbols, [b"\0", name.as_bytes(), b"\0"].concat())
}

/// GCC puts what is seldom executed behind all other code, so the function has two ranges.
const TWO_PARTS: &str = "
extern int puts(const char *);
__attribute__((noinline, cold)) int complain(int n) { puts(\"n\"); return n * 3; }
__attribute__((noinline)) int in_parts(volatile int *p, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (__builtin_expect(p[i] < 0, 0)) sum += complain(p[i]) + complain(i);
        sum += p[i];
    }
    return sum;
}
int main(int n, char **v) { (void)v; volatile int p[4] = { n, 2, 3, 4 }; return in_parts(p, 4); }";

#[test]
fn each_part_of_a_function_has_its_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), TWO_PARTS);
    let mut reader = Reader::start().expect("a reader");
    let file = File::open(&program).expect("readable");
    for name in ["in_parts", "in_parts.cold"] {
        let (address, size) = symbol(&program, name);
        let (found, notes) = names(&mut reader, &file, &[address, address + size - 1]);
        assert_eq!(notes, Vec::<String>::new());
        for (found, offset) in found.iter().zip([0, size - 1]) {
            let FoundSymbol::Symbol(symbol) = found else { panic!("{found:?}") };
            assert_eq!((&*symbol.name, symbol.address), (name, address));
            assert_eq!((symbol.offset, symbol.size), (offset, Some(size)));
            assert!(symbol.line.as_ref().is_some_and(|line| line.path.ends_with("a.c")), "{symbol:?}");
        }
    }
}

#[test]
fn a_file_without_debug_information_has_its_symbols() {
    let mut reader = Reader::start().expect("a reader");
    let (symbols, texts) = function(0x1000, "_ZN5space3fooEibc");
    let file = elf(&[
        (".symtab", 2, 0, 2, &symbols, symbols.len() as u64),
        (".strtab", 3, 0, 0, &texts, texts.len() as u64),
    ]);
    let (found, notes) = names(&mut reader, &file, &[0x1004, 0x2000]);
    assert_eq!(notes, Vec::<String>::new());
    let [FoundSymbol::Symbol(symbol), FoundSymbol::None] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&*symbol.name, symbol.offset, symbol.size), ("space::foo(int, bool, char)", 4, Some(16)));
}

#[test]
fn what_a_file_claims_is_not_believed() {
    let mut reader = Reader::start().expect("a reader");
    let (symbols, texts) = function(0x1000, "f");
    let mut compressed = vec![1, 0, 0, 0, 0, 0, 0, 0];
    compressed.extend((1_u64 << 40).to_le_bytes());
    compressed.extend([1, 0, 0, 0, 0, 0, 0, 0, 0x78, 0x9c]);
    let claims = elf(&[
        (".symtab", 2, 0, 2, &symbols, symbols.len() as u64),
        (".strtab", 3, 0, 0, &texts, texts.len() as u64),
        (".debug_info", 1, 1 << 11, 0, &compressed, compressed.len() as u64),
    ]);
    let (found, notes) = names(&mut reader, &claims, &[0x1000]);
    assert!(matches!(&found[..], [FoundSymbol::Symbol(symbol)] if &*symbol.name == "f"), "{found:?}");
    assert!(notes[0].contains("decompressed debug information take 1048576 MiB"), "{notes:?}");

    // A table of symbols that is a hole of 4 TiB.
    let holes = elf(&[(".symtab", 2, 0, 1, &symbols, 1 << 42)]);
    holes.set_len(1 << 43).expect("a sparse file");
    let (found, notes) = names(&mut reader, &holes, &[0x1000]);
    assert_eq!(found, [FoundSymbol::Failed]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[1].starts_with("symbols: its symbols and debug information take 4194304 MiB"), "{notes:?}");

    // Nothing of this cost a worker.
    assert_eq!(reader.lost_workers(), 0);
}

/// Ctrl-C is for all processes in front of a terminal, and SIGTERM for all of a service.
#[test]
fn what_ends_a_run_does_not_end_its_reader() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    names(&mut reader, &file, &[address]);
    let (nursery, worker) = reader.processes();
    for process in [nursery, worker.expect("running")] {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: sends a signal to a process of this test.
            assert_eq!(unsafe { libc::kill(process.cast_signed(), signal) }, 0);
        }
    }
    let (found, notes) = names(&mut reader, &file, &[address, 1 << 60]);
    assert!(matches!(&found[..], [FoundSymbol::Symbol(_), FoundSymbol::None]), "{found:?}");
    assert_eq!((notes, reader.lost_workers()), (Vec::new(), 0));
    assert_eq!(reader.processes(), (nursery, worker));
}

#[test]
fn a_file_may_shrink_while_it_is_used() {
    let mut reader = Reader::start().expect("a reader");
    let (symbols, texts) = function(0x1000, "f");
    let sections: [Section<'_>; 2] = [
        (".symtab", 2, 0, 2, &symbols, symbols.len() as u64),
        (".strtab", 3, 0, 0, &texts, texts.len() as u64),
    ];
    let file = elf(&sections);
    let id = reader.new_id();
    let named = |reader: &mut Reader| reader.symbols((id, &file), None, &[0x1000], None, |_, _| ());
    let before = named(&mut reader);
    file.set_len(0).expect("truncated");
    assert_eq!(named(&mut reader), before);
    assert!(matches!(&before[..], [FoundSymbol::Symbol(_)]));
    // Not even when nothing of it was read yet.
    let (found, _) = names(&mut reader, &file, &[0x1000]);
    assert_eq!((found, reader.lost_workers()), (vec![FoundSymbol::Failed], 0));
}

#[test]
fn the_loss_of_a_worker_costs_no_other_file() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let (found, _) = names(&mut reader, &file, &[address]);
    let (_, worker) = reader.processes();
    let worker = worker.expect("running").cast_signed();
    // SAFETY: the process is the reader's worker, which runs until the reader ends it.
    assert_eq!(unsafe { libc::kill(worker, libc::SIGKILL) }, 0);
    let before = cpu_ns(ReaderUse::Names);
    let (again, notes) = names(&mut reader, &file, &[address]);
    assert_eq!((again, notes, reader.lost_workers()), (found, Vec::new(), 1));
    // What an ended worker has taken still counts.
    assert!(before > 0 && cpu_ns(ReaderUse::Names) >= before);
}

/// Kills the nursery and waits until it is gone, and the worker with it.
pub(super) fn kill_nursery(reader: &Reader) {
    let (nursery, worker) = reader.processes();
    // SAFETY: the process is the reader's nursery, which the reader has not waited for.
    assert_eq!(unsafe { libc::kill(nursery.cast_signed(), libc::SIGKILL) }, 0);
    let worker = worker.map(|worker| format!("/proc/{worker}/exe"));
    let ended = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        worker.as_ref().is_none_or(|exe| std::fs::read_link(exe).is_err())
    });
    assert!(ended, "the worker outlives the nursery");
}

#[test]
fn a_nursery_that_is_killed_is_replaced() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let (before, _) = names(&mut reader, &file, &[address]);
    let (first, confinement) = (reader.processes().0, reader.confinement());
    kill_nursery(&reader);
    let (after, notes) = names(&mut reader, &file, &[address]);
    assert_eq!((after, notes), (before, Vec::new()));
    let (second, worker) = reader.processes();
    assert_ne!(second, first);
    // The programs learn whose samples they leave out from this word.
    let helpers = reader.helpers().load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(helpers, precise_common::ledger::own::pack(second, worker.expect("running")));
    // This process has its rights still, so the second one has the protections of the first.
    assert_eq!(reader.confinement(), confinement);
    let said = reader.take_notes();
    assert!(matches!(&said[..], [one] if one.ends_with("was killed, and was started again")), "{said:?}");
}

#[test]
fn a_file_is_not_blamed_for_the_end_of_the_nursery() {
    let mut reader = Reader::start().expect("a reader");
    // A fresh worker that ends is the fault of the file that it reads.
    reader.confinement().expect("a worker");
    kill_nursery(&reader);
    let (file, address) = own();
    let (found, notes) = names(&mut reader, &file, &[address]);
    assert!(
        matches!(&found[..], [FoundSymbol::Symbol(symbol)] if symbol.line.is_some()),
        "{found:?} {notes:?}"
    );
}

#[test]
fn protections_that_are_gone_are_named() {
    let all = Confinement { own_user: true, empty_root: true, own_network: true, landlock: true };
    assert!(all.missing_in(all).is_empty() && Confinement::default().missing_in(all).is_empty());
    let less = Confinement { own_user: false, landlock: false, ..all };
    assert_eq!(all.missing_in(less), ["user id of their own", "Landlock rules"]);
}

#[test]
fn the_reader_ends_with_its_handle() {
    let mut reader = Reader::start().expect("a reader");
    reader.confinement().expect("a worker");
    let (nursery, worker) = reader.processes();
    drop(reader);
    for process in [Some(nursery), worker].into_iter().flatten() {
        let folder = format!("/proc/{process}");
        let gone = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !Path::new(&folder).exists()
        });
        assert!(gone, "{process}");
    }
}

/// Sections with debug information of one function at 0x1000, in which `depth` functions are
/// inlined into each other.
fn nested(depth: usize) -> [Vec<u8>; 3] {
    // DWARF 4: code, tag, whether there are children, then pairs of attribute and form.
    const LOW: [u8; 2] = [0x11, 0x01];
    const HIGH: [u8; 2] = [0x12, 0x07];
    let mut abbreviations = vec![1, 0x11, 1];
    abbreviations.extend([LOW, HIGH, [0x10, 0x17], [0, 0]].concat());
    abbreviations.extend([2, 0x2e, 1, 0x03, 0x08]);
    abbreviations.extend([LOW, HIGH, [0, 0]].concat());
    abbreviations.extend([3, 0x1d, 1]);
    abbreviations.extend([LOW, HIGH, [0, 0]].concat());
    abbreviations.push(0);
    let range = [0x1000_u64.to_le_bytes(), 16_u64.to_le_bytes()].concat();
    let mut unit = [&4_u16.to_le_bytes()[..], &[0; 4], &[8]].concat();
    unit.push(1);
    unit.extend(&range);
    unit.extend([0; 4]);
    unit.extend(b"\x02f\0");
    unit.extend(&range);
    for _ in 0..depth {
        unit.push(3);
        unit.extend(&range);
    }
    unit.extend(vec![0; depth + 2]);
    // One line of one file, from the first address of the range to its last.
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0];
    header.extend(b"x.c\0\0\0\0\0");
    let program = [&[0, 9, 2][..], &range[..8], &[1, 2, 16, 0, 1, 1]].concat();
    let lines = [&4_u16.to_le_bytes()[..], &(header.len() as u32).to_le_bytes(), &header, &program].concat();
    let with_length = |content: Vec<u8>| [&(content.len() as u32).to_le_bytes()[..], &content].concat();
    [abbreviations, with_length(unit), with_length(lines)]
}

#[test]
fn a_file_that_ends_its_reader_loses_only_its_lines() {
    let mut reader = Reader::start().expect("a reader");
    let (good, address) = own();
    let (before, _) = names(&mut reader, &good, &[address]);
    let (symbols, texts) = function(0x1000, "f");
    let file = |depth| {
        let [abbreviations, info, lines] = nested(depth);
        elf(&[
            (".symtab", 2, 0, 2, &symbols, symbols.len() as u64),
            (".strtab", 3, 0, 0, &texts, texts.len() as u64),
            (".debug_abbrev", 1, 0, 0, &abbreviations, abbreviations.len() as u64),
            (".debug_info", 1, 0, 0, &info, info.len() as u64),
            (".debug_line", 1, 0, 0, &lines, lines.len() as u64),
        ])
    };
    let is_f = |found: &[FoundSymbol]| matches!(found, [FoundSymbol::Symbol(symbol)] if &*symbol.name == "f");

    // With a sound file of this kind the generator is shown to be right.
    let (found, notes) = names(&mut reader, &file(20), &[0x1000]);
    assert!(is_f(&found) && notes.is_empty(), "{found:?} {notes:?}");
    let [FoundSymbol::Symbol(symbol)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((symbol.inlined.len(), symbol.line.is_some()), (20, true));

    let (found, notes) = names(&mut reader, &file(1_000_000), &[0x1000]);
    assert!(is_f(&found), "{found:?} {notes:?}");
    assert!(
        notes.iter().any(|note| note.starts_with("line information: the process that read it crashed")),
        "{notes:?}"
    );
    assert!(reader.lost_workers() >= 1);

    let (after, notes) = names(&mut reader, &good, &[address]);
    assert_eq!((after, notes), (before, Vec::new()));
}
