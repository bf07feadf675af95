//! A `precise serve` that runs while a test does something.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::kill_on_drop::KillOnDrop;
use crate::run::{Disturbed, Ended, command, started};

/// The time limit for an epoch or an answer, on a machine that is busy with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options that sample every fault of the pages of [`program::faults`](crate::program::faults), and
/// nothing else.
pub const FAULTS: &[&str] = &[
    "-e",
    "page-faults",
    "-c",
    "1",
    "--epoch",
    "100ms",
    "--filter",
    "addr in 0x500000000000..0x500100000000",
];

/// A running `precise serve`, which is killed when this is dropped.
#[derive(Debug)]
pub struct Serving {
    child: KillOnDrop,
    said: Option<JoinHandle<String>>,
    /// The address at which it answers.
    pub address: SocketAddr,
}

impl Serving {
    /// Starts it on a free port and waits until it samples.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start sampling.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        Self::start_with(arguments, &[])
    }

    /// Starts it like [`Serving::start`], with more variables of the environment.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start sampling.
    pub fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let mut command = command([&["serve", "--listen", "127.0.0.1:0"], arguments].concat())?;
        command.envs(variables.iter().copied());
        Self::run(command)
    }

    /// Starts a command that serves, and waits until it samples.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start sampling.
    pub fn run(mut command: Command) -> Result<Self> {
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take();
        let (said, begin) = started(&mut child, stderr)?;
        let address = begin
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once("/metrics"))
            .with_context(|| format!("it does not say where it serves: {begin}"))?
            .0
            .parse()?;
        Ok(Self { child: child.into(), said: Some(said), address })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fetches the page.
    ///
    /// # Errors
    ///
    /// Returns an error if the answer is not a page.
    pub fn scrape(&self) -> Result<Page> {
        let (head, page) =
            self.ask("GET /metrics HTTP/1.0\r\naccept: application/openmetrics-text\r\n\r\n")?;
        ensure!(head.starts_with("HTTP/1.0 200"), "{head}");
        ensure!(page.ends_with("# EOF\n"), "the page is cut: {page}");
        Ok(Page(page))
    }

    /// Connects to it.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing listens.
    pub fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Sends a request. Returns the head and the body of the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no answer.
    pub fn ask(&self, request: &str) -> Result<(String, String)> {
        let mut stream = self.connect()?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("no answer: {answer}"))?;
        Ok((head.to_owned(), body.to_owned()))
    }

    /// Fetches the page until it satisfies a condition.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not within a minute.
    pub fn page_where(&self, what: &str, condition: impl Fn(&Page) -> bool) -> Result<Page> {
        let begin = Instant::now();
        loop {
            let page = self.scrape()?;
            if condition(&page) {
                return Ok(page);
            }
            ensure!(begin.elapsed() < PATIENCE, "not once {what}:\n{}", page.0);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Fetches the page two epochs later, when the samples taken before have their names.
    ///
    /// # Errors
    ///
    /// Returns an error if the epochs do not continue.
    pub fn later(&self) -> Result<Page> {
        let epochs = |page: &Page| page.value("precise_epochs_total").unwrap_or(0.0);
        let now = epochs(&self.scrape()?);
        self.page_where("two epochs later", |page| epochs(page) >= now + 2.0)
    }

    /// Ends it with a signal.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be waited for.
    pub fn end(mut self, signal: i32) -> Result<Ended> {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be waited for.
    pub fn wait(&mut self) -> Result<Ended> {
        let code = self.child.wait()?.code();
        let said = self.said.take().map(JoinHandle::join);
        let stderr = said.and_then(Result::ok).unwrap_or_default();
        Ok(Ended { code, stdout: String::new(), stderr })
    }
}

/// A page that was scraped.
#[derive(Clone, Debug)]
pub struct Page(pub String);

impl Page {
    /// Returns the value of a series, written as on the page: `name{label="value"}`.
    pub fn value(&self, series: &str) -> Option<f64> {
        self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Returns the values of all series of a metric, by their labels as written on the page.
    pub fn all(&self, metric: &str) -> BTreeMap<&str, f64> {
        self.0
            .lines()
            .filter_map(|line| {
                let (labels, value) = line.strip_prefix(metric)?.strip_prefix('{')?.rsplit_once("} ")?;
                Some((labels, value.parse().ok()?))
            })
            .collect()
    }

    /// Checks that the program saw, in time, every event that was counted for the event with this
    /// name.
    ///
    /// # Errors
    ///
    /// Returns [`Disturbed`] if some were missed.
    pub fn undisturbed(&self, event: &str) -> Result<()> {
        let of = |metric: &str| self.value(&format!("{metric}{{event=\"{event}\"}}")).unwrap_or(0.0) as u64;
        let late = format!("event=\"{event}\",fate=\"late\"");
        let late = self.all("precise_ledger_samples_total").get(&*late).copied().unwrap_or(0.0) as u64;
        let seen = of("precise_seen_events_total").saturating_sub(late);
        let counted = of("precise_counted_events_total");
        if seen == counted { Ok(()) } else { Err(Disturbed { seen, counted }.into()) }
    }
}
