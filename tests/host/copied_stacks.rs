//! Copies of stacks that are unwound here: those of `perf record --call-graph dwarf` by `import`,
//! compared with perf's own unwinder, and those of `script -g`, compared with the program's chains.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::Capture;
use precise_tests::chain_judge::compare;
use precise_tests::chains::{of_perf, of_precise};
use precise_tests::run::{precise, undisturbed};
use precise_tests::say;

const FOREST: &str = include_str!("../lab/workloads/forest.c");

/// Compiles the forest. It waits for this number of milliseconds before its first fault.
fn forest(folder: &Path) -> Result<String> {
    let (source, program) = (folder.join("forest.c"), folder.join("forest"));
    std::fs::write(&source, FOREST)?;
    let options = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-g"];
    let done = Command::new("gcc").args(options).arg("-o").args([&program, &source]).status()?;
    ensure!(done.success(), "gcc failed");
    Ok(program.display().to_string())
}

/// Records the page faults of the forest in user space by perf, with copies of this number of bytes
/// of stack.
///
/// perf 6.1 aborts on Linux 6.18 when it reads the kernel's build ids (util/build-id.c). So it
/// looks for none (`-B`), and does not sample the kernel.
fn recorded(folder: &Path, program: &str, bytes: u32) -> Result<(String, String)> {
    let (data, capture) = (folder.join("perf.data"), folder.join("x.parquet"));
    let (data, capture) = (data.display().to_string(), capture.display().to_string());
    let graph = format!("dwarf,{bytes}");
    let fixed =
        ["record", "-q", "-B", "-e", "page-faults:u", "-c", "1", "-m", "4096", "--call-graph", &graph];
    let mut perf = Command::new("perf");
    let done = perf.args(fixed).args(["-o", &data, "--", program]).env("FOREST_WAIT_MS", "100").output()?;
    ensure!(done.status.success(), "perf record: {}", String::from_utf8_lossy(&done.stderr));
    precise(["import", &data, "-o", &capture])?.expect(0)?;
    Ok((data, capture))
}

/// Returns the number of samples of which the kernel could copy no stack: it copies without faults,
/// and a fault may be that of the first access to a page of the stack.
fn without_copy(data: &Path) -> Result<u64> {
    let printed = Command::new("perf").args(["script", "-D", "-i"]).arg(data).output()?;
    ensure!(printed.status.success(), "perf script -D: {}", String::from_utf8_lossy(&printed.stderr));
    let printed = String::from_utf8_lossy(&printed.stdout);
    Ok(printed.lines().filter(|line| line.contains("ustack: size 0,")).count() as u64)
}

/// Each chain of a recording, by every frame's address and function, is the one that perf's own
/// unwinder makes of the same copy.
#[test]
fn an_import_has_the_chains_that_perf_has() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = forest(folder.path())?;
        let (data, capture) = recorded(folder.path(), &program, 16_384)?;
        let (ours, theirs) = (of_precise(Path::new(&capture))?, of_perf(Path::new(&data))?);
        let verdict = compare(&ours, &theirs);
        say(&format!(
            "{} samples, {} of both, {} the same, whole {}, ends {:?}",
            verdict.samples, verdict.both, verdict.same, verdict.whole, verdict.ends
        ));
        // Of a sample without a copy perf prints no frame at all, not even where it was taken.
        let both = verdict.both + without_copy(Path::new(&data))?;
        assert!(verdict.samples > 150 && both == verdict.samples, "{verdict:#?}");
        assert_eq!(verdict.same + verdict.same_functions, verdict.both, "{:#?}", verdict.different);
        // The first function of the dynamic loader has no unwind information.
        let of_loader = verdict.ends.iter().filter(|((_, module), _)| module.starts_with("ld-linux"));
        let loader: u64 = of_loader.map(|(_, samples)| samples).sum();
        assert_eq!(verdict.whole + loader, verdict.samples, "{:#?}", verdict.ends);
        let folded = precise(["flamegraph", "-i", &capture, "--folded"])?.expect(0)?.stdout;
        assert!(folded.contains("main;pushed;variable;leaf;touch 100\n"), "{folded}");
        let whole = |line: &str| !line.contains("touch") || !line.contains("[chain ends");
        assert!(folded.lines().all(whole), "{folded}");
        let notes = Capture::read(Path::new(&capture))?.meta.notes.join("\n");
        assert!(notes.contains("copies of stacks were unwound: unwind tables of "), "{notes}");
        Ok(())
    })
}

/// A chain that is deeper than its copy says so. No frame of it is wrong.
#[test]
fn chains_end_where_the_copy_ends() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = forest(folder.path())?;
        let (_, capture) = recorded(folder.path(), &program, 512)?;
        let folded = precise(["flamegraph", "-i", &capture, "--folded"])?.expect(0)?.stdout;
        let ends = "forest;[chain ends: stack copy ended];recursive;";
        let deep = folded.lines().find(|line| line.starts_with(ends)).with_context(|| folded.clone())?;
        assert!(deep.ends_with(";recursive;leaf;touch 13"), "{deep}");
        let report = precise(["report", "-i", &capture, "--json", "-g"])?.expect(0)?.stdout;
        let event = serde_json::from_str::<serde_json::Value>(&report)?["events"][0].clone();
        let ended = event["ends"].as_array().into_iter().flatten().find(|end| end["end"] == "copy-ended");
        assert!(ended.is_some_and(|end| end["samples"].as_u64() >= Some(13)), "{event}");
        Ok(())
    })
}

/// Samples by folded chain.
type Folded = BTreeMap<String, u64>;

/// Folds what `perf script` or `script -g` prints, as the programs do that draw flame graphs.
fn folded(printed: &str) -> Result<Folded> {
    let mut found = Folded::new();
    for sample in printed.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let mut lines = sample.lines();
        let head = lines.next().context("a sample")?;
        let words: Vec<&str> = head.split_ascii_whitespace().collect();
        // perf has the CPU only where it samples by CPU.
        let (comm, tid, rest) = match words[..] {
            [comm, tid, cpu, ref rest @ ..] if cpu.starts_with('[') => (comm, tid, rest),
            [comm, tid, ref rest @ ..] => (comm, tid, rest),
            _ => anyhow::bail!("not a head: {head}"),
        };
        let [time, period, event] = rest[..] else { anyhow::bail!("not a head: {head}") };
        tid.parse::<u32>()?;
        ensure!(time.ends_with(':') && event.starts_with("page-faults:"), "{head}");
        ensure!(period == "1", "{head}");
        let mut chain = vec![comm.to_owned()];
        for line in lines {
            let (address, rest) = line.trim_start().split_once(' ').with_context(|| line.to_owned())?;
            u64::from_str_radix(address, 16).with_context(|| line.to_owned())?;
            let (function, _) = rest.rsplit_once(" (").with_context(|| line.to_owned())?;
            ensure!(line.starts_with('\t'), "{line}");
            let function = function.rsplit_once("+0x").map_or(function, |(function, _)| function);
            chain.insert(1, function.to_owned());
        }
        *found.entry(chain.join(";")).or_default() += 1;
    }
    Ok(found)
}

/// Returns chains by names that perf and precise have in common: perf has another of several names
/// of a function of libc, and no inlined functions here.
fn in_common(all: &Folded) -> Folded {
    let mut found = Folded::new();
    for (chain, samples) in all {
        let plain = |name: &str| {
            let name = name.trim_start_matches("__GI_");
            name.split_once(".part.").map_or(name, |(name, _)| name).to_owned()
        };
        let mut names: Vec<String> = chain.split(';').map(plain).collect();
        names.dedup();
        *found.entry(names.join(";")).or_default() += samples;
    }
    found
}

/// Returns those that end in `touch`, without the functions before `main`.
fn of_touch(all: &Folded) -> Folded {
    let mut found = Folded::new();
    for (chain, samples) in all.iter().filter(|(chain, _)| chain.ends_with(";touch")) {
        let chain = chain.find(";main;").map_or(&**chain, |at| &chain[at + 1..]);
        *found.entry(chain.to_owned()).or_default() += samples;
    }
    found
}

#[test]
fn streamed_samples_have_their_chains_as_perf_prints_them() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = forest(folder.path())?;
        let arguments = ["script", "-q", "-g", "-e", "page-faults", "-c", "1", "--", &program];
        let printed = precise(arguments)?.expect(0)?.stdout;
        let streamed = of_touch(&folded(&printed)?);
        let expected = [
            ("main;pushed;variable;leaf;touch", 100),
            ("main;jumped;leaf;touch", 9),
            ("main;vforked;leaf;touch", 5),
        ];
        for (chain, samples) in expected {
            assert_eq!(streamed.get(chain), Some(&samples), "{streamed:#?}");
        }
        let recursive = format!("main;{}leaf;touch", "recursive;".repeat(61));
        assert_eq!(streamed.get(&recursive), Some(&13), "{streamed:#?}");
        assert!(streamed.keys().all(|chain| !chain.contains("[chain ends")), "{streamed:#?}");
        // What perf itself prints of such samples has the same form, and the same chains.
        let (data, _) = recorded(folder.path(), &program, 16_384)?;
        let theirs = Command::new("perf").args(["script", "--no-inline", "-i", &data]).output()?;
        let theirs = of_touch(&folded(&String::from_utf8_lossy(&theirs.stdout))?);
        assert_eq!(in_common(&streamed), in_common(&theirs));
        Ok(())
    })
}

#[test]
fn streamed_chains_as_json_and_in_other_ways() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = forest(folder.path())?;
        let run = |more: &[&str]| -> Result<String> {
            let fixed = ["script", "-q", "-e", "page-faults", "-c", "1"];
            Ok(precise([&fixed[..], more, &["--", &program]].concat())?.expect(0)?.stdout)
        };
        let mut pushed = 0;
        for line in run(&["-g", "--json"])?.lines() {
            let sample: serde_json::Value = serde_json::from_str(line)?;
            let callers = sample["callers"].as_array().context("callers")?;
            let names: Vec<_> = callers.iter().filter_map(|caller| caller["symbol"].as_str()).collect();
            if sample["symbol"] == "touch" && names.starts_with(&["leaf", "variable", "pushed", "main"]) {
                pushed += 1;
                assert_eq!(sample["chain_end"], "root", "{line}");
                assert!(callers[0]["ip"].as_str().is_some_and(|ip| ip.starts_with("0x")), "{line}");
            }
        }
        assert_eq!(pushed, 100);
        // A small copy, and the kernel's frame pointers, of which there are none.
        let small = run(&["-g", "--stack-copy", "512"])?;
        assert!(small.contains("[chain ends: stack copy ended] ([unknown])"), "{small}");
        let lost = of_touch(&folded(&run(&["--call-graph", "fp"])?)?);
        assert!(!lost.contains_key("main;pushed;variable;leaf;touch"), "{lost:#?}");
        // The chosen fields, then the chain.
        let fields = run(&["-g", "--fields", "pid,symbol"])?;
        assert!(
            fields.starts_with('#') && fields.contains("touch+0x") && fields.contains("\n\t"),
            "{fields}"
        );
        let refused =
            precise(["script", "-g", "--stack-copy", "70000", "-e", "page-faults", "--", &program])?;
        assert!(refused.expect(2)?.stderr.contains("--stack-copy must be from 8 to 65,528"));
        Ok(())
    })
}
