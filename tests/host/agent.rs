//! `precise serve` as an agent on a node: captures beside the metrics, a full disk, a dead bucket,
//! and a hundred clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::Capture;
use precise_tests::{
    cgroup::Cgroup,
    clients::{self, Served},
    clock::Clock,
    load::{Load, spin},
    program,
    run::{undisturbed, until_undisturbed},
    say,
    serving::{FAULTS, Page, Serving},
    small_disk::SmallDisk,
};

const PAGES: u64 = 1009;
/// The option of captures that are soon complete.
const SHORT: &[&str] = &["--capture-length", "300ms"];

/// Returns the complete captures of a folder, the oldest first.
fn captures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "parquet"));
    found.sort_by_key(|path| (std::fs::metadata(path).and_then(|there| there.modified()).ok(), path.clone()));
    Ok(found)
}

/// Returns the value of a counter with a label.
fn count(page: &Page, metric: &str, label: &str) -> f64 {
    page.all(metric).get(label).copied().unwrap_or(0.0)
}

#[test]
fn what_is_served_is_also_in_captures_and_in_the_archive() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "faults")?;
        let path = |name: &str| folder.path().join(name);
        let [kept, archive] = ["captures", "archive"].map(|name| path(name).display().to_string());
        let more = ["--captures", &kept, "--archive", &archive, "--label", "test"];
        let serving = Serving::start(&[FAULTS, SHORT, &more].concat())?;
        for _ in 0..3 {
            Cgroup::new("serve-captures")?.run(&faults, [PAGES.to_string()])?;
            serving.later()?;
        }
        let complete = |page: &Page| page.value("precise_captures_total") >= Some(2.0);
        let page = serving.page_where("two captures are complete", complete)?;
        serving.end(libc::SIGTERM)?.expect(0)?;

        let (found, mut samples) = (captures(Path::new(&kept))?, 0);
        for file in &found {
            let capture = Capture::read(file)?;
            let ledger = &capture.meta.events[0].ledger;
            ensure!(ledger.unaccounted() == 0, "{}: {ledger:?}", file.display());
            ensure!(
                capture.meta.epochs.first().is_some_and(|epoch| epoch.start_ns == 0),
                "{:?}",
                capture.meta
            );
            samples += capture.rows.iter().map(|row| row.measures.count).sum::<u64>();
        }
        if samples != 3 * PAGES {
            page.undisturbed("page-faults")?;
        }
        ensure!(samples == 3 * PAGES, "{samples} in {found:?}");

        // Under a label for this host and day, with the file that lists each.
        let labels: Vec<_> = std::fs::read_dir(&archive)?.flatten().collect();
        ensure!(!labels.is_empty(), "nothing was archived");
        let mut archived = Vec::new();
        for label in &labels {
            let name = label.file_name().to_string_lossy().into_owned();
            ensure!(name.starts_with("test-") && name.contains("-20"), "{name}");
            archived.extend(captures(&label.path())?);
        }
        // Captures of one second have one name in an archive, of which the first is kept.
        ensure!(!archived.is_empty() && archived.len() <= found.len(), "{archived:?}");
        archived.iter().try_for_each(|file| Capture::read(file).map(drop))?;
        Ok(())
    })
}

#[test]
fn a_full_disk_ends_old_captures_and_not_the_run() -> Result<()> {
    let disk = SmallDisk::new("192k")?;
    let folder = disk.path().display().to_string();
    let serving = Serving::start(&[
        "-e",
        "cpu-clock",
        "--epoch",
        "100ms",
        "--capture-length",
        "200ms",
        "--captures",
        &folder,
    ])?;
    let full = |page: &Page| count(page, "precise_removed_captures_total", "reason=\"disk_full\"") >= 2.0;
    let page = serving.page_where("two captures were removed for a full disk", full)?;
    let written = page.value("precise_captures_total").context("captures")?;
    ensure!(count(&page, "precise_failed_captures_total", "reason=\"disk_full\"") >= 1.0, "{}", page.0);
    ensure!(count(&page, "precise_uncaptured_samples_total", "reason=\"disk_full\"") > 0.0, "{}", page.0);
    // Captures go on, beside samples.
    let more = |page: &Page| page.value("precise_captures_total") >= Some(written + 1.0);
    serving.page_where("a capture after the disk was full", more)?;
    serving.end(libc::SIGTERM)?.expect(0)?;
    let found = captures(disk.path())?;
    let newest = found.last().context("no capture survived")?;
    ensure!(!Capture::read(newest)?.rows.is_empty(), "{}", newest.display());
    Ok(())
}

#[test]
fn a_dead_bucket_delays_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let kept = folder.path().display().to_string();
    // A port at which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let serving = Serving::start_with(
        &[
            "-e",
            "cpu-clock",
            "--epoch",
            "100ms",
            "--capture-length",
            "500ms",
            "--captures",
            &kept,
            "--archive",
            "s3://profiles/node",
        ],
        &[
            ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}")),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ],
    )?;
    let retried = |page: &Page| page.value("precise_upload_retries_total") >= Some(1.0);
    let page = serving.page_where("an upload was retried", retried)?;
    ensure!(count(&page, "precise_uploads_total", "result=\"done\"") == 0.0, "{}", page.0);
    ensure!(page.value("precise_waiting_uploads") >= Some(1.0), "{}", page.0);
    let late = count(&page, "precise_ledger_samples_total", "event=\"cpu-clock\",fate=\"late\"");
    ensure!(late == 0.0, "{}", page.0);
    let ending = Clock::start();
    let ended = serving.end(libc::SIGTERM)?.expect(0)?;
    ensure!(ending.elapsed() < Duration::from_secs(10), "{:?}", ending.elapsed());
    let said = ended.stderr.matches("does not take captures").count();
    ensure!(said == 1, "{}", ended.stderr);
    let found = captures(folder.path())?;
    ensure!(found.len() >= 2 && Capture::read(found.last().context("none")?).is_ok(), "{found:?}");

    // The next run copies them to an archive that works.
    let archive = tempfile::tempdir()?;
    let to = archive.path().display().to_string();
    let serving = Serving::start(&["-e", "cpu-clock", "--captures", &kept, "--archive", &to])?;
    let done = |page: &Page| count(page, "precise_uploads_total", "result=\"done\"") >= found.len() as f64;
    serving.page_where("the captures of the first run were uploaded", done)?;
    serving.end(libc::SIGTERM)?.expect(0)?;
    let marks = std::fs::read_dir(folder.path())?
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "upload"));
    ensure!(marks.count() == 0, "a capture is marked that was uploaded");
    Ok(())
}

const CLIENTS: usize = 100;

#[test]
fn a_hundred_clients_change_neither_budget_nor_memory() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let serving = Serving::start(&clients::options(&folder.path().display().to_string()))?;
    let cpus: Vec<u32> = (0..std::thread::available_parallelism()?.get() as u32).collect();
    let _load = Load::on(&cpus, spin);
    // The governor has found the period, and both pages were made.
    clients::ask(&serving, CLIENTS, Duration::from_secs(2));
    until_undisturbed(|| {
        let served = Served::measure(&serving, CLIENTS, Duration::from_secs(4), cpus.len())?;
        say(&served.to_string());
        ensure!(served.answers > 200, "{served}");
        // The rows of the last minutes may still grow.
        let kept = served.is_kept() && served.memory.1 < served.memory.0 + (8 << 20);
        Ok((!kept).then(|| served.to_string()))
    })?;
    serving.end(libc::SIGTERM)?.expect(0)?;
    Ok(())
}
