//! Clients of `precise serve` by the hundred, and what it does meanwhile.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::resident;
use crate::serving::{Page, Serving};

/// The event that is sampled, which every machine has.
const EVENT: &str = "cpu-clock";
/// Epochs per second.
const EPOCHS: f64 = 5.0;

/// The options of a `serve` whose clients are measured: it samples all CPUs at 1 % of each, and
/// keeps captures of two seconds in this folder.
pub fn options(captures: &str) -> [&str; 10] {
    ["-e", EVENT, "--epoch", "200ms", "--overhead", "1%", "--captures", captures, "--capture-length", "2s"]
}

/// Lets clients ask for both pages until the time is over. Returns the number of answers.
pub fn ask(serving: &Serving, clients: usize, time: Duration) -> u64 {
    let (answers, begin) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (answers, begin) = (&answers, &begin);
            scope.spawn(move || {
                let path = if client % 2 == 0 { "/" } else { "/metrics" };
                while begin.elapsed() < time {
                    // One peer has more connections than it may keep, so some make room for others.
                    let answer = serving.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
                    let ok = answer.is_ok_and(|(head, _)| head.starts_with("HTTP/1.1 200"));
                    answers.fetch_add(u64::from(ok), Relaxed);
                    // A person looks at a page for longer, and so does a scraper.
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    answers.into_inner()
}

/// What `serve` did in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// The time from the first page to the last, in seconds.
    pub seconds: f64,
    /// Answers with status 200.
    pub answers: u64,
    /// The time that sampling and reading took, as a share of the time of all CPUs.
    pub cost: f64,
    /// The epochs that ended, as a share of those that were due.
    pub epochs: f64,
    /// Samples that came after the end of their lease, which an epoch that ends in time renews.
    pub late: f64,
    /// The memory at the beginning and at the end, in bytes.
    pub memory: (u64, u64),
}

impl Served {
    /// Measures what `serve` does while clients ask for some time.
    ///
    /// # Errors
    ///
    /// Returns an error if its epochs do not go on.
    pub fn measure(serving: &Serving, clients: usize, time: Duration, cpus: usize) -> Result<Self> {
        let (before, memory) = (serving.later()?, resident::of(serving.pid())?);
        let answers = ask(serving, clients, time);
        let (after, then) = (serving.later()?, resident::of(serving.pid())?);
        let since = |of: &dyn Fn(&Page) -> f64| of(&after) - of(&before);
        let value = |metric: &'static str| since(&|page| page.value(metric).unwrap_or(0.0));
        let seconds = value("precise_last_epoch_timestamp_seconds");
        let sampling = since(&|page| page.all("precise_sampling_seconds_total").values().sum());
        let late = format!("event=\"{EVENT}\",fate=\"late\"");
        Ok(Self {
            seconds,
            answers,
            cost: (sampling + value("precise_reading_seconds_total")) / seconds / cpus as f64,
            epochs: value("precise_epochs_total") / (EPOCHS * seconds),
            late: since(&|page| page.all("precise_ledger_samples_total").get(&*late).copied().unwrap_or(0.0)),
            memory: (memory, then),
        })
    }

    /// Returns whether the budget was kept and no epoch was lost. On a machine that others use, an
    /// epoch may end late.
    pub fn is_kept(&self) -> bool {
        self.cost <= 0.011 && self.epochs > 0.9 && self.late == 0.0
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, answers, cost, epochs, late, memory } = self;
        write!(
            f,
            "{answers} answers in {seconds:.1} s: sampling and reading took {:.2} % of each CPU, {:.0} % of \
             the epochs, {late} late samples, memory from {} to {} KiB",
            cost * 100.0,
            epochs * 100.0,
            memory.0 >> 10,
            memory.1 >> 10
        )
    }
}
