//! Types of programs in C, C++ and Rust, by each compiler and at each level of optimization. They
//! print where the members of their objects are, each on a page of its own, and reach them in many
//! ways. A page fault is an exact sample, so the address of each sample says which member it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::field_judge::{self, Judged, Printed};
use precise_tests::program::{built, exists};
use precise_tests::{run::precise, say};

const C: &str = include_str!("type_programs/shapes.c");
const CPP: &str = include_str!("type_programs/shapes.cc");
const RUST: &str = include_str!("type_programs/shapes.rs");

/// Ways to optimize that GCC and Clang share.
const OPTIMIZED: [&[&str]; 4] = [&["-O2"], &["-O3"], &["-O2", "-flto"], &["-O2", "-gsplit-dwarf"]];
const RUST_OPTIMIZED: [&[&str]; 4] = [
    &["-Copt-level=2"],
    &["-Copt-level=3"],
    &["-Copt-level=3", "-Clto=fat", "-Ccodegen-units=1"],
    &["-Copt-level=2", "-Csplit-debuginfo=packed"],
];
/// The share of the samples, in code that has variables, whose type must be known, by compiler and
/// way to optimize: what was measured, less 2 percentage points. The goal is 0.8 for each.
///
/// Below 1 is Rust: the parameters of functions that were specialized have no place in debug
/// information.
const COVERED: [(&str, [f64; 4]); 5] = [
    ("gcc", [0.98, 0.98, 0.98, 0.98]),
    ("clang-22", [0.98, 0.98, 0.98, 0.98]),
    ("g++", [0.98, 0.98, 0.98, 0.98]),
    ("clang++-22", [0.98, 0.98, 0.98, 0.98]),
    ("rustc", [0.98, 0.83, 0.83, 0.98]),
];
/// The share of the samples with a type that may have a wrong one.
const WRONG: f64 = 0.01;

/// Samples a program, and judges the field of each sample by its address.
fn judge(folder: &Path, program: &Path) -> Result<Judged> {
    let file = folder.join("faults.parquet").display().to_string();
    let run = ["record", "-q", "-e", "page-faults", "-c", "1", "--granule", "1", "--by", "ip,address,thread"];
    let ended =
        precise([&run[..], &["-o", &file, "--", &program.display().to_string()]].concat())?.expect(0)?;
    let printed = Printed::of(&ended.stdout)?;
    ensure!(printed.is_complete(), "{}", ended.stdout);
    let by = ["report", "-i", &file, "--json", "-n", "1000000", "--by", "field,address"];
    let report = precise(by)?.expect(0)?;
    let report: serde_json::Value = serde_json::from_str(&report.stdout)?;
    // Each sentence once: there are as many samples as pages.
    let mut said = BTreeMap::<String, u64>::new();
    let note = |sentence: String, samples: u64| *said.entry(sentence).or_default() += samples;
    let judged = field_judge::judge(&printed, None, &report, note)?;
    said.iter().for_each(|(sentence, samples)| say(&format!("{sentence} ({samples} samples)")));
    // What the addresses confirm is right, and they contradict nothing.
    let view = precise(["types", "-i", &file, "--json", "-n", "10000"])?.expect(0)?;
    let view: serde_json::Value = serde_json::from_str(&view.stdout)?;
    let types = view["events"][0]["types"].as_array().context("types")?;
    let contradicted: u64 = types.iter().filter_map(|ty| ty["checked"]["contradicted"].as_u64()).sum();
    ensure!(contradicted == 0, "{contradicted} samples are contradicted: {view:#}");
    Ok(judged)
}

/// Builds a program in all ways, and judges each.
fn matrix(compilers: &[&str], ways: &[&[&str]], ending: &str, source: &str) -> Result<()> {
    let mut all = Judged::default();
    for compiler in compilers {
        ensure!(exists(compiler), "{compiler} is missing: `cargo xtask setup` installs it");
        let pinned = COVERED.iter().find(|(known, _)| known == compiler).context("a share")?.1;
        for (way, pinned) in ways.iter().zip(pinned) {
            let folder = tempfile::tempdir()?;
            let judged = judge(folder.path(), &program(folder.path(), compiler, way, ending, source)?)
                .with_context(|| format!("{compiler} {way:?}"))?;
            let covered = 100.0 * judged.covered();
            say(&format!("{compiler} {}: {covered:.1} % typed, {judged:?}", way.join(" ")));
            if judged.wrong > 0 || judged.covered() < pinned {
                bail!("{compiler} {way:?}: {judged:?}");
            }
            all.add(judged);
        }
    }
    ensure!(all.wrong_at_most() <= WRONG, "{all:?}: up to {:.2} % are wrong", 100.0 * all.wrong_at_most());
    Ok(())
}

fn program(folder: &Path, compiler: &str, way: &[&str], ending: &str, source: &str) -> Result<PathBuf> {
    let mut options = vec!["-g"];
    options.extend(way);
    match compiler {
        "rustc" => options.push("--edition=2024"),
        // Only its own linker reads what it leaves for the link.
        clang if clang.starts_with("clang") && way.contains(&"-flto") => options.push("-fuse-ld=lld"),
        _ => {}
    }
    built(compiler, &options, folder, "shapes", ending, source)
}

#[test]
fn members_of_c_by_gcc_and_clang() -> Result<()> {
    matrix(&["gcc", "clang-22"], &OPTIMIZED, "c", C)
}

#[test]
fn members_of_cpp_by_gcc_and_clang() -> Result<()> {
    matrix(&["g++", "clang++-22"], &OPTIMIZED, "cc", CPP)
}

#[test]
fn members_of_rust() -> Result<()> {
    matrix(&["rustc"], &RUST_OPTIMIZED, "rs", RUST)
}
