//! Measures `precise fleet compact` on a generated fleet: rows per second of CPU time, bytes per
//! row, memory, and the requests that an object store would get.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::testing::MadeFleet;
use precise::fleet::{
    CompactOptions, FleetBucket, FleetDay, FleetError, FleetHour, FleetKey, FleetManifest, FleetObject,
    FleetQuestion, FleetSpan, FleetTable, ManifestPart, NoFleetTypes, compact, fleet_report,
};
use precise_tests::made_fleet::{over, write};
use precise_tests::usage::Usage;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-fleet PRECISE NODES HOURS CAPTURES ROWS";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let mut number = || -> Result<u32> { Ok(arguments.next().context(usage)?.parse()?) };
    let (nodes, hours, captures, rows) = (number()?, number()?, number()?, number()?);
    let folder = tempfile::tempdir()?;
    // Whole days that are over, so that one of them is compacted as well.
    let first = FleetDay(over().day().0 - 2).first();
    let made = MadeFleet { seed: 1, nodes, services: 100, functions: 60, captures, rows, first, deploy: 12 };
    write(&made, hours, folder.path())?;
    let files = u64::from(nodes) * u64::from(hours) * u64::from(captures);
    let read = files as f64 * f64::from(rows);

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
        "{nodes} nodes, {hours} hours: {read} rows of {files} captures in {:.2} s of CPU time ({:.2} s): {:.2} M rows/s, at most {} MB",
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
    println!("captures    {:>12} bytes each", size(folder.path())? / files);
    requests()
}

/// Returns the bytes of all captures of a place.
fn size(place: &Path) -> Result<u64> {
    let mut bytes = 0;
    for label in fs::read_dir(place)?.flatten().filter(|label| label.file_name() != "v1") {
        for capture in fs::read_dir(label.path())? {
            bytes += capture?.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Prints the requests for a small fleet whose compactor runs each hour of two days, and those of
/// questions.
fn requests() -> Result<()> {
    const NODES: u32 = 20;
    let folder = tempfile::tempdir()?;
    let day = FleetDay::parse("2026-11-24").context("a day")?;
    let first = day.first();
    let made = MadeFleet {
        seed: 1,
        nodes: NODES,
        services: 20,
        functions: 60,
        captures: 1,
        rows: 200,
        first,
        deploy: 12,
    };
    write(&made, 48, folder.path())?;
    let requests = Arc::new(Requests {
        bucket: fleet_bucket(&ArchivePlace::parse(folder.path())?)?,
        now_ns: AtomicU64::new(0),
        lists: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        writes: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let bucket: Arc<dyn FleetBucket> = Arc::<Requests>::clone(&requests);
    let hourly = |hours: std::ops::Range<u32>| -> Result<()> {
        for hour in hours {
            let now_ns = FleetHour(first.0 + hour).end_ns() + 900_000_000_000;
            requests.now_ns.store(now_ns, Relaxed);
            let since_ns = now_ns - 24 * 3_600_000_000_000;
            compact(&bucket, &CompactOptions { hour: None, since_ns, now_ns, memory: 256 << 20 }, |_| {})?;
        }
        Ok(())
    };
    println!("requests:       lists     reads    writes        bytes read");
    hourly(0..25)?;
    requests.print("");
    hourly(25..49)?;
    requests.print(&format!("a day of {NODES} nodes, each with 24 captures of two hours, compacted hourly"));
    for (name, service, by) in [
        ("a day of a service", Some("shop/web7"), FleetKey::Function),
        ("a day of all services", None, FleetKey::Service),
    ] {
        let question = FleetQuestion {
            service: service.map(str::to_owned),
            ..FleetQuestion::about(FleetSpan::of_day(FleetDay(day.0 + 1)), vec![by])
        };
        fleet_report(&bucket, &question, &mut NoFleetTypes, Duration::default)?;
        requests.print(name);
    }
    Ok(())
}

/// A bucket far away that counts what it is asked for. It has no object that is not written yet.
struct Requests {
    bucket: Arc<dyn FleetBucket>,
    now_ns: AtomicU64,
    lists: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    bytes: AtomicU64,
}

impl Requests {
    /// Prints the requests since the last call.
    fn print(&self, name: &str) {
        let [lists, reads, writes, bytes] =
            [&self.lists, &self.reads, &self.writes, &self.bytes].map(|count| count.swap(0, Relaxed));
        if !name.is_empty() {
            println!("{lists:>21}{reads:>10}{writes:>10}{bytes:>18}  {name}");
        }
    }
}

impl FleetBucket for Requests {
    fn folders(&self, folder: &str) -> Result<Vec<String>, FleetError> {
        self.lists.fetch_add(1, Relaxed);
        self.bucket.folders(folder)
    }

    fn objects(&self, folder: &str) -> Result<Vec<FleetObject>, FleetError> {
        self.lists.fetch_add(1, Relaxed);
        let mut objects = self.bucket.objects(folder)?;
        let now = self.now_ns.load(Relaxed);
        // Tables were written just now.
        objects.retain(|object| object.name.starts_with("v1/") || object.modified_ns <= now);
        Ok(objects)
    }

    fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, FleetError> {
        self.reads.fetch_add(1, Relaxed);
        self.bytes.fetch_add(length as u64, Relaxed);
        self.bucket.range(name, start, length)
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<bool, FleetError> {
        self.writes.fetch_add(1, Relaxed);
        self.bucket.create(name, bytes)
    }

    fn is_near(&self) -> bool {
        false
    }
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
