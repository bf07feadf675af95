//! The tables of a fleet, with the binary: what DuckDB reads of them, compactors that race and are
//! killed, and an object store behind a network that fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise::fleet::FleetHour;
use precise::fleet::testing::{FleetTruth, MadeFleet};
use precise_tests::made_fleet::{over, write};
use precise_tests::program::python;
use precise_tests::run::{command, precise};
use precise_tests::s3_server::{S3Server, precise_at};
use serde_json::Value;

const HOURS: u32 = 3;

fn fleet(nodes: u32) -> MadeFleet {
    MadeFleet { nodes, first: FleetHour(over().0 - HOURS - 1), ..MadeFleet::small() }
}

/// Returns the names and contents of all files below a folder.
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

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").args(["-a", "--"]).arg(from).arg(to).status()?;
    ensure!(copied.success(), "cannot copy {}", from.display());
    Ok(())
}

#[test]
fn racing_and_killed_compactors_of_a_folder_end_in_the_same_bytes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    write(&fleet(30), HOURS, &path("a"))?;
    copy(&path("a"), &path("b"))?;
    let said = precise(["fleet", "compact", &text("a")])?.expect(0)?;
    ensure!(said.stdout.contains(": 4 hours and "), "{said:?}");
    let mut killed = 0;
    for round in 0..12_u64 {
        let mut both = Vec::new();
        for _ in 0..2 {
            let mut compact = command(["fleet", "compact", &text("b")])?;
            both.push(compact.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        }
        std::thread::sleep(Duration::from_millis(20 + 25 * round));
        if let Some(one) = both.first_mut() {
            killed += u64::from(one.try_wait()?.is_none());
            one.kill()?;
        }
        // Every other time, both are killed.
        for child in both.iter_mut().skip(usize::from(round % 2 == 0)) {
            child.kill()?;
        }
        for mut child in both {
            child.wait()?;
        }
    }
    precise(["fleet", "compact", &text("b")])?.expect(0)?;
    let (a, b) = (files(&path("a"))?, files(&path("b"))?);
    ensure!(a.len() == b.len() && a == b, "killed {killed}: {:?}, {:?}", a.keys(), b.keys());
    Ok(())
}

#[test]
fn an_object_store_behind_a_network_that_fails_has_the_same_tables() -> Result<()> {
    let (server, folder) = (S3Server::start()?, tempfile::tempdir()?);
    let truth = write(&fleet(4), HOURS, folder.path())?;
    let samples = truth.values().map(|sums| sums[0]).sum::<u64>();
    for (name, _) in files(folder.path())? {
        let file = folder.path().join(&name).display().to_string();
        server.precise(&["archive", "--label", "eu", "-i", &file, "s3://profiles/fleet"])?.expect(0)?;
    }
    let (endpoint, failed) = server.through_faults(4)?;
    let mut attempts = 0;
    let done = loop {
        attempts += 1;
        let ended = precise_at(&endpoint, &["fleet", "compact", "--json", "s3://profiles/fleet"])?;
        if ended.code == Some(0) {
            break ended;
        }
        // The store could not be reached: that is said, and nothing else is.
        ensure!(ended.code == Some(1) && ended.stderr.contains("s3://profiles/fleet"), "{ended:?}");
        ensure!(attempts < 30, "{ended:?}");
    };
    ensure!(failed.load(Relaxed) > 10, "only {failed:?} requests failed");
    let found: Value = serde_json::from_str(&done.stdout)?;
    let hours = found["hours"].as_array().context("hours")?;
    let sum: u64 = hours.iter().filter_map(|hour| hour["samples"].as_u64()).sum();
    ensure!(sum == samples && found["refused"] == 0, "{samples}: {found:#}");
    // Without faults there is nothing left to do.
    let again = server.precise(&["fleet", "compact", "--json", "s3://profiles/fleet"])?.expect(0)?;
    let again: Value = serde_json::from_str(&again.stdout)?;
    let read = |hour: &Value| hour["read"].as_u64();
    ensure!(
        again["hours"].as_array().context("hours")?.iter().all(|hour| read(hour) == Some(0)),
        "{again:#}"
    );
    Ok(())
}

/// Returns the result rows of a query in a folder, with values joined by `|`.
fn query(folder: &Path, sql: &str) -> Result<Vec<String>> {
    const PROGRAM: &str = "import duckdb, sys\n\
        c = duckdb.connect()\n\
        for part in sys.argv[1].split(';'):\n\
        \x20   if part.strip(): rows = c.execute(part).fetchall()\n\
        for row in rows: print('|'.join(str(value) for value in row))";
    let output = Command::new(python()?).args(["-c", PROGRAM, sql]).current_dir(folder).output()?;
    ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// The statements of docs/fleet.md, without comments.
fn documented() -> Result<Vec<String>> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fleet.md"))?;
    let blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let plain =
        |block: &str| block.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    let all = blocks.map(plain).collect::<Vec<_>>().join("\n");
    Ok(all.split(';').map(str::trim).filter(|sql| !sql.is_empty()).map(str::to_owned).collect())
}

#[test]
fn duckdb_finds_the_sums_of_the_captures() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let truth = write(&fleet(12), HOURS, &folder.path().join("profiles"))?;
    let place = folder.path().join("profiles").display().to_string();
    precise(["fleet", "compact", &place])?.expect(0)?;
    let statements = documented()?;
    ensure!(statements.len() >= 8, "{statements:?}");
    let (setup, questions): (Vec<_>, Vec<_>) =
        statements.iter().partition(|sql| sql.starts_with("SET") || sql.starts_with("CREATE"));
    let setup: String = setup.iter().map(|sql| format!("{sql};\n")).collect();
    for sql in &questions {
        let rows = query(folder.path(), &format!("{setup}{sql}"))?;
        ensure!(!rows.is_empty(), "{sql} finds nothing");
    }
    let rows = query(
        folder.path(),
        &format!(
            "{setup} SELECT epoch_us(time) // 3600000000, service, name, sum(count), sum(weight), sum(latency_sum)
             FROM hours JOIN names USING (function) GROUP BY ALL"
        ),
    )?;
    let mut theirs = FleetTruth::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let [hour, service, name, sums @ ..] = &cells[..] else { continue };
        let sums: Vec<u64> = sums.iter().map(|sum| sum.parse()).collect::<Result<_, _>>()?;
        let key = (FleetHour(hour.parse()?), (*service).to_owned(), (*name).to_owned());
        theirs.insert(key, sums.try_into().map_err(|sums| anyhow::anyhow!("{sums:?}"))?);
    }
    ensure!(theirs == truth, "{} and {} sums", theirs.len(), truth.len());
    Ok(())
}
