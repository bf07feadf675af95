//! Thousands of epochs, while processes and cgroups come and go: no resource grows, and the ledger
//! accounts for every lost sample.
//!
//! `PRECISE_SOAK_SECONDS` makes it longer: `cargo xtask bench soak`.

use precise::capture::CaptureFile as _;
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use precise::capture::ReadLimits;
use precise::filter::FilterFlags;
use precise::model::{Capture, Dimension};
use precise::run::live;
use precise::run::plan::Plan;
use precise::serve;
use precise::serve::SeriesLabel;
use precise_common::ledger::Counter;
use precise_tests::{
    alone::alone,
    clock::Clock,
    run::until_undisturbed,
    say,
    serving::Page,
    soak::{Churn, Looks, seconds},
};

/// The shortest epoch that the kernel's grace period allows.
const EPOCH: Duration = Duration::from_millis(5);
/// The interval between two measurements.
const LOOK: Duration = Duration::from_millis(500);

fn plan(dimensions: Vec<Dimension>, seconds: u64) -> Result<Plan> {
    // Other programs on this machine have their own debug information, which is kept as long as
    // their files are.
    let filter = FilterFlags { comms: vec!["true".to_owned(), "sh".to_owned()], ..FilterFlags::default() };
    let plan = Plan::builder()
        .event("page-faults")
        .period(13)
        .filter(filter)
        .dimensions(dimensions)
        .duration(Duration::from_secs(seconds))
        .build()?;
    // Shorter than the builder allows.
    Ok(Plan { epoch: EPOCH, ..plan })
}

#[test]
fn nothing_grows_and_nothing_is_lost() -> Result<()> {
    alone("soak::nothing_grows_and_nothing_is_lost", || until_undisturbed(captured))
}

/// Records for a while, and returns a sentence if events were missed.
fn captured() -> Result<Option<String>> {
    let seconds = seconds(40)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("soak.parquet");
    let plan = plan(vec![Dimension::Ip, Dimension::Cgroup, Dimension::Process], seconds)?;
    let churn = Churn::default();
    let mut looks = Looks::begin()?;
    let clock = Clock::start();
    let finished = std::thread::scope(|scope| -> Result<live::FinishedRun> {
        let churning = scope.spawn(|| churn.go_on());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut last = Duration::ZERO;
        let finished = runtime.block_on(live::run(&plan, Some(&file), |progress| {
            if let live::RunProgress::Epoch { elapsed, .. } = progress
                && elapsed - last >= LOOK
            {
                last = elapsed;
                looks.look();
            }
        }));
        churn.stop();
        churning.join().map_err(|_| anyhow::anyhow!("the churn died"))??;
        Ok(finished?)
    })?;

    let quiet = clock.elapsed().as_secs();
    let (epochs, event) = (finished.meta.epochs.len(), &finished.meta.events[0]);
    let capture = Capture::read_limited(&file, &ReadLimits { rows: 32 << 20, ..ReadLimits::default() })?;
    let kept: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    let (many, seen) = (churn.were_many(quiet)?, looks.nothing_grew()?);
    say(&format!(
        "{epochs} epochs in {seconds} s, {many}, {kept} samples in {} rows; {seen}",
        capture.rows.len()
    ));
    ensure!(epochs as u64 >= 10 * quiet, "{epochs} epochs");
    let ledger = &event.ledger;
    let discarded: u64 = ledger.discarded.values().sum();
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    ensure!(
        kept + discarded == ledger.counter(Counter::Aggregated),
        "{kept} kept, {discarded} discarded: {ledger:?}"
    );
    let counted = ledger.coverage().context("nothing was counted")?;
    ensure!(counted <= 1.0, "the samples stand for {counted} of what was counted");
    Ok((counted < 0.98).then(|| format!("the samples stand for {counted} of what was counted")))
}

fn scrape(address: SocketAddr) -> Result<Page> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\naccept: application/openmetrics-text\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(Page(answer))
}

#[test]
fn nothing_grows_that_is_served() -> Result<()> {
    alone("soak::nothing_grows_that_is_served", || until_undisturbed(served))
}

/// Serves for a while, and returns a sentence if the last page came before its samples had names.
fn served() -> Result<Option<String>> {
    let seconds = seconds(30)?;
    const SERIES: usize = 300;
    let plan = plan(vec![Dimension::Cgroup, Dimension::Process], seconds)?;
    let labels = SeriesLabel::parse_list("cgroup,process")?;
    let folder = tempfile::tempdir()?;
    let churn = Churn::default();
    let mut looks = Looks::begin()?;
    let clock = Clock::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listening =
        serve::listen(([127, 0, 0, 1], 0).into(), serve::Hosts::default(), serve::AccessPolicy::default())?;
    let address = listening.address;
    let page = std::thread::scope(|scope| -> Result<Page> {
        let churning = scope.spawn(|| churn.go_on());
        let (ended, end) = channel::<()>();
        let scraping = scope.spawn(|| {
            let end = end;
            let mut page = None;
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                looks.look();
                // The last requests may come after the server has stopped.
                page = scrape(address).ok().filter(|page| page.0.ends_with("# EOF\n")).or(page);
            }
            page
        });
        let painter = serve::Painter::new(|_| Ok(String::new()));
        // The rows of the page are bounded, but not yet all there after so short a run.
        let window = Duration::from_secs(2);
        let captures = Some(serve::CapturesOptions {
            folder: folder.path().to_owned(),
            length: Duration::from_secs(2),
            retention: serve::Retention { bytes: 4 << 20, age: Duration::from_secs(3600) },
            upload: None,
        });
        let service =
            serve::live::Service { labels, series: SERIES, listening, painter, window, captures, push: None };
        let served = runtime.block_on(serve::live::run(&plan, service, |_| {}));
        drop(ended);
        churn.stop();
        churning.join().map_err(|_| anyhow::anyhow!("the churn died"))??;
        let page = scraping.join().map_err(|_| anyhow::anyhow!("the scraper died"))?;
        served?;
        page.context("not one page was served")
    })?;

    drop(runtime);
    let quiet = clock.elapsed().as_secs();
    let (many, seen) = (churn.were_many(quiet)?, looks.nothing_grew()?);
    let sum = |metric: &str, labels: &str| -> f64 {
        page.all(metric).iter().filter(|(found, _)| found.contains(labels)).map(|(_, value)| value).sum()
    };
    let epochs = page.value("precise_epochs_total").context("epochs")?;
    let (kept, others) = (sum("precise_samples_total", ""), sum("precise_overflow_samples_total", ""));
    say(&format!(
        "{epochs} epochs in {seconds} s, {many}, {kept} samples served, {others} of others; {seen}"
    ));
    ensure!(epochs >= (10 * quiet) as f64, "{epochs} epochs");
    ensure!(page.value("precise_series") <= Some(SERIES as f64), "{:?}", page.value("precise_series"));
    ensure!(page.all("precise_samples_total").len() <= SERIES + 1);
    ensure!(sum("precise_unaccounted_samples", "") == 0.0, "{}", page.0);
    let captures = page.value("precise_captures_total").unwrap_or(0.0);
    ensure!(captures >= (quiet / 4) as f64, "{captures} captures");
    ensure!(page.value("precise_kept_captures_bytes") < Some((5 << 20) as f64), "{}", page.0);
    // The counts of idle series are removed with them, and the last drained samples have no names
    // yet.
    let (aggregated, discarded) =
        (sum("precise_ledger_samples_total", "aggregated"), sum("precise_discarded_samples_total", ""));
    ensure!(kept > 0.0 && kept + discarded <= aggregated, "{kept} and {discarded} of {aggregated}");
    if seconds < serve::IDLE.as_secs() {
        ensure!(others > 0.0, "more cgroups than series came, and none was among the others");
        let unnamed = kept + discarded < 0.95 * aggregated;
        return Ok(unnamed.then(|| format!("{kept} and {discarded} of {aggregated}")));
    }
    Ok(None)
}
