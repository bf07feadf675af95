//! Measures `precise fleet compact` on a generated fleet: rows per second of CPU time, bytes per
//! row, and memory.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::testing::MadeFleet;
use precise::fleet::{FleetBucket, FleetDay, FleetManifest, FleetTable, ManifestPart};
use precise_tests::made_fleet::{over, write};
use precise_tests::usage::Usage;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-fleet PRECISE NODES HOURS ROWS";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let mut number = || -> Result<u32> { Ok(arguments.next().context(usage)?.parse()?) };
    let (nodes, hours, rows) = (number()?, number()?, number()?);
    let folder = tempfile::tempdir()?;
    // Whole days that are over, so that one of them is compacted as well.
    let first = FleetDay(over().day().0 - 2).first();
    let made = MadeFleet { seed: 1, nodes, services: 100, functions: 60, rows, first, deploy: 12 };
    write(&made, hours, folder.path())?;
    let read = f64::from(nodes) * f64::from(hours) * f64::from(rows);

    let mut compact = Command::new(&precise);
    compact.args(["fleet", "compact", "--since", &first.to_string()]).arg(folder.path());
    let used = Usage::of(&mut compact)?;
    let place = ArchivePlace::parse(folder.path())?;
    let bucket = fleet_bucket(&place)?;
    let parts = parts(&bucket, first.day())?;
    let sum = |of: &dyn Fn(&ManifestPart) -> bool| {
        parts.iter().filter(|part| of(part)).fold((0, 0), |sum, part| (sum.0 + part.rows, sum.1 + part.bytes))
    };
    let hour = sum(&|part| part.table == FleetTable::Hour);
    println!(
        "{nodes} nodes, {hours} hours: {read} rows of captures in {:.2} s of CPU time ({:.2} s): {:.2} M rows/s, at most {} MB",
        used.cpu_seconds,
        used.seconds,
        read / used.cpu_seconds / 1e6,
        used.peak_bytes >> 20
    );
    for (name, (rows, bytes)) in [
        ("hour", hour),
        ("latency", sum(&|part| part.table == FleetTable::Latency)),
        ("ledger", sum(&|part| part.table == FleetTable::Ledger)),
        ("symbols", sum(&|part| part.table == FleetTable::Symbols)),
        ("inputs", sum(&|part| part.table == FleetTable::Inputs)),
        ("day", sum(&|part| part.table == FleetTable::Day && part.tier == Some(0))),
        ("day, 1/125", sum(&|part| part.table == FleetTable::Day && part.tier == Some(3))),
        ("day-latency", sum(&|part| part.table == FleetTable::DayLatency)),
    ] {
        println!(
            "{name:<12}{rows:>12} rows{bytes:>12} bytes{:>8.1} a row",
            bytes as f64 / rows.max(1) as f64
        );
    }
    ensure!(hour.0 > 0, "nothing was compacted");
    Ok(())
}

/// Returns the parts of the newest manifests of a day and the next one.
fn parts(bucket: &Arc<dyn FleetBucket>, first: FleetDay) -> Result<Vec<ManifestPart>> {
    let mut parts = Vec::new();
    for day in [first, FleetDay(first.0 + 1)] {
        let (hours, own) = FleetManifest::of_day(bucket, day)?;
        parts.extend(hours.into_iter().map(|(_, manifest)| manifest).chain(own).flat_map(|of| of.parts));
    }
    Ok(parts)
}
