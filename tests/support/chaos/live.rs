//! The two runs that faults happen to, and what they must satisfy.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use precise::capture::{CaptureFile as _, Limits};
use precise::model::{Capture, Name, Reason};
use precise_common::ledger::Counter;

use super::Totals;
use super::world::Control;
use crate::clock::Clock;
use crate::kill_on_drop::KillOnDrop;
use crate::run::command;
use crate::serving::Page;

/// The options of both runs: every fault of the workload's pages.
const SAMPLED: &[&str] = &[
    "-a",
    "-e",
    "page-faults",
    "-c",
    "1",
    "--epoch",
    "200ms",
    "--duration",
    "10h",
    "--filter",
    "addr in 0x680000000000..0x680100000000",
];
/// The time that a run may take to end, as on a quiet machine.
const END: Duration = Duration::from_secs(8);
/// The time that the start of a run, or an answer of `serve`, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The exit code for a full disk and the like.
const FAILED: i32 = 1;
/// The exit code for a run that ended before one of the campaign's programs ran.
const NO_SAMPLES: i32 = 69;

/// A run as a process: what it says is read by a thread.
#[derive(Debug)]
struct Process {
    child: KillOnDrop,
    said: Option<JoinHandle<String>>,
    /// The codes with which it may end, in the order in which they became possible.
    codes: Vec<i32>,
    /// The signal that may end it, because it was sent one that no process survives.
    killed: bool,
    /// When it was asked to end.
    asked: Option<Clock>,
}

impl Process {
    /// Starts it and waits until it samples. Also returns what it said by then.
    fn start(arguments: &[&str], control: &Control) -> Result<(Self, String)> {
        let mut command = command(arguments)?;
        control.over(&mut command);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let (begun, begin) = mpsc::channel();
        let stderr = child.stderr.take();
        let said = std::thread::spawn(move || {
            let mut text = String::new();
            for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).flatten() {
                text.push_str(&line);
                text.push('\n');
                if line.contains("memory: tables") {
                    // Nobody waits if it took too long.
                    let _late = begun.send(text.clone());
                }
            }
            text
        });
        let process =
            Self { child: child.into(), said: Some(said), codes: Vec::new(), killed: false, asked: None };
        let until_now = begin.recv_timeout(PATIENCE).context("it does not start to sample")?;
        Ok((process, until_now))
    }

    fn has_ended(&mut self) -> Result<bool> {
        Ok(self.asked.is_some() || self.child.try_wait()?.is_some())
    }

    fn ask(&mut self, signal: i32) {
        super::fault::signal(self.child.id(), signal);
        self.asked.get_or_insert_with(Clock::start);
    }

    /// Waits for its end. Returns its status and what it said.
    fn wait(&mut self, what: &str) -> Result<(ExitStatus, String)> {
        let asked = self.asked.unwrap_or_else(Clock::start);
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if asked.elapsed() > END {
                let stacks = stacks(self.child.id());
                self.child.kill()?;
                self.child.wait()?;
                bail!("{what} has not ended {END:?} after it was asked to: {stacks}");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        ensure!(!said.contains("panicked"), "{what} panicked: {said}");
        let fine = match (status.code(), status.signal()) {
            (Some(0 | NO_SAMPLES), _) => self.asked.is_some(),
            (Some(code), _) => self.codes.contains(&code),
            (None, Some(libc::SIGKILL)) => self.killed,
            (None, _) => false,
        };
        ensure!(fine, "{what}: {status}, and not one of {:?}: {said}", self.codes);
        if status.code() == Some(FAILED) {
            ensure!(says_why(&said), "{what} does not say why it ended: {said}");
        }
        Ok((status, said))
    }
}

/// Returns whether a run says more than what it says at its start.
fn says_why(said: &str) -> bool {
    let at_start = ["sampling ", "memory: "];
    let mut sentences = said.lines().filter_map(|line| line.strip_prefix("precise: "));
    sentences.any(|sentence| !at_start.iter().any(|start| sentence.starts_with(start)))
}

/// Returns where the threads of a process are in the kernel.
fn stacks(pid: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |path: PathBuf| {
        let [name, waits] =
            ["comm", "wchan"].map(|file| fs::read_to_string(path.join(file)).unwrap_or_default());
        format!("{} in {waits}", name.trim())
    };
    tasks.map(|task| of(task.path())).collect::<Vec<_>>().join(", ")
}

/// A `precise record`, with its capture on the small disk.
#[derive(Debug)]
pub struct Recording {
    process: Process,
    file: PathBuf,
    stop: PathBuf,
}

impl Recording {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start to sample.
    pub fn start(disk: &Path, control: &Control) -> Result<Self> {
        let (file, stop) = (disk.join("run.parquet"), disk.join("stop"));
        for old in [&file, &stop, &disk.join("run.parquet.partial")] {
            // Usually there is none.
            let _absent = fs::remove_file(old);
        }
        let own = ["record", "--by", "ip,process,cgroup", "--stop-file"];
        let paths = [stop.to_str(), Some("-o"), file.to_str()].map(|path| path.context("a path"));
        let [stop_file, option, output] = paths;
        let arguments = [&own[..], &[stop_file?, option?, output?], SAMPLED].concat();
        let (process, _) = Process::start(&arguments, control)?;
        Ok(Self { process, file, stop })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Lets it end with this code from now on.
    pub fn may_end_with(&mut self, code: i32) {
        self.process.codes.push(code);
    }

    /// Lets it fail from now on, as its disk or its memory does.
    pub fn may_fail(&mut self) {
        self.may_end_with(FAILED);
    }

    /// Sends it a signal that ends it.
    pub fn ask(&mut self, signal: i32) {
        self.process.killed |= signal == libc::SIGKILL;
        self.process.ask(signal);
    }

    /// Throws the kill switch.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be made.
    pub fn throw_switch(&mut self) -> Result<()> {
        fs::write(&self.stop, "")?;
        self.process.asked = Some(Clock::start());
        self.may_end_with(70);
        Ok(())
    }

    /// Returns whether it has ended, or was asked to.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be waited for.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.process.has_ended()
    }

    /// Waits for its end, and checks the code, the ledger and the names of its capture.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them is not as it must be.
    pub fn judge(mut self, totals: &mut Totals) -> Result<()> {
        let (status, said) = self.process.wait("record")?;
        let whole = status.code().is_some_and(|code| [0, NO_SAMPLES, 70].contains(&code));
        let partial = self.file.with_extension("parquet.partial");
        let file = if whole || self.file.exists() { &self.file } else { &partial };
        if !file.exists() {
            return Ok(());
        }
        let capture = Capture::read_limited(file, &Limits::default());
        let capture = capture.with_context(|| format!("{status}: {}: {said}", file.display()))?;
        let nothing = status.code() == Some(NO_SAMPLES);
        ensure!(!nothing || capture.rows.is_empty(), "code {NO_SAMPLES} for a capture with samples: {said}");
        check(&capture, whole, totals).with_context(|| format!("{status}: {said}"))
    }
}

/// Checks that every sample is accounted for, and that every name that is missing has its reason.
fn check(capture: &Capture, whole: bool, totals: &mut Totals) -> Result<()> {
    let ledger = &capture.meta.events[0].ledger;
    let kept: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    let discarded: u64 = ledger.discarded.values().sum();
    if whole {
        ensure!(ledger.unaccounted() == 0, "the ledger does not close: {ledger:?}");
        let aggregated = ledger.counter(Counter::Aggregated);
        ensure!(kept + discarded == aggregated, "{kept} kept and {discarded} discarded: {ledger:?}");
    }
    let failed = |row: &&precise::model::Row| {
        let code = row.code.and_then(|id| capture.code.get(id as usize));
        code.is_some_and(|code| code.function == Name::Unknown(Reason::Failed))
    };
    let failed: u64 = capture.rows.iter().filter(failed).map(|row| row.measures.count).sum();
    let notes = &capture.meta.notes;
    // What a file that cannot be read did is a note. A capture that was cut off has none yet.
    ensure!(failed == 0 || !whole || !notes.is_empty(), "{failed} samples without a name, and no note");
    totals.captures += 1;
    totals.samples += kept;
    totals.late += ledger.counter(Counter::Late);
    totals.discarded += discarded;
    totals.failed += failed;
    totals.notes += notes.len() as u64;
    Ok(())
}

/// A `precise serve`.
#[derive(Debug)]
pub struct Endpoint {
    process: Process,
    address: SocketAddr,
    epochs: f64,
}

impl Endpoint {
    /// Starts it on a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start to sample.
    pub fn start(control: &Control) -> Result<Self> {
        let own = ["serve", "--listen", "127.0.0.1:0", "--by", "cgroup,process"];
        let (process, said) = Process::start(&[&own[..], SAMPLED].concat(), control)?;
        let address = said.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
        let address =
            address.with_context(|| format!("it does not say where it serves: {said}"))?.0.parse()?;
        Ok(Self { process, address, epochs: 0.0 })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Connects to it.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not listen.
    pub fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Lets it fail from now on.
    pub fn may_fail(&mut self) {
        self.process.codes.push(FAILED);
    }

    /// Sends it a signal that ends it.
    pub fn ask(&mut self, signal: i32) {
        self.process.ask(signal);
    }

    /// Returns whether it has ended, or was asked to.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be waited for.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.process.has_ended()
    }

    fn page(&self) -> Result<Page> {
        let mut stream = self.connect()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\naccept: application/openmetrics-text\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("# EOF\n"), "no page: {answer:?}");
        Ok(Page(answer))
    }

    /// Checks that it answers, that its epochs go on, and that its ledger closes. The counters of
    /// a page are read while the program counts, so a page may differ by the samples of a moment;
    /// a sample that is in no counter stays missing on every page.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not.
    pub fn is_well(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let page = self.page().context("serve")?;
            let unaccounted = page.value("precise_unaccounted_samples{event=\"page-faults\"}");
            let epochs = page.value("precise_epochs_total").context("epochs")?;
            if epochs > self.epochs && unaccounted == Some(0.0) {
                self.epochs = epochs;
                return Ok(());
            }
            let what = "serve has no new epoch, or a ledger that does not close";
            ensure!(begin.elapsed() < PATIENCE, "{what}, after {PATIENCE:?}: {}", page.0);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end, and checks the code.
    ///
    /// # Errors
    ///
    /// Returns an error if the code is not as it must be.
    pub fn judge(mut self, totals: &mut Totals) -> Result<()> {
        self.process.wait("serve")?;
        totals.served += 1;
        Ok(())
    }
}
