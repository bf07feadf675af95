//! The binary and damaged captures: parquet panics at some of them, which the binary must survive
//! as it is linked, with the unwind tables that it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Packages;
use crate::checkout;

/// Captures that the fuzzer kept, each of which reaches other code.
const CORPUS: &str = "tests/corpus/capture";
/// How often each of them is damaged, each time at other places.
const TIMES: u64 = 12;
/// What precise says where it caught a panic.
const CAUGHT: &str = "its data pages cannot be decoded";
/// Exit codes of a capture that is read, of an option that it cannot answer, of a file that is not
/// one, and of one without samples (docs/exit-codes.md).
const CODES: [i32; 4] = [0, 2, 67, 69];

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let file = packages.folder.join("damaged.parquet");
    let mut caught = 0;
    for seed in seeds()? {
        let whole = fs::read(&seed).with_context(|| format!("cannot read {}", seed.display()))?;
        for time in 0..TIMES {
            fs::write(&file, damaged(&whole, time))
                .with_context(|| format!("cannot write {}", file.display()))?;
            caught += u64::from(survives(&packages.binary.stripped, &file, &seed)?);
        }
    }
    ensure!(caught > 0, "no file made parquet panic, so nothing is shown");
    Ok(())
}

fn seeds() -> Result<Vec<PathBuf>> {
    let folder = checkout::root().join(CORPUS);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut seeds: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    seeds.sort();
    Ok(seeds)
}

/// Returns the bytes with some of them changed; the first time, as they are.
fn damaged(whole: &[u8], time: u64) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    // xorshift64: the same places in each run.
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ time;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..time {
        let at = next() as usize % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = next() as u8;
        }
    }
    bytes
}

/// Returns whether a panic was caught.
fn survives(precise: &Path, file: &Path, seed: &Path) -> Result<bool> {
    let mut report = Command::new("timeout");
    report.arg("20").arg(precise).args(["report", "-i"]).arg(file);
    let output = report.output().context("cannot start timeout")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code().is_some_and(|code| CODES.contains(&code)) && !said.contains("panicked"),
        "{} made of {} ends with {}: {said}",
        file.display(),
        seed.display(),
        output.status
    );
    Ok(said.contains(CAUGHT))
}
