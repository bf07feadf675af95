//! The binary and damaged captures: each is read or refused in words. parquet may panic at some of
//! them, which the binary must survive as it is linked, with the unwind tables that it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Packages;
use crate::{checkout, process};

/// Recordings whose captures are damaged.
const RECORDINGS: &str = "tests/recordings";
/// The number of files that are made. One of 200 made parquet panic until columns were read by
/// `GroupReader` only, and none of 4,000 since.
const FILES: u32 = 400;
/// What precise says where it caught a panic.
const CAUGHT: &str = "its data pages cannot be decoded";
/// Exit codes of a capture that is read, of one that is not one, and of one without samples
/// (docs/exit-codes.md).
const CODES: [i32; 3] = [0, 67, 69];

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let precise = &packages.binary.stripped;
    let file = packages.folder.join("damaged.parquet");
    let captures = captures(precise, &packages.folder)?;
    // xorshift64: the same places in each run.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut caught = 0;
    for _ in 0..FILES {
        let mut bytes = captures[next() % captures.len()].clone();
        // The pages are at the start.
        let at = next() % (bytes.len() / 2).max(1);
        bytes[at] = next() as u8;
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        caught += u32::from(survives(precise, &file)?);
    }
    println!("{FILES} damaged captures; parquet panicked at {caught} of them");
    Ok(())
}

/// Returns a capture of each recording.
fn captures(precise: &Path, folder: &Path) -> Result<Vec<Vec<u8>>> {
    let recordings = checkout::root().join(RECORDINGS);
    let list = || format!("cannot list {}", recordings.display());
    let entries = fs::read_dir(&recordings).with_context(list)?.flatten();
    let mut recordings: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("perf.data")).filter(|path| path.exists()).collect();
    recordings.sort();
    ensure!(!recordings.is_empty(), "{RECORDINGS} has no recording");
    let output = folder.join("whole.parquet");
    let import = |recording: &PathBuf| {
        process::output(Command::new(precise).arg("import").arg(recording).arg("-o").arg(&output))?;
        fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
    };
    recordings.iter().map(import).collect()
}

/// Returns whether a panic was caught.
fn survives(precise: &Path, file: &Path) -> Result<bool> {
    let mut report = Command::new("timeout");
    report.arg("20").arg(precise).args(["report", "-i"]).arg(file);
    let output = report.output().context("cannot start timeout")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code().is_some_and(|code| CODES.contains(&code)) && !said.contains("panicked"),
        "{} ends with {}: {said}",
        file.display(),
        output.status
    );
    Ok(said.contains(CAUGHT))
}
