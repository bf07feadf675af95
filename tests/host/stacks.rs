//! Programs with known call trees: the capture must have every chain, with all of its samples.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use precise_common::ledger::Counter;
use precise_tests::run::{Recorded, precise, undisturbed};

/// Faults known pages in `touch`, called through `left`, through `right` and `left`, through
/// `right`, and recursively.
const TREE: &str = include_str!("../../docs/examples/tree.c");

/// A minimal JIT: `outer` calls `inner`, which faults 200 pages. The code of both is in anonymous
/// memory, with a perf map.
const JIT: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push rbp; mov rbp, rsp; l: movb [rdi], 1; add rdi, 4096; dec rsi; jnz l; pop rbp; ret */
static const unsigned char inner[] = { 0x55, 0x48, 0x89, 0xe5, 0xc6, 0x07, 0x01, 0x48, 0x81, 0xc7, 0x00, 0x10,
    0x00, 0x00, 0x48, 0xff, 0xce, 0x75, 0xf1, 0x5d, 0xc3 };
/* push rbp; mov rbp, rsp; call inner (at +0x100); pop rbp; ret */
static const unsigned char outer[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0x00, 0x00, 0x00, 0x5d, 0xc3 };
void enter(void (*code)(char *, long), char *p) { code(p, 200); }
int main(void)
{
    char name[64];
    char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = mmap(0, 200 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 200 * 4096, MADV_NOHUGEPAGE);
    memcpy(code, outer, sizeof outer);
    memcpy(code + 0x100, inner, sizeof inner);
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx 100 jit::outer\n%lx 100 jit::inner\n", (long)code, (long)code + 0x100);
    fclose(map);
    enter((void (*)(char *, long))code, p);
    usleep(1500000); /* the map is read at the end of an epoch */
    unlink(name);
    return 0;
}
"#;

fn compile(folder: &Path, name: &str, source: &str) -> Result<String> {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source)?;
    let program = folder.join(name);
    // Without optimisation, every function has its frame from the first instruction to the last.
    let done = std::process::Command::new("gcc")
        .args(["-O0", "-g", "-fno-omit-frame-pointer", "-o"])
        .args([&program, &file])
        .status()
        .context("gcc cannot be started: is it installed?")?;
    ensure!(done.success());
    Ok(program.display().to_string())
}

/// Records every page fault of a program with its call chain.
fn record(folder: &Path, program: &str, more: &[&str]) -> Result<Recorded> {
    let file = folder.join("chains.parquet");
    let path = file.display().to_string();
    let arguments =
        [&["record", "-g", "-e", "page-faults", "-c", "1", "-o", &path], more, &["--", program]].concat();
    Recorded::of(precise(arguments)?.expect(0)?, &file)
}

/// Returns the samples by chain, for chains that contain `function`: the part of each folded line
/// from `main` on.
fn folded(folder: &Path, function: &str) -> Result<BTreeMap<String, u64>> {
    let file = folder.join("chains.parquet").display().to_string();
    let printed = precise(["flamegraph", "-i", &file, "--folded"])?.expect(0)?.stdout;
    let mut chains = BTreeMap::new();
    for line in printed.lines().filter(|line| line.contains(function)) {
        let (frames, samples) = line.rsplit_once(' ').context("a weight")?;
        let at = frames.find(";main;").context("below main")?;
        *chains.entry(frames[at + 1..].to_owned()).or_default() += samples.parse::<u64>()?;
    }
    Ok(chains)
}

#[test]
fn every_chain_has_its_samples() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = compile(folder.path(), "tree", TREE)?;
        for read_path in ["direct", "probe"] {
            // Epochs shorter than the run: a chain is the same in each epoch.
            let more = ["--read-path", read_path, "--epoch", "100ms"];
            let recorded = record(folder.path(), &program, &more)?;
            let ledger = recorded.ledger();
            assert_eq!(
                (ledger.unaccounted(), ledger.counter(Counter::StackUnreadable)),
                (0, 0),
                "{ledger:?}"
            );
            let mut expected: BTreeMap<String, u64> = [
                ("main;left;touch".to_owned(), 300),
                ("main;right;touch".to_owned(), 100),
                ("main;right;left;touch".to_owned(), 300),
            ]
            .into();
            expected.extend((1..=5).map(|depth| (format!("main;{}touch", "again;".repeat(depth)), 10)));
            assert_eq!(folded(folder.path(), "touch")?, expected, "{read_path}");
        }
        Ok(())
    })
}

#[test]
fn the_report_knows_totals_callers_and_callees() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = compile(folder.path(), "tree", TREE)?;
        record(folder.path(), &program, &[])?;
        // On another day, neither the process nor the program exists any more.
        std::fs::remove_file(&program)?;
        let file = folder.path().join("chains.parquet").display().to_string();
        let report = |function: &str| -> Result<serde_json::Value> {
            let ended =
                precise(["report", "-i", &file, "--json", "-n", "1000", "-g", function])?.expect(0)?;
            Ok(serde_json::from_str::<serde_json::Value>(&ended.stdout)?["events"][0].clone())
        };
        let graph = report("left")?;
        let cost = |name: &str| {
            let all = graph["functions"].as_array().into_iter().flatten();
            let found = all.into_iter().find(|f| f["function"]["text"] == name);
            found.map(|f| (f["inclusive"]["samples"].clone(), f["exclusive"]["samples"].clone()))
        };
        // `main` writes to the program's data for the first time: one page of its own.
        let (main, own) = cost("main").context("main")?;
        assert_eq!(main.as_u64(), own.as_u64().map(|own| own + 750));
        for (name, total, own) in [("touch", 750, 750), ("left", 600, 0), ("right", 400, 0), ("again", 50, 0)]
        {
            let (inclusive, exclusive) = cost(name).context(name)?;
            assert_eq!((inclusive, exclusive), (total.into(), own.into()), "{name}");
        }
        let neighbours = |graph: &serde_json::Value, which: &str| -> BTreeMap<String, u64> {
            let list = graph["around"][0][which].as_array().cloned().unwrap_or_default();
            let name = |n: &serde_json::Value| n["function"]["text"].as_str().unwrap_or("-").to_owned();
            list.iter().map(|n| (name(n), n["samples"].as_u64().unwrap_or(0))).collect()
        };
        assert_eq!(
            neighbours(&graph, "callers"),
            [("main".to_owned(), 300), ("right".to_owned(), 300)].into()
        );
        assert_eq!(neighbours(&graph, "callees"), [("touch".to_owned(), 600)].into());
        let again = neighbours(&report("again")?, "callers");
        assert_eq!(again, [("main".to_owned(), 50), ("again".to_owned(), 40)].into());
        Ok(())
    })
}

#[test]
fn a_perf_map_names_frames_of_a_chain() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = compile(folder.path(), "jit", JIT)?;
        record(folder.path(), &program, &["--epoch", "300ms"])?;
        let expected = "main;enter;jit::outer_[j];jit::inner_[j]".to_owned();
        assert_eq!(folded(folder.path(), "jit::inner")?, [(expected, 200)].into());
        Ok(())
    })
}

#[test]
fn chains_that_perf_recorded_are_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = compile(folder.path(), "tree", TREE)?;
    let data = folder.path().join("perf.data").display().to_string();
    let done = std::process::Command::new("perf")
        // -N, because its cache of files by build id is not needed here. --buildid-mmap, because
        // without it perf 6.1 crashes at the end if a run of precise goes on at the same time
        // (docs/journal/0005-build-ids.md).
        .args(["record", "-q", "-N", "--buildid-mmap", "-e", "page-faults", "-c", "1", "-g", "-o", &data, "--", &program])
        .output()
        .context("perf cannot be started: is it installed?")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let capture = folder.path().join("chains.parquet").display().to_string();
    precise(["import", &data, "-o", &capture])?.expect(0)?;
    let imported = folded(folder.path(), "touch")?;
    assert_eq!(imported.get("main;right;left;touch"), Some(&300), "{imported:?}");
    undisturbed(|| {
        record(folder.path(), &program, &[])?;
        assert_eq!(folded(folder.path(), "touch")?, imported);
        Ok(())
    })
}

#[test]
fn a_table_of_chains_that_is_full_loses_chains_and_no_samples() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = compile(folder.path(), "tree", TREE)?;
        let recorded = record(folder.path(), &program, &["--stacks", "16"])?;
        let ledger = recorded.ledger();
        let without = ledger.counter(Counter::StackFull);
        assert!(without > 0 && ledger.unaccounted() == 0, "{ledger:?}");
        assert_eq!(recorded.rows().count(), ledger.counter(Counter::Seen));
        let file = folder.path().join("chains.parquet").display().to_string();
        let printed = precise(["flamegraph", "-i", &file, "--folded"])?.expect(0)?.stdout;
        let missing =
            printed.lines().filter(|line| line.contains("[no call chain: table of call chains full"));
        let missing = missing.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>();
        assert_eq!(missing, without);
        Ok(())
    })
}

#[test]
fn addresses_and_chains_are_two_runs() -> Result<()> {
    let of = ["record", "-g", "-e", "alignment-faults", "--by", "ip,address", "--", "true"];
    let said = precise(of)?.expect(2)?.stderr;
    assert!(said.contains("Make two captures: one with -g, one with --by address."), "{said}");
    Ok(())
}
