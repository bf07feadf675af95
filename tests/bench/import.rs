//! Measures the time and memory that `precise import` needs for a large `perf.data`, next to `perf
//! script` or `perf report --mem-mode`, in one run. All programs read the file from the page cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise_tests::large_recording::{self, Addresses, Size};
use precise_tests::usage::Usage;

/// The default size of the file in bytes.
const SIZE: u64 = 1 << 30;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-import PRECISE [BYTES [distinct]]";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let size = arguments.next().map_or(Ok(SIZE), |bytes| bytes.parse())?;
    let distinct = arguments.next().is_some_and(|word| word == "distinct");
    let folder = tempfile::tempdir()?;
    let (large, capture) = (folder.path().join("perf.data"), folder.path().join("x.parquet"));
    let addresses = if distinct { Addresses::Distinct(u64::MAX) } else { Addresses::Real };
    let samples = large_recording::write(&large, Size::Bytes(size), addresses)?;
    println!("{samples} samples, {} MB", large.metadata()?.len() / 1_000_000);

    let mut import = Command::new(&precise);
    import.args(["import", "--quiet", "--json", "-o"]).args([&capture, &large]);
    let ours = measure("precise import", import)?;
    if distinct {
        let mut mem = Command::new(&precise);
        let views = measure("precise mem", {
            mem.arg("mem").arg(&capture);
            mem
        })?;
        let mut report = Command::new("perf");
        report.args(["report", "--mem-mode", "--stdio", "-i"]).arg(&large);
        let theirs = measure("perf report --mem-mode", report)?;
        println!(
            "import and mem take {:.2} of the time of perf report; the capture has {} MB",
            (ours + views) / theirs,
            capture.metadata()?.len() / 1_000_000
        );
        return Ok(());
    }
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "pid,tid,time,event,period,ip,addr,data_src,weight", "-i"]);
    script.arg(&large);
    let theirs = measure("perf script", script)?;
    println!(
        "{:.1} times as fast as perf script; the capture has {} MB",
        theirs / ours,
        capture.metadata()?.len() / 1_000_000
    );
    ensure!(ours < theirs, "precise import is slower than perf script");
    Ok(())
}

/// Runs a command, and prints its time and its largest memory. Returns the time in seconds.
fn measure(name: &str, mut command: Command) -> Result<f64> {
    let usage = Usage::of(&mut command)?;
    println!("{name:<24}{:>8.1} s{:>8} MB at most", usage.seconds, usage.peak_bytes >> 20);
    Ok(usage.seconds)
}
