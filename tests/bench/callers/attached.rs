//! Attaches precise and perf to a stopped program, lets it run, and reads the chains of both.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::kill_on_drop::KillOnDrop;

use super::programs::ShippedProgram;
use precise_tests::chains::{ChainsTaken, of_perf, of_precise};

/// How long both may take to attach. Neither says when it has.
const ATTACH: Duration = Duration::from_secs(3);
/// How long the program runs while it is sampled.
const SAMPLED: Duration = Duration::from_millis(1500);
/// How long a profiler may take to end.
const END: Duration = Duration::from_secs(120);

/// The chains of both.
pub struct SampledByBoth {
    /// Those of precise.
    pub precise: ChainsTaken,
    /// Those of perf.
    pub perf: ChainsTaken,
}

/// Samples a program by both.
pub fn sample(
    precise: &Path,
    running: KillOnDrop,
    program: &ShippedProgram,
    folder: &Path,
) -> Result<SampledByBoth> {
    let id = running.id().to_string();
    signal(&running, libc::SIGSTOP);
    let period = program.period.to_string();
    let (capture, recording) = (folder.join("chains.parquet"), folder.join("chains.data"));
    let fixed = ["record", "-q", "-g", "-e", "page-faults", "-c", &period, "-p", &id, "--duration", "300s"];
    let mut ours = Command::new(precise);
    ours.args(fixed).args(["--stacks", "8192", "--overhead", "off", "-o"]).arg(&capture);
    let mut theirs = Command::new("perf");
    theirs.args(["record", "-q", "-e", "page-faults", "-c", &period, "-p", &id]);
    theirs.args(["--call-graph", "dwarf,65528", "-m", "32768", "-o"]).arg(&recording);
    let (ours, theirs) = (quiet(&mut ours)?, quiet(&mut theirs)?);
    std::thread::sleep(ATTACH);
    signal(&running, libc::SIGCONT);
    std::thread::sleep(SAMPLED);
    // Nothing more happens while the two end one after the other.
    signal(&running, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(100));
    end(ours).context("precise")?;
    end(theirs).context("perf record")?;
    let sampled = SampledByBoth { precise: of_precise(&capture)?, perf: of_perf(&recording)? };
    std::fs::remove_file(&recording)?;
    drop(running);
    Ok(sampled)
}

/// Starts a profiler whose output nobody reads.
pub fn quiet(command: &mut Command) -> Result<KillOnDrop> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(KillOnDrop::from(child.with_context(|| format!("{command:?}"))?))
}

/// Sends a signal.
pub fn signal(to: &KillOnDrop, signal: libc::c_int) {
    // SAFETY: the child has not been waited for, so the process id is its own.
    unsafe { libc::kill(to.id().cast_signed(), signal) };
}

/// Interrupts a profiler, unless it has ended with the program that it sampled.
fn end(mut running: KillOnDrop) -> Result<()> {
    match running.try_wait()? {
        Some(status) => ensure!(status.success(), "it has ended with {status}"),
        None => drop(interrupt(running)?),
    }
    Ok(())
}

/// Interrupts a profiler. Returns the time until its end.
pub fn interrupt(mut running: KillOnDrop) -> Result<Duration> {
    ensure!(running.try_wait()?.is_none(), "it has ended before it was interrupted");
    signal(&running, libc::SIGINT);
    let begin = Instant::now();
    while begin.elapsed() < END {
        if running.try_wait()?.is_some() {
            return Ok(begin.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("it did not end within {} s of SIGINT", END.as_secs())
}
