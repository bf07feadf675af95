//! Programs without frame pointers with known call trees: each sample must have its chain, and each
//! chain a reason for its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise_tests::run::{Recorded, precise, undisturbed};
use precise_tests::say;

/// A program with frames that are hard to unwind: see its source.
const FOREST: &str = include_str!("../lab/workloads/forest.c");

const LIBRARY: &str =
    "void calls_back(void (*call)(long)) { call(17); __asm__ volatile(\"\" ::: \"memory\"); }\n";

/// How the parts of the forest are called: the function that calls the last two, or all between
/// `main` and `touch`, and the number of faults.
const EXPECTED: [(&str, &str, u64); 7] = [
    ("main;pushed;variable;leaf;touch", "", 100),
    ("main;callback;", ";compare;leaf;touch", 1),
    ("main;interrupted;", ";handler;leaf;touch", 7),
    ("main;jumped;leaf;touch", "", 9),
    ("", ";thread;leaf;touch", 11),
    ("main;recursive;recursive;", ";recursive;leaf;touch", 13),
    ("main;vforked;leaf;touch", "", 5),
];

/// How C programs are compiled here.
const WITHOUT_FRAME_POINTERS: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

fn compile(folder: &Path, compiler: &str, source: &str, name: &str, more: &[&str]) -> Result<String> {
    let extension = match compiler {
        "rustc" => "rs",
        "g++" => "cc",
        _ => "c",
    };
    let (file, program) = (folder.join(format!("{name}.{extension}")), folder.join(name));
    std::fs::write(&file, source)?;
    let done = Command::new(compiler).args(more).arg("-o").args([&program, &file]).output();
    let done = done.with_context(|| format!("{compiler} cannot be started: is it installed?"))?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(program.display().to_string())
}

/// What `report -g` says of the chains of a run.
struct Chains {
    /// Samples by folded chain, of those that contain `touch`.
    folded: BTreeMap<String, u64>,
    /// Samples by the reason why chains end.
    ends: BTreeMap<String, u64>,
    samples: u64,
}

fn record(folder: &Path, command: &[&str], more: &[&str]) -> Result<Chains> {
    let file = folder.join("chains.parquet");
    let path = file.display().to_string();
    let arguments =
        [&["record", "-q", "-g", "-e", "page-faults", "-c", "1", "-o", &path], more, &["--"], command]
            .concat();
    let recorded = Recorded::of(precise(arguments)?.expect(0)?, &file)?;
    ensure!(recorded.ledger().unaccounted() == 0, "{:?}", recorded.ledger());
    let printed = precise(["flamegraph", "-i", &path, "--folded"])?.expect(0)?.stdout;
    let mut folded = BTreeMap::new();
    for line in printed.lines().filter(|line| line.contains("touch")) {
        let (frames, samples) = line.rsplit_once(' ').context("a weight")?;
        // Compilers move what is rarely executed into a part of its own.
        *folded.entry(frames.replace(".cold", "")).or_default() += samples.parse::<u64>()?;
    }
    let report = precise(["report", "-i", &path, "--json", "-g"])?.expect(0)?.stdout;
    let event = serde_json::from_str::<serde_json::Value>(&report)?["events"][0].clone();
    let mut ends = BTreeMap::new();
    for end in event["ends"].as_array().into_iter().flatten() {
        let name = end["end"].as_str().context("a name")?.to_owned();
        *ends.entry(name).or_default() += end["samples"].as_u64().context("a number")?;
    }
    Ok(Chains {
        folded,
        ends,
        samples: recorded.ledger().counter(precise_common::ledger::Counter::Aggregated),
    })
}

/// Checks the chains of the forest. They all begin in the outermost function.
fn check(chains: &Chains, what: &str) {
    for (begin, end, samples) in EXPECTED {
        let found: Vec<_> = chains
            .folded
            .iter()
            .filter(|(chain, _)| {
                chain.contains(begin) && chain.ends_with(if end.is_empty() { begin } else { end })
            })
            .collect();
        let sum: u64 = found.iter().map(|(_, samples)| **samples).sum();
        assert_eq!(sum, samples, "{what}: {begin}…{end}: {:#?}", chains.folded);
    }
    let all: u64 = chains.folded.values().sum();
    assert!(chains.folded.keys().all(|chain| !chain.contains("[chain ends")), "{what}: {:#?}", chains.folded);
    let touched = EXPECTED.iter().map(|(.., samples)| samples).sum::<u64>();
    assert!(all == touched || all == touched + 17, "{what}: {all} of {touched}: {:#?}", chains.folded);
    assert_eq!(chains.ends.values().sum::<u64>(), chains.samples, "{what}: the ends add up");
}

#[test]
fn every_chain_of_a_forest_is_whole() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let library = compile(folder.path(), "gcc", LIBRARY, "library.so", &["-O2", "-shared", "-fPIC"])?;
        let plain = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-g"];
        let variants: [(&str, &[&str]); 4] = [
            ("plain", &[]),
            ("no-pie", &["-no-pie", "-fcf-protection=none", "-O3"]),
            ("lto", &["-flto", "-O3"]),
            ("static", &["-static"]),
        ];
        for (name, more) in variants {
            let options = [&plain[..], more].concat();
            let program = compile(folder.path(), "gcc", FOREST, name, &options)?;
            let is_static = name == "static";
            let command: &[&str] = if is_static { &[&program] } else { &[&program, &library] };
            let chains = record(folder.path(), command, &[])?;
            check(&chains, name);
            say(&format!("{name}: {} samples, ends {:?}", chains.samples, chains.ends));
            if !is_static {
                let loaded =
                    chains.folded.iter().find(|(chain, _)| chain.contains(";loaded;calls_back;leaf;touch"));
                assert_eq!(loaded.map(|(_, samples)| *samples), Some(17), "{:#?}", chains.folded);
            }
        }
        Ok(())
    })
}

/// The other way to read a sample, and both ways to choose how to unwind.
#[test]
fn ways_to_unwind() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let program = compile(folder.path(), "gcc", FOREST, "forest", &options)?;
        for more in [&["--read-path", "probe"][..], &["--unwind-memory", "2M"]] {
            check(&record(folder.path(), &[&program], more)?, &more.join(" "));
        }
        // At most three frames: the sampled one, and two callers.
        let chains = record(folder.path(), &[&program], &["--stack-depth", "3"])?;
        assert!(
            chains.folded.contains_key("forest;[chain ends: too many frames];variable;leaf;touch"),
            "{:#?}",
            chains.folded
        );
        // Without frame pointers, following them is no way.
        let lost = record(folder.path(), &[&program], &["--call-graph", "fp"])?;
        let pushed = lost.folded.keys().any(|chain| chain.contains("main;pushed;variable;leaf;touch"));
        assert!(!pushed && lost.ends.is_empty(), "{:#?}", lost.folded);
        Ok(())
    })
}

/// `forged` enters `touch` by a jump, with the address of `landing` as return address. What lies
/// above it on the stack is a word that looks like a caller of `landing`.
const FORGED: &str = r#"#include <sys/mman.h>
#include <unistd.h>
char *next;
void forged(void);
__attribute__((noinline, noclone, used)) void touch(void) {
    for (long i = 0; i < 23; i++, next += 4096) *(volatile char *)next = 1;
    __asm__ volatile("" ::: "memory");
}
__asm__(".text\n.type forged, @function\nforged:\n.cfi_startproc\n"
        "leaq landing(%rip), %rax\npushq %rax\n.cfi_adjust_cfa_offset 8\njmp touch\n"
        ".cfi_adjust_cfa_offset -8\n.p2align 4\nlanding:\nret\n.cfi_endproc\n.size forged, .-forged\n");
int main(void) {
    next = mmap(0, 4096 * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(next, 4096 * 64, MADV_NOHUGEPAGE);
    usleep(1000000);
    forged();
    __asm__ volatile("" ::: "memory");
    return 0;
}
"#;

#[test]
fn a_return_address_without_a_call_ends_its_chain() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let program = compile(folder.path(), "gcc", FORGED, "forged", &options)?;
        let chains = record(folder.path(), &[&program], &[])?;
        let cut = chains.folded.get("forged;[chain ends: return address behind no call];touch");
        assert_eq!(cut, Some(&23), "{:#?}", chains.folded);
        assert_eq!(chains.ends.get("no-call"), Some(&23), "{:?}", chains.ends);
        Ok(())
    })
}

/// Loads and unloads libraries for a second and a half, each of which calls back, beside a thread
/// that does not. Prints the number of libraries per second.
const LOADER: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define NI __attribute__((noinline, noclone))
enum { PAGES = 4096 };
static char *own_pages;
static volatile int done;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static char *pages(void) {
    char *p = mmap(0, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, PAGES * 4096L, MADV_NOHUGEPAGE);
    return p;
}
NI void touch(char *page) { *(volatile char *)page = 1; __asm__ volatile("" ::: "memory"); }
NI void back(long at) { touch(own_pages + at % PAGES * 4096); __asm__ volatile("" ::: "memory"); }
NI long loads(char **files, long count) {
    long n = 0;
    for (double end = now() + 1.5; now() < end; n++) {
        void *library = dlopen(files[n % count], RTLD_NOW);
        if (!library) { fprintf(stderr, "%s\n", dlerror()); exit(3); }
        void (*enter)(void (*)(long), long) = dlsym(library, "enter");
        enter(back, n);
        dlclose(library);
        if (n % PAGES == PAGES - 1) madvise(own_pages, PAGES * 4096L, MADV_DONTNEED);
    }
    return n;
}
NI void rests(char *mine, long n) { usleep(200); touch(mine + n % PAGES * 4096); __asm__ volatile("" ::: "memory"); }
NI void *steady(void *_) {
    char *mine = pages();
    for (long n = 0; !done && n < PAGES; n++) rests(mine, n);
    return mine;
}
int main(int argc, char **argv) {
    pthread_t thread;
    own_pages = pages();
    usleep(500000);
    pthread_create(&thread, 0, steady, 0);
    long n = loads(argv + 1, argc - 1);
    done = 1;
    pthread_join(thread, 0);
    fprintf(stderr, "loaded %ld\n", n);
    return n < 100;
}
"#;

/// All libraries have the same size and the same symbols, so that each is mapped where another one
/// was, but `enter` is elsewhere in each, and its frame has another size.
const LOADED: &str = r#"
__asm__(".text\n.skip " SKIP ", 0x90\n");
__attribute__((noinline)) void enter(void (*back)(long), long n) {
    volatile char frame[FRAME];
    frame[0] = 1;
    back(n + 0 * frame[0]);
    __asm__ volatile("" ::: "memory");
}
"#;

/// The callers of `touch`, from the innermost: none of the chains may have another one.
const CALLERS: [&[&str]; 2] = [&["back", "enter", "loads", "main"], &["rests", "steady"]];

#[test]
fn libraries_that_come_and_go_give_no_wrong_frame() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let plain = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let program = compile(folder.path(), "gcc", LOADER, "loader", &[&plain[..], &["-pthread"]].concat())?;
        let mut command = vec![program];
        for at in 0..8 {
            let (skip, frame) = (format!("-DSKIP=\"{}\"", at * 64), format!("-DFRAME={}", 64 + at * 48));
            let more = [&plain[..], &["-shared", "-fPIC", &skip, &frame]].concat();
            command.push(compile(folder.path(), "gcc", LOADED, &format!("library{at}.so"), &more)?);
        }
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let chains = record(folder.path(), &command, &["--stacks", "8192", "--overhead", "off"])?;
        let (mut whole, mut short) = (0, BTreeMap::<&str, u64>::new());
        for (chain, samples) in &chains.folded {
            let (callers, _) = chain.rsplit_once(";touch").context("a call of touch")?;
            let mut end = "";
            for (at, function) in callers.split(';').rev().enumerate() {
                end = function;
                let expected = CALLERS.iter().any(|callers| callers.get(at) == Some(&function));
                // Above `main` and `steady` there is only the start of the thread.
                let outermost = CALLERS.iter().any(|callers| at >= callers.len());
                let known = expected || outermost || function.starts_with('[') || function == "loader";
                assert!(known, "{function} called: {chain}");
            }
            match chain.split_once("[chain ends: ") {
                Some((_, reason)) => {
                    *short.entry(reason.split(']').next().unwrap_or(end)).or_default() += samples
                }
                None => whole += samples,
            }
        }
        let steady: u64 =
            chains.folded.iter().filter(|(c, _)| c.ends_with(";steady;rests;touch")).map(|(_, n)| n).sum();
        assert!(steady > 100, "{:#?}", chains.folded);
        assert_eq!(chains.ends.values().sum::<u64>(), chains.samples, "the ends add up");
        say(&format!("{} samples, {whole} of touch whole, short: {short:?}", chains.samples));
        Ok(())
    })
}

/// Maps and unmaps libraries, and as `steady` does not: see its source.
const LIBRARIES: &str = include_str!("../lab/workloads/libraries.c");
const ONE_LIBRARY: &str = include_str!("../lab/workloads/libraries/library.c");

/// Returns the function that must have called this one; `None` if that is not known. Of those that
/// several call, only the beginning of the name is known.
fn caller_of(function: &str) -> Option<String> {
    let library = |from: &str, to: &str| {
        let number = function.strip_prefix("library_")?.strip_suffix(from)?;
        Some(format!("{to}{number}"))
    };
    Some(match function {
        "main" => "__libc_start_call_main".into(),
        "churn" | "steady_outer" => "main".into(),
        "steady_middle" => "steady_outer".into(),
        "steady_leaf" => "steady_middle".into(),
        "called_back" => "library_".into(),
        "_start" => String::new(),
        _ if function.starts_with("call_library_") => "churn".into(),
        _ => library("_outer", "call_library_").or_else(|| Some(library("_leaf", "library_")? + "_outer"))?,
    })
}

/// Samples of a run by process and by the reason why their chains end, and those by library.
type Ends = BTreeMap<(String, String), u64>;

/// Checks that each function of these chains has its caller, or the reason why it has none.
fn ends_of(folded: &str) -> Result<(Ends, Ends)> {
    let (mut ends, mut libraries) = (Ends::new(), Ends::new());
    for line in folded.lines() {
        let (chain, samples) = line.rsplit_once(' ').context("a weight")?;
        let (process, frames) = chain.split_once(';').context("a process")?;
        if !["libraries", "steady"].contains(&process) {
            continue;
        }
        let reason = |first: &str| Some(first.strip_prefix("[chain ends: ")?.strip_suffix(']')?.to_owned());
        let frames: Vec<&str> = frames.split(';').collect();
        let end = frames.first().and_then(|first| reason(first)).unwrap_or_else(|| "whole".into());
        ensure!(end != "whole" || frames.first() == Some(&"_start"), "no outermost function: {chain}");
        for pair in frames.windows(2) {
            let (caller, function) = (pair[0], pair[1]);
            let expected = caller_of(function).unwrap_or_default();
            let touches = function != "touches" || ["called_back", "steady_leaf"].contains(&caller);
            let known = touches && caller.starts_with(&expected) || caller.starts_with("[chain ends");
            ensure!(known && caller != "[mapping replaced]", "{caller} does not call {function}: {chain}");
            ensure!(function != "[unmapped]", "{chain}");
        }
        let samples = samples.parse::<u64>()?;
        let library = frames
            .iter()
            .rev()
            .find(|frame| frame.starts_with("library_") || **frame == "[mapping replaced]");
        let kind = library.map_or("", |library| library.trim_end_matches("_leaf").trim_end_matches("_outer"));
        *libraries.entry((kind.to_owned(), end.clone())).or_default() += samples;
        *ends.entry((process.to_owned(), end)).or_default() += samples;
    }
    Ok((ends, libraries))
}

#[test]
fn beside_a_thousand_libraries_a_second_no_frame_is_wrong() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let library = ["-O2", "-g", "-shared", "-fPIC", "-nostdlib", "-mno-red-zone"];
        for number in 0..10 {
            let own = [format!("-DNUMBER={number}"), format!("-Wl,-e,library_{number}_outer")];
            let options = own.iter().map(String::as_str).chain(library).collect::<Vec<_>>();
            compile(folder.path(), "gcc", ONE_LIBRARY, &format!("library_{number}.so"), &options)?;
        }
        for name in ["libraries", "steady"] {
            compile(folder.path(), "gcc", LIBRARIES, name, &["-O2", "-g"])?;
        }
        let arguments = ". 0.5 4 8192 4096 1.5";
        let both = format!(
            "cd {} && export LD_BIND_NOW=1 && (./steady {arguments} & ./libraries {arguments} && wait)",
            folder.path().display()
        );
        let file = folder.path().join("libraries.parquet");
        let path = file.display().to_string();
        let options =
            ["record", "-q", "-g", "-e", "page-faults", "-c", "1", "--overhead", "off", "-o", &path];
        let ended = precise([&options[..], &["--", "sh", "-c", &both]].concat())?.expect(0)?;
        let printed = ended.stdout.clone();
        let recorded = Recorded::of(ended, &file)?;
        ensure!(recorded.ledger().unaccounted() == 0, "{:?}", recorded.ledger());
        let rate = printed.lines().find_map(|line| {
            let words: Vec<u64> = line.strip_prefix("maps ")?.split(" ms ").flat_map(str::parse).collect();
            Some(words[0] * 1000 / words[1].max(1))
        });
        let rate = rate.context("no rate")?;
        assert!(rate >= 1000, "{rate} mappings per second");

        let report = precise(["report", "-i", &path, "--json", "-g"])?.expect(0)?.stdout;
        let event = serde_json::from_str::<serde_json::Value>(&report)?["events"][0].clone();
        let sum = |of: &str| -> u64 {
            event[of].as_array().into_iter().flatten().filter_map(|end| end["samples"].as_u64()).sum()
        };
        assert_eq!(sum("ends") + sum("without"), event["samples"].as_u64().context("samples")?);

        let folded = precise(["flamegraph", "-i", &path, "--folded"])?.expect(0)?.stdout;
        let (ends, libraries) = ends_of(&folded)?;
        say(&format!("{rate} mappings per second: {ends:#?}, by library: {libraries:#?}"));
        let of = |all: &Ends, who: &str, end: &str| all.get(&(who.into(), end.into())).copied().unwrap_or(0);
        for number in 0..4 {
            assert!(of(&libraries, &format!("library_{number}"), "whole") > 1000, "{number}");
        }
        for number in 4..8 {
            assert_eq!(of(&libraries, &format!("library_{number}"), "whole") / 100, 0, "{number}");
        }
        // Each of the two was alone at its place for whole epochs.
        assert!(of(&libraries, "library_8", "whole") > 1000 && of(&libraries, "library_9", "whole") > 1000);
        assert!(of(&libraries, "[mapping replaced]", "mappings changed meanwhile") > 1000);
        let steady: u64 =
            ends.iter().filter(|((who, _), _)| who == "steady").map(|(_, samples)| samples).sum();
        assert!(of(&ends, "steady", "whole") * 100 > steady * 95, "{ends:#?}");
        Ok(())
    })
}

/// `deep CALLS`: faults 4,000 pages below this number of calls.
const DEEP: &str = r#"#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void below(char *p, long calls) {
    if (calls) below(p, calls - 1);
    else for (long i = 0; i < 4000; i++) p[i * 4096L] = 1;
    __asm__ volatile("" ::: "memory");
}
int main(int argc, char **argv) {
    char *p = mmap(0, 4000 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 4000 * 4096L, MADV_NOHUGEPAGE);
    usleep(500000);
    below(p, atol(argv[1]));
    return 0;
}
"#;

/// What a run says that a sample cost it is what the governor goes by.
#[test]
fn frames_are_part_of_the_measured_cost() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let program = compile(folder.path(), "gcc", DEEP, "deep", &options)?;
        let file = folder.path().join("deep.parquet");
        let path = file.display().to_string();
        let mut costs = Vec::new();
        for calls in ["1", "100"] {
            let arguments =
                ["record", "-q", "-g", "-e", "page-faults", "-c", "1", "--overhead", "off", "-o", &path];
            let ended = precise([&arguments[..], &["--", &program, calls]].concat())?.expect(0)?;
            let overhead = Recorded::of(ended, &file)?.capture.meta.overhead.context("no overhead")?;
            costs.push(overhead.sample_measured_ns);
        }
        say(&format!("a sample below 1 and 100 calls: {costs:?} ns"));
        // A frame takes 60 to 150 ns.
        assert!(costs[1] > costs[0] + 99 * 20, "{costs:?}");
        Ok(())
    })
}

const CPLUSPLUS: &str = r#"#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#define NI __attribute__((noinline, noclone))
static char *next;
extern "C" NI void touch(long pages) {
    for (long i = 0; i < pages; i++, next += 4096) *(volatile char *)next = 1;
    __asm__ volatile("" ::: "memory");
}
struct Guard { NI ~Guard() { touch(3); __asm__ volatile("" ::: "memory"); } };
extern "C" NI void thrower(int depth) { Guard guard; if (depth) thrower(depth - 1); else throw std::runtime_error("x"); }
extern "C" NI void catcher() { try { thrower(4); } catch (const std::exception &) { touch(5); } __asm__ volatile("" ::: "memory"); }
int main() {
    next = (char *)mmap(0, 4096 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(next, 4096 * 4096, MADV_NOHUGEPAGE);
    usleep(1000000);
    catcher();
}
"#;

const RUST: &str = r#"use std::hint::black_box;
#[inline(never)] fn touch(pages: &mut [u8], count: usize) { for at in 0..count { unsafe { (&raw mut pages[at * 4096]).write_volatile(1) } } }
#[inline(never)] fn inner(pages: &mut [u8], more: &dyn Fn(usize) -> usize) { let n = more(19); touch(pages, n); black_box(()); }
#[inline(never)] fn outer(pages: &mut Vec<u8>) { let k = black_box(1); inner(pages, &|n| n * k); black_box(()); }
fn main() {
    std::thread::sleep(std::time::Duration::from_millis(1000));
    let mut pages: Vec<u8> = Vec::with_capacity(64 << 20);
    unsafe { pages.set_len(1 << 20) };
    outer(&mut pages);
    std::thread::spawn(move || outer(&mut pages[(4096 * 32)..].to_vec())).join().unwrap();
}
"#;

#[test]
fn other_languages() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let program = compile(folder.path(), "g++", CPLUSPLUS, "cplusplus", &options)?;
        let chains = record(folder.path(), &[&program], &[])?;
        let sum = |begin: &str, end: &str| -> u64 {
            let wanted =
                chains.folded.iter().filter(|(chain, _)| chain.contains(begin) && chain.ends_with(end));
            wanted.map(|(_, samples)| *samples).sum()
        };
        assert_eq!(sum("main;catcher;touch", "main;catcher;touch"), 5, "{:#?}", chains.folded);
        // Each destructor is called while the exception passes through its frame.
        assert_eq!(sum("main;catcher;thrower", ";thrower;Guard::~Guard();touch"), 15, "{:#?}", chains.folded);

        let program = compile(folder.path(), "rustc", RUST, "rust", &["-O", "-Cforce-frame-pointers=no"])?;
        let chains = record(folder.path(), &[&program], &[])?;
        let found = chains
            .folded
            .iter()
            .find(|(chain, _)| chain.ends_with(";rust::main;rust::outer;rust::inner;rust::touch"));
        // The allocator has written to the first page before.
        assert_eq!(found.map(|(_, samples)| *samples), Some(18), "{:#?}", chains.folded);
        assert!(chains.folded.keys().all(|chain| !chain.contains("[chain ends")), "{:#?}", chains.folded);
        Ok(())
    })
}

/// The C library of musl has no unwind tables, but the program that uses it has one. What is above
/// its code is not known, and what is in its code must be right.
#[test]
fn chains_of_musl_are_right_as_far_as_they_go() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        for (name, more) in [("dynamic", &[][..]), ("static", &["-static"])] {
            let options = [&WITHOUT_FRAME_POINTERS[..], more].concat();
            let program = compile(folder.path(), "musl-gcc", FOREST, name, &options)?;
            let chains = record(folder.path(), &[&program], &[])?;
            say(&format!("musl, {name}: {} samples, ends {:?}", chains.samples, chains.ends));
            for (begin, end, samples) in EXPECTED {
                // A callback and a signal come through the library.
                let through = ["compare", "handler"].iter().any(|function| end.contains(function));
                let begin = if through { "" } else { begin };
                let of = |chain: &str| {
                    chain.contains(begin) && chain.ends_with(if end.is_empty() { begin } else { end })
                };
                let found = chains.folded.iter().filter(|(chain, _)| of(chain));
                let sum: u64 = found.map(|(_, samples)| samples).sum();
                assert_eq!(sum, samples, "{name}: {begin}…{end}: {:#?}", chains.folded);
            }
            assert_eq!(chains.ends.values().sum::<u64>(), chains.samples, "{name}: the ends add up");
        }
        Ok(())
    })
}
