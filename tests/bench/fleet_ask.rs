//! Measures questions to the tables of a day of a large fleet: `precise fleet report` of a service,
//! of everything, and of its tiers.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::FleetDay;
use precise::fleet::made_day::MadeDay;
use precise_tests::usage::Usage;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-fleet-ask PRECISE NODES ROWS-PER-NODE-AND-SERVICE";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let mut number = || -> Result<u32> { Ok(arguments.next().context(usage)?.parse()?) };
    let (nodes, rows) = (number()?, number()?);
    let folder = tempfile::tempdir()?;
    let day = FleetDay::parse("2026-11-24").context("a day")?;
    let made = MadeDay { seed: 1, day, nodes, services: 200, functions: 100, rows };
    let rows = made.write(&fleet_bucket(&ArchivePlace::parse(folder.path())?)?)?;
    println!("{nodes} nodes, 200 services: {rows} rows; scaled to 48,000,000 rows on one core:");
    let service = ["--service", "shop/service-0077"];
    let questions: [(&str, &str, &[&str]); 8] = [
        ("functions of a service", "report", &service),
        ("nodes of a service", "report", &[service[0], service[1], "--by", "node"]),
        ("levels of a service's latency", "latency", &service),
        ("services", "report", &[]),
        ("levels", "report", &["--by", "level"]),
        ("functions", "report", &["--by", "function"]),
        ("services, 1 sample in 125", "report", &["--within", "100%"]),
        ("levels of all latencies", "latency", &[]),
    ];
    for (name, kind, more) in questions {
        let mut best: Option<Usage> = None;
        for _ in 0..3 {
            let mut ask = Command::new(&precise);
            ask.args(["fleet", kind, "--time", "2026-11-24", "--json"]).args(more).arg(folder.path());
            let used = Usage::of(ask.stdout(Stdio::null()))?;
            if best.as_ref().is_none_or(|best| used.cpu_seconds < best.cpu_seconds) {
                best = Some(used);
            }
        }
        let Some(used) = best else { continue };
        let scaled = used.cpu_seconds * 48e6 / rows as f64;
        println!(
            "{name:<30}{:>9.0} ms{:>10.0} ms scaled{:>7} MB",
            used.cpu_seconds * 1e3,
            scaled * 1e3,
            used.peak_bytes >> 20
        );
    }
    Ok(())
}
