//! A day of a large fleet with deploys, a noisy neighbour, lost nodes, clocks that are wrong, and
//! files that are truncated or stored twice. One compactor alone must end in the same bytes as two
//! that run together while one of them is killed repeatedly, and in the sums of the captures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::tables::{COUNT, FUNCTION, LATENCY_SUM, SERVICE, SYMBOLS, WEIGHT};
use precise::fleet::testing::{FleetTruth, MadeCapture, MadeFleet};
use precise::fleet::{FleetDay, FleetManifest, FleetPick, FleetTable, NamedReason, read_part};
use precise_tests::made_fleet::{over, put};
use precise_tests::usage::Usage;

/// Minutes by which a clock is ahead, and the nodes that have it: those whose number, divided by
/// the second value, leaves the third.
const CLOCKS: [(i64, u32, u32); 3] = [(3, 97, 13), (120, 211, 100), (-25 * 60, 331, 330)];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-fleet-race PRECISE NODES HOURS ROWS KILLS";
    let precise = PathBuf::from(arguments.next().context(usage)?);
    let mut number = || -> Result<u32> { Ok(arguments.next().context(usage)?.parse()?) };
    let (nodes, hours, rows, kills) = (number()?, number()?, number()?, number()?);
    let folder = tempfile::tempdir()?;
    let [alone, raced] = ["alone", "raced"].map(|name| folder.path().join(name));
    let first = FleetDay(over().day().0 - 2).first();
    let made =
        MadeFleet { seed: 1, nodes, services: 100, functions: 60, captures: 1, rows, first, deploy: 6 };
    let (truth, expected) = write(&made, hours, &alone)?;
    // The captures are the same files.
    let copied = Command::new("cp").args(["-al", "--"]).arg(&alone).arg(&raced).status()?;
    ensure!(copied.success(), "cannot copy {}", alone.display());

    let begin = Instant::now();
    let used = Usage::of(&mut compact(&precise, &alone))?;
    let whole = begin.elapsed();
    let samples: u64 = truth.values().map(|sums| sums[0]).sum();
    println!(
        "{nodes} nodes, {hours} hours, {rows} rows a capture: {samples} samples; alone in {:.1} s of CPU time, at most {} MB",
        used.cpu_seconds,
        used.peak_bytes >> 20
    );
    ensure!(sums(&alone, first.day())? == truth, "the tables have other sums than the captures");
    let named = named(&alone, first.day())?;
    println!("sums of the tables are those of the captures; named: {named:?}");
    ensure!(named == expected, "named: {expected:?} are wrong");

    // Each of the two lives for two pauses, in which it gets some hours further; what it has
    // finished stays.
    let pause = |killed: u32| {
        let part = whole.max(Duration::from_secs(1)).as_millis() as u64 / u64::from(3 * kills.max(1));
        Duration::from_millis(part * u64::from(1 + killed.wrapping_mul(7919) % 13) / 7)
    };
    let (mut killed, mut rounds) = (0, 1);
    let mut racing = [compact(&precise, &raced).spawn()?, compact(&precise, &raced).spawn()?];
    while killed < kills {
        std::thread::sleep(pause(killed));
        let at = killed as usize % 2;
        let one = &mut racing[at];
        if one.try_wait()?.is_none() {
            one.kill()?;
            killed += 1;
        }
        one.wait()?;
        if done(&raced, first.day())? {
            for child in &mut racing {
                child.wait()?;
            }
            same(&alone, &raced, first.day())?;
            std::fs::remove_dir_all(raced.join("v1"))?;
            rounds += 1;
            racing = [compact(&precise, &raced).spawn()?, compact(&precise, &raced).spawn()?];
        } else {
            racing[at] = compact(&precise, &raced).spawn()?;
        }
    }
    for child in &mut racing {
        child.wait()?;
    }
    let mut last = [compact(&precise, &raced).spawn()?, compact(&precise, &raced).spawn()?];
    for child in &mut last {
        ensure!(child.wait()?.success(), "the last compactors failed");
    }
    let (files, strays) = same(&alone, &raced, first.day())?;
    println!(
        "one of two compactors killed at {killed} points, in {rounds} rounds: {files} files of tables and manifests are the same, {strays} are left over"
    );
    Ok(())
}

/// Checks that the tables of two places are the same. Returns the number of their files, and of
/// files that no manifest lists.
fn same(alone: &Path, raced: &Path, first: FleetDay) -> Result<(usize, usize)> {
    let (a, b) = (files(&alone.join("v1"))?, files(&raced.join("v1"))?);
    let listed = listed(raced, first)?;
    let strays = b.keys().filter(|name| !a.contains_key(*name)).count();
    let differ = a.iter().filter(|(name, bytes)| b.get(*name) != Some(bytes)).count();
    ensure!(differ == 0, "{differ} files differ");
    ensure!(b.keys().all(|name| a.contains_key(name) || !listed.contains(name)), "a left-over is listed");
    Ok((a.len(), strays))
}

fn compact(precise: &Path, place: &Path) -> Command {
    let mut compact = Command::new(precise);
    compact.args(["fleet", "compact", "--since", "9d"]).arg(place);
    compact.stdout(Stdio::null()).stderr(Stdio::null());
    compact
}

/// Writes the captures. Returns what is in them, and how often each reason must be named.
fn write(made: &MadeFleet, hours: u32, place: &Path) -> Result<(FleetTruth, BTreeMap<NamedReason, u64>)> {
    let (mut truth, mut named) = (FleetTruth::new(), BTreeMap::new());
    let mut name = |reason| *named.entry(reason).or_default() += 1;
    for node in 0..made.nodes {
        let clock = CLOCKS.into_iter().find(|(_, of, rest)| node % of == *rest);
        let ahead = clock.map_or(0, |(minutes, ..)| minutes);
        for hour in 0..hours {
            // Some nodes are lost for some hours.
            if node % 40 == 3 && hour % 6 == 2 {
                continue;
            }
            // A clock that is far ahead makes captures that are refused.
            let mut refused = FleetTruth::new();
            let of = if ahead > 30 { &mut refused } else { &mut truth };
            let capture = made.skewed(node, hour, ahead, of)?;
            match ahead {
                ..=-1440 => name(NamedReason::Late),
                31.. => name(NamedReason::Future),
                _ => {}
            }
            put(&capture, place)?;
            let beside = |text: &str| capture.name.replace("-precise.parquet", text);
            if (node + hour) % 173 == 5 && clock.is_none() {
                name(NamedReason::Cut);
                let bytes = capture.bytes.get(..capture.bytes.len() / 2).unwrap_or_default().to_vec();
                put(&MadeCapture { name: beside("-other.parquet"), bytes, ..capture.clone() }, place)?;
            }
            if (node + hour) % 191 == 7 && clock.is_none() {
                name(NamedReason::Duplicate);
                put(&MadeCapture { name: beside("-twice.parquet"), ..capture }, place)?;
            }
        }
    }
    Ok((truth, named))
}

/// The days that tables may have.
fn days(first: FleetDay) -> impl Iterator<Item = FleetDay> {
    (first.0 - 2..first.0 + 3).map(FleetDay)
}

/// Returns the sums of the tables of hours.
fn sums(place: &Path, first: FleetDay) -> Result<FleetTruth> {
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    let mut found = FleetTruth::new();
    for day in days(first) {
        for (hour, manifest) in FleetManifest::of_day(&bucket, day)?.0 {
            let mut names: BTreeMap<u64, String> = BTreeMap::new();
            for part in manifest.of_table(FleetTable::Symbols) {
                read_part(&bucket, part, &FleetPick::default(), &SYMBOLS, |batch| {
                    for row in batch.rows() {
                        let name = batch.text(1, row).unwrap_or_default().to_owned();
                        names.insert(batch.number(0, row).unwrap_or(0), name);
                    }
                })?;
            }
            let columns = [SERVICE, FUNCTION, COUNT, WEIGHT, LATENCY_SUM];
            for part in manifest.of_table(FleetTable::Hour) {
                read_part(&bucket, part, &FleetPick::default(), &columns, |batch| {
                    for row in batch.rows() {
                        let service = batch.text(0, row).unwrap_or_default().to_owned();
                        let function = batch.number(1, row).unwrap_or(0);
                        let name = names.get(&function).cloned().unwrap_or_default();
                        let total = found.entry((hour, service, name)).or_default();
                        for (at, total) in total.iter_mut().enumerate() {
                            *total += batch.number(2 + at, row).unwrap_or(0);
                        }
                    }
                })?;
            }
        }
    }
    Ok(found)
}

/// Returns how many captures are named for each reason.
fn named(place: &Path, first: FleetDay) -> Result<BTreeMap<NamedReason, u64>> {
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    let mut names: BTreeMap<NamedReason, std::collections::BTreeSet<String>> = BTreeMap::new();
    for day in days(first) {
        for (_, manifest) in FleetManifest::of_day(&bucket, day)?.0 {
            for part in manifest.of_table(FleetTable::Inputs) {
                read_part(&bucket, part, &FleetPick::default(), &precise::fleet::tables::INPUTS, |batch| {
                    for row in batch.rows() {
                        let reason = batch.text(4, row).and_then(NamedReason::parse);
                        if let Some((reason, name)) = reason.zip(batch.text(0, row)) {
                            names.entry(reason).or_default().insert(name.to_owned());
                        }
                    }
                })?;
            }
        }
    }
    Ok(names.into_iter().map(|(reason, names)| (reason, names.len() as u64)).collect())
}

/// Returns the names of the parts that manifests list.
fn listed(place: &Path, first: FleetDay) -> Result<std::collections::BTreeSet<String>> {
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    let mut listed = std::collections::BTreeSet::new();
    for day in days(first) {
        let (hours, whole) = FleetManifest::of_day(&bucket, day)?;
        let all = hours.into_iter().map(|(_, of)| of).chain(whole).flat_map(|of| of.parts);
        listed.extend(all.filter_map(|part| Some(part.name.strip_prefix("v1/")?.to_owned())));
    }
    Ok(listed)
}

/// Returns whether the last day has its tables.
fn done(place: &Path, first: FleetDay) -> Result<bool> {
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    Ok(FleetManifest::of_day(&bucket, FleetDay(first.0 + 1))?.1.is_some())
}

/// Returns the names of all files below a folder, and their contents.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder)?.display().to_string(), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}
