//! `lab-chains CAPTURE RECORDING`: whether a capture has the call chains that the newest perf
//! prints of the recording that was imported, in user space, frame by frame.
//!
//! perf does not join a deferred chain with a sample that the kernel took after it, in the same
//! stay in the kernel, and it does not know the mappings of a process after its exit, which the
//! kernel reports before the callers of the last system call. `import` does both, so these samples
//! are only counted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::chain_judge::compare;
use precise_tests::chains::{COOKIE, ChainGroup, ChainsTaken, of_frame_pointers, of_precise};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab-chains: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [capture, recording] = arguments.as_slice() else { bail!("lab-chains CAPTURE RECORDING") };
    let perf = std::env::var_os("NEWEST_PERF").map(PathBuf::from).context("$NEWEST_PERF is not set")?;
    let ours = of_precise(Path::new(capture))?;
    let mut theirs = of_frame_pointers(&perf, Path::new(recording))?;
    let of_perf = samples(&theirs);
    theirs.retain(|_, group| !without_callers(group));
    let not_joined = of_perf - samples(&theirs);
    let verdict = compare(&ours, &theirs);
    println!(
        "{} samples of precise, {of_perf} of perf, {} chains, {} samples with the same frames, {not_joined} that \
         perf has no callers of",
        verdict.samples,
        theirs.len(),
        verdict.same
    );
    ensure!(verdict.samples == of_perf, "perf has {of_perf} samples, and precise {}", verdict.samples);
    ensure!(verdict.same + not_joined == of_perf, "{:#?}", verdict.different);
    ensure!(theirs.keys().any(|frames| frames.len() > 1), "no sample has a caller");
    Ok(())
}

/// Returns whether perf does not know the callers of a sample: they are a cookie, or addresses in
/// no file.
fn without_callers(group: &ChainGroup) -> bool {
    let cookie = group.frames.first().is_some_and(|frame| frame.file == COOKIE);
    cookie || !group.frames.is_empty() && group.frames.iter().all(|frame| frame.file == "[unknown]")
}

fn samples(taken: &ChainsTaken) -> u64 {
    taken.values().map(|group| group.samples).sum()
}
