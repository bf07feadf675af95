//! Measures questions to the tables of a day of a large fleet: `precise fleet report` of a service,
//! of everything, and of its tiers.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::FleetDay;
use precise::fleet::made_day::MadeDay;
use precise_tests::usage::Usage;

const USAGE: &str = "usage: bench-fleet-ask PRECISE NODES ROWS-PER-NODE-AND-SERVICE";
/// The first argument of the process that makes the tables.
const MAKE: &str = "make";

/// Makes the tables. Returns the number of rows.
fn make(place: &str, nodes: u32, rows: u32) -> Result<u64> {
    let day = FleetDay::parse("2026-11-24").context("a day")?;
    let made = MadeDay { seed: 1, day, nodes, services: 200, functions: 100, rows };
    Ok(made.write(&fleet_bucket(&ArchivePlace::parse(Path::new(place))?)?)?)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [MAKE, place, nodes, rows] = texts[..] {
        println!("{}", make(place, nodes.parse()?, rows.parse()?)?);
        return Ok(());
    }
    let [precise, nodes, rows] = texts[..] else { bail!("{USAGE}") };
    let folder = tempfile::tempdir()?;
    // A process of its own: a program begins with the largest memory of the one that starts it.
    let place = folder.path().display().to_string();
    let made = Command::new(std::env::current_exe()?).args([MAKE, &place, nodes, rows]).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let rows = String::from_utf8(made.stdout)?;
    println!("{nodes} nodes, 200 services: {} rows", rows.trim());
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
            let mut ask = Command::new(precise);
            ask.args(["fleet", kind, "--time", "2026-11-24", "--json"]).args(more).arg(folder.path());
            let used = Usage::of(ask.stdout(Stdio::null()))?;
            if best.as_ref().is_none_or(|best| used.cpu_seconds < best.cpu_seconds) {
                best = Some(used);
            }
        }
        let Some(used) = best else { continue };
        println!("{name:<30}{:>9.0} ms{:>7} MB", used.cpu_seconds * 1e3, used.peak_bytes >> 20);
    }
    Ok(())
}
