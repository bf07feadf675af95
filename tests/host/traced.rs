//! Tests the program that logs: its log says for each sample what the ledger counted.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise_common::ledger::{Counter, Fate, LedgerUnit};
use precise_tests::{
    run::{Ended, binary},
    skip,
};

/// Returns the number of lines that end with `fate`.
fn lines(log: &str, fate: &str) -> u64 {
    log.lines().filter(|line| line.starts_with("trace: cpu") && line.contains(fate)).count() as u64
}

/// Returns the number of samples that the log says it has not.
fn not_logged(log: &str) -> u64 {
    let numbers = log.lines().filter_map(|line| {
        let (_, rest) = line.split_once("not logged: ")?;
        Some(rest.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum::<u64>())
    });
    numbers.sum()
}

#[test]
fn the_log_has_what_the_ledger_counted() -> Result<()> {
    if Command::new("bpf-linker").arg("--version").output().is_err() {
        skip("bpf-linker is not installed, so the program that logs cannot be built");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("traced.parquet").display().to_string();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut trace = Command::new(env!("CARGO"));
    trace.current_dir(root).args(["xtask", "trace", "--", "record", "-e", "page-faults", "-c", "1"]);
    trace.args(["--filter", "comm == true", "-o", &file, "--", "sh", "-c"]);
    // More than the limit of a second.
    trace.arg("for round in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done");
    let ended = Ended::from(trace.output()?).expect(0)?;
    let capture = precise::model::Capture::read(Path::new(&file))?;
    let ledger = &capture.meta.events.first().context("an event")?.ledger;
    let log = &ended.stderr;
    let (kept, rejected) = (lines(log, ": kept (aggregated: "), lines(log, ": rejected (clause 1 "));
    ensure!(kept > 0 && kept <= ledger.counter(Counter::Aggregated), "{kept} {ledger:?} {log}");
    ensure!(rejected > 0 && rejected <= ledger.rejected_total(), "{rejected} {ledger:?} {log}");
    // What is missing is known, also what no line came after.
    let says_where = Counter::ALL.iter().filter(|counter| {
        let info = counter.info();
        let measured = matches!(info.fate, Fate::Arrived | Fate::Measure);
        !measured && matches!(info.unit, LedgerUnit::Samples)
    });
    let ended: u64 = says_where.map(|counter| ledger.counter(*counter)).sum();
    let (all, missing) = (lines(log, ", ip 0x"), not_logged(log));
    ensure!(all + missing == ended + ledger.rejected_total(), "{ledger:?} {log}");
    ensure!(missing > 0, "these are more than the limit: {log}");
    Ok(())
}

#[test]
fn the_binary_has_no_log() -> Result<()> {
    let binary = std::fs::read(binary()?)?;
    let has = |text: &[u8]| binary.windows(text.len()).any(|bytes| bytes == text);
    ensure!(has(b"sample_probe"), "the object is not in the binary");
    ensure!(!has(b"AYA_LOG"), "the object in the binary, or the binary, has a log");
    Ok(())
}
