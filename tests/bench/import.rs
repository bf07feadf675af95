//! Measures the time and memory that `precise import` needs for a large `perf.data`, next to `perf
//! script` or `perf report --mem-mode`, in one run.
//!
//! The file is made from a real recording (`perf mem record`): its samples are repeated, later each
//! time, with data addresses that move by a cache line, so that they do not all fall into the same
//! cells. With `distinct`, no two samples have the same address, so that no two fall into the same
//! cell. All programs read the file from the page cache.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};

/// The default size of the file in bytes.
const SIZE: u64 = 1 << 30;
/// The number of different cache lines that the address of one sample becomes.
const LINES: u64 = 16;
/// The size of a cache line.
const LINE: u64 = 64;
/// The first address of a file in which all are different.
const FIRST: u64 = 0x7000_0000_0000;
/// The record types `PERF_RECORD_SAMPLE` and `PERF_RECORD_FINISHED_ROUND`.
const SAMPLE: u32 = 9;
const ROUND: u32 = 68;
/// Positions of words in a sample of this recording, which has ip, tid, time, address.
const TIME: usize = 8 + 2 * 8;
const ADDRESS: usize = 8 + 3 * 8;
/// The position of the records' size in the header of a file.
const DATA: usize = 40;
const FEATURES: std::ops::Range<usize> = 72..104;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-import PRECISE [BYTES [distinct]]";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let size = arguments.next().map_or(Ok(SIZE), |bytes| bytes.parse())?;
    let distinct = arguments.next().is_some_and(|word| word == "distinct");
    let folder = tempfile::tempdir()?;
    let (large, capture) = (folder.path().join("perf.data"), folder.path().join("x.parquet"));
    let recording =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/intel-cfl-mem-rcppthread/perf.data");
    let samples = make(&std::fs::read(&recording)?, &large, size, distinct)?;
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

/// Writes a recording of `size` bytes. Returns its number of samples.
fn make(recording: &[u8], path: &Path, size: u64, distinct: bool) -> Result<u64> {
    let word = |at: usize| -> Result<u64> {
        Ok(u64::from_le_bytes(recording.get(at..at + 8).context("a short file")?.try_into()?))
    };
    let (begin, length) = (word(DATA)? as usize, word(DATA + 8)? as usize);
    let records = recording.get(begin..begin + length).context("records outside of the file")?;
    let (mut beside, mut samples, mut rest) = (Vec::new(), Vec::new(), records);
    while let [a, b, c, d, _, _, low, high, ..] = *rest {
        let (kind, bytes) = (u32::from_le_bytes([a, b, c, d]), usize::from(u16::from_le_bytes([low, high])));
        let (record, more) = rest.split_at_checked(bytes.max(8)).context("a short record")?;
        rest = more;
        match kind {
            SAMPLE => samples.push(record.to_vec()),
            ROUND => {}
            _ => beside.extend_from_slice(record),
        }
    }
    let time = |sample: &Vec<u8>| u64::from_le_bytes(sample[TIME..TIME + 8].try_into().unwrap_or_default());
    let span = samples.iter().map(time).max().unwrap_or(0) - samples.iter().map(time).min().unwrap_or(0) + 1;
    let each: u64 = samples.iter().map(|sample| sample.len() as u64).sum::<u64>() + 8;
    let times = size / each + 1;
    let grown = beside.len() as u64 + times * each;

    let mut out = BufWriter::new(File::create(path)?);
    let mut head = recording[..begin].to_vec();
    head[DATA + 8..DATA + 16].copy_from_slice(&grown.to_le_bytes());
    out.write_all(&head)?;
    out.write_all(&beside)?;
    let mut addresses = (FIRST..).step_by(LINE as usize);
    for turn in 0..times {
        for sample in &samples {
            let mut sample = sample.clone();
            let add = |sample: &mut [u8], at: usize, more: u64| {
                let word = u64::from_le_bytes(sample[at..at + 8].try_into().unwrap_or_default());
                sample[at..at + 8].copy_from_slice(&word.wrapping_add(more).to_le_bytes());
            };
            add(&mut sample, TIME, turn * span);
            match addresses.next().filter(|_| distinct) {
                Some(address) => sample[ADDRESS..ADDRESS + 8].copy_from_slice(&address.to_le_bytes()),
                None => add(&mut sample, ADDRESS, turn % LINES * LINE),
            }
            out.write_all(&sample)?;
        }
        out.write_all(&[ROUND as u8, 0, 0, 0, 0, 0, 8, 0])?;
    }
    // The table of sections after the records contains positions in the file.
    let sections: u32 = recording[FEATURES].iter().map(|byte| byte.count_ones()).sum();
    let mut tail = recording[begin + length..].to_vec();
    for entry in tail.chunks_mut(16).take(sections as usize) {
        let place = u64::from_le_bytes(entry[..8].try_into()?) + grown - length as u64;
        entry[..8].copy_from_slice(&place.to_le_bytes());
    }
    out.write_all(&tail)?;
    out.flush()?;
    Ok(times * samples.len() as u64)
}

/// Runs a command, and prints its time and its largest memory. Returns the time in seconds.
fn measure(name: &str, mut command: Command) -> Result<f64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waits for our own child, with two pointers that outlive the call.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(waited == child.id() as i32 && status == 0, "{name} ended with {status:#x}");
    println!("{name:<24}{seconds:>8.1} s{:>8} MB at most", usage.ru_maxrss / 1024);
    Ok(seconds)
}
