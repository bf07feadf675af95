//! Habits from perf: what runs without `--`, what ends a run, and where output goes.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::{Capture, Name, Row};
use precise_tests::run::{binary, precise};

const FAULTS: [&str; 5] = ["record", "-e", "page-faults", "-c", "1"];

/// Returns the processes of a capture.
fn processes(capture: &Capture) -> Vec<&str> {
    let name = |row: &Row| match row.process {
        Name::Known(id) => Some(capture.names.get(id)),
        Name::Unknown(_) => None,
    };
    let mut names: Vec<&str> = capture.rows.iter().filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_command_needs_no_dashes_and_can_end_a_run_of_the_machine() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.parquet");
    let path = file.display().to_string();
    // The flags of the command are not those of precise, and its output is not in the JSON.
    let options = ["--json", "-o", &path];
    let ended = precise([&FAULTS[..], &options, &["sh", "-c", "echo to-the-reader; exit 3"]].concat())?;
    let ended = ended.expect(3)?;
    serde_json::from_str::<serde_json::Value>(&ended.stdout).context(ended.stdout.clone())?;
    ensure!(ended.stderr.lines().any(|line| line == "to-the-reader"), "{}", ended.stderr);

    // Another process runs while the command waits.
    let begin = Instant::now();
    let mut other = Command::new("sh").args(["-c", "while sleep 0.05; do :; done"]).spawn()?;
    let all = [&FAULTS[..], &["-q", "-a", "-o", &path, "--", "sh", "-c", "sleep 1; exit 4"]].concat();
    let ended = precise(all);
    other.kill()?;
    other.wait()?;
    ended?.expect(4)?;
    ensure!(begin.elapsed() < Duration::from_secs(8), "the end of the command does not end the run");
    let capture = Capture::read(&file)?;
    ensure!(capture.meta.target == "all processes during `sh -c sleep 1; exit 4`", "{}", capture.meta.target);
    let pids = capture.rows.iter().map(|row| row.pid);
    let pids: std::collections::BTreeSet<u32> = pids.collect();
    ensure!(pids.len() > 5, "more than the command: {pids:?}");

    // A capture on the standard output has nothing else in it.
    let command = "echo to-the-reader; exit 5";
    let output =
        Command::new(binary()?).args(FAULTS).args(["-q", "-o", "-", "sh", "-c", command]).output()?;
    ensure!(output.status.code() == Some(5), "{output:?}");
    ensure!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"), "not a capture alone");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("to-the-reader"));
    Ok(())
}

#[test]
fn a_run_of_processes_ends_with_them_and_what_they_started() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.parquet");
    let path = file.display().to_string();
    // The shell ends before the child that it leaves behind.
    let script = "sleep 1; (sleep 1; ls / >/dev/null) & exit";
    let mut sampled = Command::new("sh").args(["-c", script]).spawn()?;
    let pid = sampled.id().to_string();
    // Otherwise it remains as a zombie, which is no end for its parent, but is one for the kernel.
    let waiting = std::thread::spawn(move || sampled.wait());
    let begin = Instant::now();
    precise([&FAULTS[..], &["-q", "-o", &path, "--duration", "60s", "-p", &pid]].concat())?.expect(0)?;
    let took = begin.elapsed();
    waiting.join().ok().context("a thread died")??;
    ensure!(took > Duration::from_millis(1500), "it ended with the first process: {took:?}");
    ensure!(took < Duration::from_secs(20), "it went on: {took:?}");
    let capture = Capture::read(&file)?;
    ensure!(processes(&capture).contains(&"ls"), "{:?}", processes(&capture));
    Ok(())
}
