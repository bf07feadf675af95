//! `cargo xtask bench serve`: runs `precise serve` beside busy CPUs while many clients scrape and
//! browse it, and judges whether it keeps its budget, loses no epoch and needs no more memory.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::serve::WINDOW;
use precise_tests::{
    clients::{self, Served},
    load::{Load, spin},
    serving::Serving,
};

/// The time before the first measurement, in which the governor finds the period.
const WARM_UP: Duration = Duration::from_secs(20);
/// The number of measurements.
const PARTS: u32 = 10;
/// How far memory may grow, in bytes, after the page for people has the rows of its whole window.
const GROWTH: u64 = 4 << 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("bench-serve PRECISE CLIENTS SECONDS");
    let (precise, count, seconds) = (next()?, next()?.parse()?, next()?.parse()?);
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(&precise);
    command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
    command.args(clients::options(&folder.path().display().to_string()));
    let (serving, begin) = (Serving::run(command)?, Instant::now());
    let cpus: Vec<u32> = (0..std::thread::available_parallelism()?.get() as u32).collect();
    let _load = Load::on(&cpus, spin);
    clients::ask(&serving, count, WARM_UP);
    println!(
        "{count} clients, half of them for the page; cpu-clock at 1 % of each of {} busy CPUs",
        cpus.len()
    );
    println!(
        "{:>7} {:>9} {:>10} {:>7} {:>5} {:>9}",
        "seconds", "answers", "cost", "epochs", "late", "memory"
    );
    let part = Duration::from_secs(seconds) / PARTS;
    let mut all: Vec<Served> = Vec::new();
    // The memory at the start of each part that begins with a full window.
    let mut full = Vec::new();
    for _ in 0..PARTS {
        let is_full = begin.elapsed() >= WINDOW;
        let served = Served::measure(&serving, count, part, cpus.len())?;
        full.extend(is_full.then_some(served.memory.0));
        all.push(served);
        println!(
            "{:>7.1} {:>9} {:>8.2} % {:>5.0} % {:>5} {:>5.1} MiB",
            served.seconds,
            served.answers,
            served.cost * 100.0,
            served.epochs * 100.0,
            served.late,
            served.memory.1 as f64 / f64::from(1 << 20)
        );
    }
    serving.end(libc::SIGTERM)?.expect(0)?;
    let kept = all.iter().filter(|served| served.is_kept()).count();
    ensure!(kept == all.len(), "budget or epochs were not kept in {} of {PARTS} parts", all.len() - kept);
    println!("the budget was kept, and no epoch was lost");
    let last = all.last().context("nothing was measured")?.memory.1;
    let Some(first) = full.first() else {
        let minutes = WINDOW.as_secs() / 60;
        println!("memory was not judged: the page for people gets rows for the first {minutes} minutes");
        return Ok(());
    };
    ensure!(last <= first + GROWTH, "memory grew from {first} to {last} bytes");
    println!("memory was flat");
    Ok(())
}
