//! Tests of the whole symbolization on real processes and real files. They need no PMU, but root,
//! for `/proc/PID/map_files`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::mapping::{Image, MapKind, Mapped, Mapping};
use super::*;
use crate::reader::Reader;
use precise_model::{CodeLocation, DataLocation, Name, NameId, Names};
use precise_records::record::{BuildId, MappedFileId};

const ALWAYS: std::ops::Range<u64> = 0..u64::MAX;

/// Prints the addresses of variables and of an instruction inside two inlined functions, and then
/// waits.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int table[16] = {1, 2, 3};
static long zeros[64];
struct pair { long a, b; } exported = {1, 2};
const char text[] = "read only";
static inline __attribute__((always_inline)) void *innermost(int *p) {
    void *here;
    (*p)++;
    __asm__ volatile("leaq 1f(%%rip), %0\n1: nop" : "=r"(here)); /* line 11 */
    return here;
}
static inline __attribute__((always_inline)) void *middle(int *p) {
    void *here = innermost(p); /* line 15 */
    zeros[3]++;
    return here;
}
__attribute__((noinline)) void *outermost(int *p) {
    return middle(p); /* line 20 */
}
int main(void) {
    int local = 0;
    void *heap = malloc(100);
    printf("%p %p %p %p %p %p %p\n", outermost(&table[1]), (void *)&table[2], (void *)&zeros[5],
           (void *)&exported.b, (void *)&text[3], (void *)&local, heap);
    fflush(stdout);
    getchar();
    return 0;
}
"#;

struct Fixture {
    dir: tempfile::TempDir,
    exe: PathBuf,
    child: Child,
    /// Addresses in this order: instruction, table, zeros, exported, text, local, heap.
    at: Vec<u64>,
    processes: Processes,
}

pub(super) fn compile(dir: &Path, flags: &[&str]) -> PathBuf {
    let (source, exe) = (dir.join("program.c"), dir.join("program"));
    std::fs::write(&source, PROGRAM).expect("written");
    let status = Command::new("gcc").args(flags).arg("-o").arg(&exe).arg(&source).status().expect("gcc runs");
    assert!(status.success());
    exe
}

impl Fixture {
    fn new(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let exe = compile(dir.path(), flags);
        Self::run(dir, exe)
    }

    fn run(dir: tempfile::TempDir, exe: PathBuf) -> Self {
        let mut child =
            Command::new(&exe).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
        let parse = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a pointer");
        let at = line.split_whitespace().map(parse).collect();
        let mut processes = Processes::new(process::HistoryLimits::default());
        processes.snapshot_proc(Path::new("/"), child.id(), 1).expect("alive");
        Self { dir, exe, child, at, processes }
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }

    fn code(&self, nth: usize) -> CodeQuery {
        CodeQuery::user(&self.processes, self.child.id(), self.at[nth], &ALWAYS)
    }

    fn data(&self, nth: usize) -> DataQuery {
        DataQuery::new(&self.processes, self.child.id(), self.at[nth], 1, &ALWAYS)
    }

    fn exe(&self) -> String {
        self.exe.to_str().expect("text").to_owned()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader() -> Reader {
    Reader::start().expect("a reader")
}

pub(super) fn spawn() -> (Symbolizer, Names) {
    (Symbolizer::spawn(SymbolOptions::default(), reader()).expect("a thread"), Names::default())
}

pub(super) fn text(names: &Names, name: Name) -> String {
    match name {
        Name::Known(id) => names.get(id).to_owned(),
        Name::Unknown(reason) => format!("<{}>", reason.as_str()),
    }
}

fn one_code(query: CodeQuery) -> (CodeLocation, Names) {
    let (mut symbols, mut names) = spawn();
    let location = symbols.resolve_code(&mut names, vec![query]).pop().expect("an answer");
    assert_eq!(symbols.take_notes(), [""; 0]);
    (location, names)
}

fn one_data(query: DataQuery) -> (DataLocation, Names) {
    let (mut symbols, mut names) = spawn();
    let location = symbols.resolve_data(&mut names, vec![query]).pop().expect("an answer");
    (location, names)
}

/// Checks the location of the instruction that the program printed: three frames, each with its
/// line.
pub(super) fn check_frames(location: &CodeLocation, names: &Names, exe: &str) {
    assert_eq!(text(names, location.function), "innermost");
    assert!(text(names, location.source).ends_with("/program.c"));
    assert_eq!(location.line, 11);
    let frames: Vec<_> = location.inlined_into.iter().map(|f| (names.get(f.function), f.line)).collect();
    assert_eq!(frames, [("middle", 15), ("outermost", 20)]);
    assert_eq!(text(names, location.module), exe);
    assert!(location.function_offset > 0 && location.file_offset > 0x1000);
}

pub(super) fn variable(names: &Names, location: &DataLocation) -> (String, String, u64) {
    (text(names, location.region), text(names, location.variable), location.variable_offset)
}

#[test]
fn a_program_that_is_gone_keeps_its_names() {
    for flags in [&["-g", "-O2"][..], &["-g", "-O2", "-no-pie"], &["-g", "-O2", "-static"]] {
        let mut fixture = Fixture::new(flags);
        let exe = fixture.exe();
        fixture.kill();
        let (location, names) = one_code(fixture.code(0));
        check_frames(&location, &names, &exe);

        let (mut symbols, mut names) = spawn();
        let queries = (1..7).map(|nth| fixture.data(nth)).collect();
        let found = symbols.resolve_data(&mut names, queries);
        let found: Vec<_> = found.iter().map(|location| variable(&names, location)).collect();
        let expected = |name: &str, offset| (exe.clone(), name.to_owned(), offset);
        assert_eq!(found[0], expected("table", 8), "{flags:?}");
        assert_eq!(found[1], expected("zeros", 40), "{flags:?}");
        assert_eq!(found[2], expected("exported", 8), "{flags:?}");
        assert_eq!(found[3], expected("text", 3), "{flags:?}");
        assert_eq!(found[4], ("[stack]".into(), "<no-symbol>".into(), 0), "{flags:?}");
        assert_eq!(found[5], ("[heap]".into(), "<no-symbol>".into(), 0), "{flags:?}");
    }
}

#[test]
fn a_build_id_is_read_from_the_file() {
    let fixture = Fixture::new(&["-g", "-O2", "-Wl,--build-id=0x0123456789abcdef"]);
    let (location, names) = one_code(fixture.code(0));
    assert_eq!(names.get(location.build_id), "0123456789abcdef");
}

#[test]
fn a_file_that_was_opened_early_survives_its_deletion() {
    let mut fixture = Fixture::new(&["-g", "-O2"]);
    let (mut symbols, mut names) = spawn();
    symbols.open_early(fixture.processes.take_new_files(), Wait::No);
    // The queue is ordered, so the answer comes after the files were opened.
    symbols.resolve_code(&mut names, vec![CodeQuery::kernel(0)]);
    fixture.kill();
    std::fs::remove_file(&fixture.exe).expect("removed");
    let location = symbols.resolve_code(&mut names, vec![fixture.code(0)]).pop().expect("an answer");
    check_frames(&location, &names, &fixture.exe());
    assert_eq!(symbols.not_opened(), 0);

    // A symbolizer that comes too late reports the missing file.
    let (location, names) = one_code(fixture.code(0));
    assert_eq!(text(&names, location.function), "<file-missing>");
    assert_eq!(text(&names, location.module), fixture.exe());
}

#[test]
fn a_replaced_file_is_not_mistaken_for_the_mapped_one() {
    let mut fixture = Fixture::new(&["-g", "-O2"]);
    let other = tempfile::tempdir_in(fixture.dir.path()).expect("a directory");
    let replacement = compile(other.path(), &["-g", "-O0"]);
    std::fs::rename(replacement, &fixture.exe).expect("replaced");

    // The mapping still leads to the right file while the process exists.
    let (location, names) = one_code(fixture.code(0));
    check_frames(&location, &names, &fixture.exe());
    fixture.kill();
    let (location, names) = one_code(fixture.code(0));
    assert_eq!(text(&names, location.function), "<file-changed>");
    assert_eq!(text(&names, location.source), "<file-changed>");
    let (location, names) = one_data(fixture.data(1));
    assert_eq!(variable(&names, &location), (fixture.exe(), "<file-changed>".into(), 0));
}

#[test]
fn a_build_id_that_differs_is_a_changed_file() {
    let mut fixture = Fixture::new(&["-g", "-O2", "-Wl,--build-id=0x0123456789abcdef"]);
    fixture.kill();
    let mut query = fixture.code(0);
    let with_id = |query: &mut CodeQuery, id: &[u8]| {
        let mapped = query.mapping.as_mut().expect("mapped");
        let old = mapped.mapping.image.as_ref().expect("a file");
        let id = MappedFileId::BuildId(BuildId::new(id).expect("not empty"));
        mapped.mapping.image = Some(Arc::new(Image { id, ..Image::clone(old) }));
    };
    with_id(&mut query, &[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    let (location, names) = one_code(query.clone());
    check_frames(&location, &names, &fixture.exe());
    with_id(&mut query, &[0xff; 8]);
    let (location, names) = one_code(query);
    assert_eq!(text(&names, location.function), "<file-changed>");
    assert_eq!(names.get(location.build_id), "ffffffffffffffff");
}

#[test]
fn separate_debug_information_is_found_by_build_id() {
    let dir = tempfile::tempdir().expect("a directory");
    let exe = compile(dir.path(), &["-g", "-O2", "-Wl,--build-id=0x0123456789abcdef"]);
    let debug = dir.path().join("debug/.build-id/01");
    std::fs::create_dir_all(&debug).expect("a directory");
    let debug = debug.join("23456789abcdef.debug");
    let objcopy = |args: &[&std::ffi::OsStr]| {
        assert!(Command::new("objcopy").args(args).status().expect("objcopy runs").success());
    };
    objcopy(&["--only-keep-debug".as_ref(), exe.as_os_str(), debug.as_os_str()]);
    objcopy(&["--strip-all".as_ref(), exe.as_os_str()]);
    let mut fixture = Fixture::run(dir, exe);
    fixture.kill();

    let debug_dirs = vec![fixture.dir.path().join("debug")];
    let options = SymbolOptions { debug_dirs, ..SymbolOptions::default() };
    let (mut symbols, mut names) =
        (Symbolizer::spawn(options, reader()).expect("a thread"), Names::default());
    let location = symbols.resolve_code(&mut names, vec![fixture.code(0)]).pop().expect("an answer");
    check_frames(&location, &names, &fixture.exe());
    let location = symbols.resolve_data(&mut names, vec![fixture.data(2)]).pop().expect("an answer");
    assert_eq!(variable(&names, &location), (fixture.exe(), "zeros".into(), 40));

    // Without the debug information, the file alone has no names.
    let (location, names) = one_code(fixture.code(0));
    assert_eq!(text(&names, location.function), "<no-symbol>");
    assert_eq!(text(&names, location.source), "<no-line>");
}

#[test]
fn a_cache_line_is_named_after_the_variable_that_begins_in_it() {
    let fixture = Fixture::new(&["-g", "-O2"]);
    let mut query = fixture.data(3);
    // `exported` begins 8 bytes below; `table` ends directly before it, or there is padding. A
    // query with a granule finds a variable at the latest from 4 bytes before the text; a query
    // without one may find nothing.
    query.address = (fixture.at[3] - 8) & !63;
    query.granule = 64;
    let (location, names) = one_data(query);
    assert!(matches!(location.variable, Name::Known(_)), "{:?}", variable(&names, &location));
}

#[test]
fn a_program_in_another_mount_namespace() {
    let dir = tempfile::tempdir().expect("a directory");
    compile(dir.path(), &["-g", "-O2"]);
    // Another file system is mounted over the directory, visible only to the program.
    let script = "cp \"$1\" /tmp/$$.keep && mount -t tmpfs none \"$2\" && mv /tmp/$$.keep \"$2\"/inside \
                  && exec \"$2\"/inside";
    let wrapper = dir.path().join("wrapper");
    std::fs::write(
        &wrapper,
        format!("#!/bin/sh\nexec unshare -m sh -c '{script}' sh {0}/program {0}\n", dir.path().display()),
    )
    .expect("written");
    assert!(Command::new("chmod").arg("+x").arg(&wrapper).status().expect("chmod runs").success());
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return;
    }
    let mut fixture = Fixture::run(dir, wrapper);
    let inside = fixture.dir.path().join("inside").to_str().expect("text").to_owned();
    assert!(!Path::new(&inside).exists());
    let (mut symbols, mut names) = spawn();
    let found = symbols.resolve_code(&mut names, vec![fixture.code(0)]);
    check_frames(&found[0], &names, &inside);
    fixture.kill();
    let found = symbols.resolve_code(&mut names, vec![fixture.code(0)]);
    check_frames(&found[0], &names, &inside);
}

/// Writes a program that runs `script` in a mount namespace of its own, and returns its path;
/// `None` if no namespace can be had.
fn in_mount_namespace(dir: &Path, script: &str) -> Option<PathBuf> {
    let wrapper = dir.join("wrapper");
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec unshare -m sh -c '{script}'\n")).expect("written");
    assert!(Command::new("chmod").arg("+x").arg(&wrapper).status().expect("chmod runs").success());
    let can = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    can.then_some(wrapper)
}

/// A build id that others can choose as well.
const BUILD_ID: &str = "-Wl,--build-id=0x0123456789abcdef";

/// Makes the build id all that the query knows of the file's identity.
fn identified_by_build_id(mut query: CodeQuery) -> CodeQuery {
    let mapped = query.mapping.as_mut().expect("mapped");
    let old = mapped.mapping.image.as_ref().expect("a file");
    let id = BuildId::new(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]).expect("not empty");
    mapped.mapping.image = Some(Arc::new(Image { id: MappedFileId::BuildId(id), ..Image::clone(old) }));
    query
}

#[test]
fn a_path_and_a_build_id_do_not_name_the_samples_of_others() {
    let (top, forged) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let dir = top.path().join("bin");
    std::fs::create_dir(&dir).expect("a directory");
    let exe = compile(&dir, &["-g", "-O2", BUILD_ID]);
    let lie = compile(forged.path(), &["-g", "-O2", BUILD_ID, "-Dinnermost=forged"]);
    let (lie, at) = (lie.display(), dir.display());
    let script = format!("mount -t tmpfs none {at} && cp {lie} {at}/program && exec {at}/program");
    let Some(wrapper) = in_mount_namespace(forged.path(), &script) else { return };
    let liar = Fixture::run(forged, wrapper);
    let honest = Fixture::run(top, exe);
    let (mut symbols, mut names) = spawn();
    let mut name = |fixture: &Fixture| {
        let query = identified_by_build_id(fixture.code(0));
        assert_eq!(query.mapping.as_ref().unwrap().mapping.image.as_ref().unwrap().path, honest.exe());
        let found = symbols.resolve_code(&mut names, vec![query]);
        text(&names, found[0].function)
    };
    assert_eq!([name(&liar), name(&honest), name(&liar)], ["forged", "innermost", "forged"]);
}

#[test]
fn debug_information_of_a_container_does_not_name_the_samples_of_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let exe = compile(dir.path(), &["-g", "-O2", BUILD_ID, "-Dinnermost=forged"]);
    let (lie, folder) = (dir.path().join("lie"), dir.path().join("debug"));
    std::fs::create_dir(&folder).expect("a directory");
    std::fs::copy(&exe, &lie).expect("copied");
    assert!(Command::new("strip").arg(&exe).status().expect("strip runs").success());
    let (id, lie, at) = (".build-id/01", lie.display(), folder.display());
    let script = format!(
        "mount -t tmpfs none {at} && mkdir -p {at}/{id} && cp {lie} {at}/{id}/23456789abcdef.debug && exec {}",
        exe.display()
    );
    let Some(wrapper) = in_mount_namespace(dir.path(), &script) else { return };
    let options = SymbolOptions { debug_dirs: vec![folder], ..SymbolOptions::default() };
    let contained = Fixture::run(tempfile::tempdir().expect("a directory"), wrapper);
    let outside = Fixture::run(dir, exe);
    let (mut symbols, mut names) =
        (Symbolizer::spawn(options, reader()).expect("a thread"), Names::default());
    let mut name = |fixture: &Fixture| {
        let found = symbols.resolve_code(&mut names, vec![fixture.code(0)]);
        text(&names, found[0].function)
    };
    assert_eq!([name(&contained), name(&outside), name(&contained)], ["forged", "<no-symbol>", "forged"]);
}

#[inline(always)]
fn inlined_here() -> u64 {
    let here: u64;
    // The instruction behind the block may be the caller's, so the address is that of the `nop`.
    // SAFETY: loads an address and changes nothing else.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "nop", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    here
}

#[inline(never)]
fn outer_here() -> u64 {
    inlined_here()
}

static OWN_TABLE: [u64; 8] = [7; 8];

#[test]
fn this_very_program() {
    let pid = std::process::id();
    let mut processes = Processes::new(process::HistoryLimits::default());
    processes.snapshot_proc(Path::new("/"), pid, 1).expect("alive");
    let (location, names) = one_code(CodeQuery::user(&processes, pid, outer_here(), &ALWAYS));
    let function = text(&names, location.function);
    assert!(function.ends_with("live_tests::inlined_here"), "{function}");
    assert!(text(&names, location.source).ends_with("symbols/live_tests.rs"));
    let outer = location.inlined_into.last().expect("inlined");
    // The name is demangled, without the hash.
    assert!(names.get(outer.function).ends_with("live_tests::outer_here"), "{}", names.get(outer.function));
    assert!(outer.line > location.line);

    let address = (&raw const OWN_TABLE[3]) as u64;
    let (location, names) = one_data(DataQuery::new(&processes, pid, address, 1, &ALWAYS));
    let (_, name, offset) = variable(&names, &location);
    assert!(name.ends_with("live_tests::OWN_TABLE"), "{name}");
    assert_eq!(offset, 24);

    // The vDSO has functions, at more than one address.
    let own = super::procfs::read(Path::new("/"), pid).expect("alive");
    let vdso = own.maps.iter().find(|m| m.path == "[vdso]").expect("mapped");
    let query = |address| CodeQuery::user(&processes, pid, address, &ALWAYS);
    let (mut symbols, mut names) = spawn();
    let all = (vdso.start..vdso.start + vdso.len).step_by(64).map(query).collect();
    let found = symbols.resolve_code(&mut names, all);
    assert!(found.iter().all(|l| text(&names, l.module) == "[vdso]"));
    let gettime = |l: &CodeLocation| text(&names, l.function).contains("clock_gettime");
    assert!(found.iter().any(gettime));
}

#[test]
fn what_is_not_mapped_has_its_reason() {
    let fixture = Fixture::new(&["-O2"]);
    let pid = fixture.child.id();
    let (mut symbols, mut names) = spawn();
    let user = |pid, address| CodeQuery::user(&fixture.processes, pid, address, &ALWAYS);
    let queries = vec![user(pid, 8), user(1 << 30, 8), user(pid, fixture.at[6]), fixture.code(0)];
    let found = symbols.resolve_code(&mut names, queries);
    let found: Vec<_> = found
        .iter()
        .map(|l| (text(&names, l.module), text(&names, l.function), text(&names, l.source)))
        .collect();
    let words = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(found[0], words("<unmapped>", "<unmapped>", "<unmapped>"));
    assert_eq!(found[1], words("<process-gone>", "<process-gone>", "<process-gone>"));
    assert_eq!(found[2], words("[heap]", "<jit>", "<jit>"));
    assert_eq!(found[3], words(&fixture.exe(), "outermost", "<no-line>"));
    assert!(symbols.resolve_code(&mut names, Vec::new()).is_empty());
}

#[test]
fn a_jit_is_named_by_its_perf_map() {
    let mut child = Command::new("sleep").arg("100").spawn().expect("it starts");
    let path = PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
    std::fs::File::create(&path)
        .and_then(|mut file| file.write_all(b"7000 100 LazyCompile:*hot app.js:12\n"))
        .expect("written");
    let mapping = Mapping {
        start: 0x7000,
        end: 0x9000,
        page_offset: 0,
        executable: true,
        writable: true,
        kind: MapKind::Anon,
        image: None,
        since: 0,
    };
    let mapped = Mapped { pid: child.id(), generation: 1, mapping, image_base: None };
    let query = |address| CodeQuery { kernel: false, address, mapping: Ok(mapped.clone()), ambiguous: false };
    let (mut symbols, mut names) = spawn();
    let found = symbols.resolve_code(&mut names, vec![query(0x7010), query(0x8000)]);
    std::fs::remove_file(&path).expect("removed");
    child.kill().expect("killed");
    child.wait().expect("waited");
    assert_eq!(text(&names, found[0].function), "LazyCompile:*hot app.js:12");
    assert_eq!((text(&names, found[0].module), found[0].function_offset), ("[jit]".into(), 0x10));
    assert_eq!(text(&names, found[1].function), "<jit>");
    // The name remains known after the process has exited.
    let again = symbols.resolve_code(&mut names, vec![query(0x7010)]);
    assert_eq!(again[0], found[0]);
}

#[test]
fn kernel_addresses_have_names_or_are_hidden() {
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let address_of = |name: &str| {
        let line = kallsyms.lines().find(|l| l.split_whitespace().nth(2) == Some(name))?;
        u64::from_str_radix(line.split_whitespace().next()?, 16).ok().filter(|&address| address != 0)
    };
    let Some(schedule) = address_of("schedule") else { return };
    let (location, names) = one_code(CodeQuery::kernel(schedule + 4));
    assert_eq!(text(&names, location.function), "schedule");
    assert_eq!(text(&names, location.module), "[kernel]");
    assert_eq!((location.function_offset, location.runtime_address), (4, schedule + 4));
    assert_ne!(location.build_id, NameId::default());
    let nobody = Processes::default();
    if let Some(jiffies) = address_of("jiffies_64").or_else(|| address_of("jiffies")) {
        let (location, names) = one_data(DataQuery::new(&nobody, 1, jiffies, 1, &ALWAYS));
        assert!(text(&names, location.variable).starts_with("jiffies"));
    }
    let (location, names) = one_data(DataQuery::new(&nobody, 1, 0xffff_8880_0000_0000, 64, &ALWAYS));
    assert_eq!(variable(&names, &location), ("[kernel]".into(), "<no-symbol>".into(), 0));
}

#[test]
fn files_make_room_for_others_and_come_back() {
    let a = Fixture::new(&["-g", "-O2"]);
    let b = Fixture::new(&["-g", "-O2", "-static"]);
    let options = SymbolOptions { max_files: 1, ..SymbolOptions::default() };
    let (mut symbols, mut names) =
        (Symbolizer::spawn(options, reader()).expect("a thread"), Names::default());
    for _ in 0..3 {
        for fixture in [&a, &b] {
            let found = symbols.resolve_code(&mut names, vec![fixture.code(0)]);
            check_frames(&found[0], &names, &fixture.exe());
        }
    }
    // More files in one batch than may be open: they are read one after the other.
    let found = symbols.resolve_code(&mut names, vec![a.code(0), b.code(0), a.code(0)]);
    for (location, fixture) in found.iter().zip([&a, &b, &a]) {
        check_frames(location, &names, &fixture.exe());
    }
    let found = symbols.resolve_data(&mut names, vec![a.data(2), b.data(2), a.data(2)]);
    for (location, fixture) in found.iter().zip([&a, &b, &a]) {
        assert_eq!(variable(&names, location), (fixture.exe(), "zeros".into(), 40));
    }
}

#[test]
fn a_file_that_nobody_asks_for_is_closed_and_found_again() {
    let fixture = Fixture::new(&["-g", "-O2"]);
    let (mut symbols, mut names) = spawn();
    let open = || {
        let links = std::fs::read_dir("/proc/self/fd").expect("readable").flatten();
        links.filter_map(|link| std::fs::read_link(link.path()).ok()).filter(|to| *to == fixture.exe).count()
    };
    let mut asked = |names: &mut Names, queries: Vec<CodeQuery>| {
        let found = symbols.resolve_code(names, queries);
        symbols.forget_unused();
        // The queue is ordered, so the answer comes after the files were closed.
        symbols.resolve_code(names, vec![CodeQuery::kernel(0)]);
        (found, open())
    };
    for _ in 0..2 {
        let (found, open) = asked(&mut names, vec![fixture.code(0)]);
        check_frames(&found[0], &names, &fixture.exe());
        assert_eq!(open, 1, "it was asked for since the last turn");
        assert_eq!(asked(&mut names, Vec::new()).1, 0);
    }
}

#[test]
fn ten_thousand_addresses_take_well_under_a_second() {
    let pid = std::process::id();
    let mut processes = Processes::new(process::HistoryLimits::default());
    processes.snapshot_proc(Path::new("/"), pid, 1).expect("alive");
    let exe = std::fs::metadata("/proc/self/exe").expect("readable").ino();
    let own = super::procfs::read(Path::new("/"), pid).expect("alive");
    let is_text = |m: &&precise_records::record::MmapRecord| {
        m.executable && matches!(m.file, MappedFileId::Inode { inode, .. } if inode == exe)
    };
    let map = own.maps.iter().find(is_text).expect("mapped");
    let step = (map.len / 10_000).max(1);
    let ask = || -> Vec<_> {
        (0..10_000).map(|n| CodeQuery::user(&processes, pid, map.start + n * step, &ALWAYS)).collect()
    };
    let (mut symbols, mut names) = spawn();
    for round in ["cold", "warm"] {
        let queries = ask();
        let begun = Instant::now();
        let found = symbols.resolve_code(&mut names, queries);
        let known = found.iter().filter(|l| matches!(l.function, Name::Known(_))).count();
        eprintln!("{round}: {known} of {} in {:?}", found.len(), begun.elapsed());
        assert!(known > 9_000);
        // A generous limit, because test machines are busy and this build is not optimised.
        assert!(round == "cold" || begun.elapsed().as_secs() < 2);
    }
}
