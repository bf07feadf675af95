//! Starts `precise`.

use precise::capture::CaptureFile as _;
use std::{
    cell::Cell,
    ffi::OsStr,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::mpsc,
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use precise::error::ExitClass;
use precise::model::{Capture, Ledger};
use precise_common::ledger::Counter;

use crate::{
    rows::{Rows, rows},
    say, schema,
};

/// Part of the line that is printed when all events are enabled.
const STARTED: &str = "memory: tables";
/// The time limit for a start or an end, on a machine that is busy with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the binary, from the folder that this test was built into. Builds it if it is missing.
///
/// # Errors
///
/// Returns an error if it cannot be built.
pub fn binary() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).context("a test lies in target/PROFILE/deps")?;
    let binary = folder.join("precise");
    if !binary.exists() {
        let status = Command::new(env!("CARGO")).args(["build", "--package", "precise-user"]).status()?;
        ensure!(status.success() && binary.exists(), "{} cannot be built", binary.display());
    }
    Ok(binary)
}

/// The result of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// Checks the exit code.
    ///
    /// # Errors
    ///
    /// Returns an error with the whole output if the exit code differs.
    pub fn expect(self, code: i32) -> Result<Self> {
        ensure!(self.code == Some(code), "expected exit code {code}: {self:#?}");
        ensure!(!self.stderr.contains("panicked"), "a panic: {self:#?}");
        Ok(self)
    }
}

/// Returns the command `precise` with arguments, not started yet. Its working folder is `/`, so
/// that it leaves nothing in the checkout.
///
/// # Errors
///
/// Returns an error if the binary cannot be built.
pub fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).env_remove("NO_COLOR");
    Ok(command)
}

/// Runs `precise` to its end. If it prints JSON, the output is checked against its schema.
///
/// # Errors
///
/// Returns an error if it cannot be started, or if its output does not match the schema.
pub fn precise<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Ended> {
    let mut command = command(arguments)?;
    let ended: Ended = command.output()?.into();
    let arguments: Vec<_> = command.get_args().collect();
    schema::check(&arguments, &ended.stdout).with_context(|| format!("{command:?}"))?;
    Ok(ended)
}

/// Returns the subcommands that the help lists.
///
/// # Errors
///
/// Returns an error if there is no help, or if it lists too few subcommands.
pub fn subcommands() -> Result<Vec<String>> {
    let help = precise(["--help"])?.expect(0)?.stdout;
    let (_, list) = help.split_once("Commands:\n").context("the help has no commands")?;
    let names: Vec<String> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    ensure!(names.len() >= 7, "{names:?}");
    Ok(names)
}

/// A recording that ended successfully.
#[derive(Debug)]
pub struct Recorded {
    /// The capture.
    pub capture: Capture,
    /// The output of the command.
    pub ended: Ended,
}

impl Recorded {
    /// Reads the capture that a run wrote to `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read. If the run was [`Disturbed`], a test that then fails
    /// is run again ([`undisturbed`]).
    pub fn of(ended: Ended, file: &Path) -> Result<Self> {
        let recorded = Self { capture: Capture::read(file)?, ended };
        if let Some(disturbed) = Disturbed::of(recorded.ledger()) {
            DISTURBED.set(Some(disturbed));
        }
        Ok(recorded)
    }

    /// Returns the ledger of the only event.
    pub fn ledger(&self) -> &Ledger {
        &self.capture.meta.events[0].ledger
    }

    /// Returns the rows with their names.
    pub fn rows(&self) -> Rows {
        rows(&self.capture)
    }
}

/// Samples every page fault of a command, by instruction, page and process. `more` are further
/// options.
///
/// # Errors
///
/// Returns an error if `precise` does not exit with 0, or with 69 if the capture has no samples; or
/// if its capture cannot be read.
pub fn record_faults(folder: &Path, more: &[&str], command: &[&str]) -> Result<Recorded> {
    let file = folder.join("faults.parquet");
    let arguments = [FAULTS, more, &["-o"]].concat();
    let arguments: Vec<&OsStr> = arguments
        .into_iter()
        .map(OsStr::new)
        .chain([file.as_os_str(), OsStr::new("--")])
        .chain(command.iter().map(OsStr::new))
        .collect();
    // While another process is inside bpf(2), the kernel runs no program for the events of its CPU
    // and only counts them: see epochs.rs. The ledger shows it. Such a run proves nothing, so it is
    // repeated.
    for _ in 0..5 {
        let ended = precise(&arguments)?;
        let nothing = i32::from(ExitClass::NoSamples.code());
        let code = if ended.code == Some(nothing) { nothing } else { 0 };
        let recorded = Recorded { ended: ended.expect(code)?, capture: Capture::read(&file)? };
        ensure!(recorded.capture.rows.is_empty() == (code == nothing), "{recorded:#?}");
        match Disturbed::of(recorded.ledger()) {
            None => return Ok(recorded),
            Some(disturbed) => say(&format!("again: {disturbed}")),
        }
    }
    bail!("five runs in which not every event became a sample in time: {arguments:?}")
}

/// The options that sample every page fault.
pub const FAULTS: &[&str] =
    &["record", "-e", "page-faults", "-c", "1", "--granule", "4096", "--by", "ip,address,process,cgroup,cpu"];

/// Options that sample the whole machine, but only the pages of [`crate::program::FAULTS`]. Other
/// programs cannot fill the table then, and these pages fill a tenth of it.
pub const EVERYWHERE: &[&str] = &[
    "-a",
    "--duration",
    "300s",
    "--table-cells",
    "64K",
    "--filter",
    "addr in 0x500000000000..0x500100000000",
];

/// A running `precise record`, which is killed when this is dropped.
#[derive(Debug)]
pub struct Live {
    child: Child,
    file: PathBuf,
    said: JoinHandle<String>,
    printed: JoinHandle<String>,
}

impl Live {
    /// Starts `precise record` and waits until it samples.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start sampling.
    pub fn start(folder: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_command(folder, arguments, &[])
    }

    /// Starts `precise record` like [`Self::start`], with a command to sample after the arguments;
    /// `sampled` begins with `--`.
    ///
    /// # Errors
    ///
    /// Returns an error like [`Self::start`].
    pub fn start_command(folder: &Path, arguments: &[&str], sampled: &[&str]) -> Result<Self> {
        let file = folder.join("live.parquet");
        let mut command = command(arguments)?;
        command.arg("-o").arg(&file).args(sampled);
        Self::spawn(command, file)
    }

    /// Starts a command that writes a capture to `file`, and waits until it samples.
    ///
    /// # Errors
    ///
    /// Returns an error like [`Self::start`].
    pub fn spawn(mut command: Command, file: PathBuf) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stdout) = stdout {
                // Output that cannot be read is missing in the result, and a test notices it there.
                let _missing = stdout.read_to_string(&mut text);
            }
            text
        });
        let (said, _) = started(&mut child, stderr)?;
        Ok(Self { child, file, said, printed })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a child that has not been waited for, so the id still belongs to it.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Kills the process and waits for its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be waited for.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Interrupts the process like Ctrl-C, and reads its capture.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exit with 0, or if its capture cannot be read.
    pub fn interrupt(mut self) -> Result<Recorded> {
        self.signal(libc::SIGINT);
        let code = self.child.wait()?.code();
        let text = |thread: JoinHandle<String>| thread.join().unwrap_or_default();
        let ended = Ended { code, stdout: text(self.printed), stderr: text(self.said) }.expect(0)?;
        Recorded::of(ended, &self.file)
    }
}

/// Waits until a run samples. Returns its output up to then, and a handle to all of its output.
pub(crate) fn started(
    child: &mut Child,
    stderr: Option<ChildStderr>,
) -> Result<(JoinHandle<String>, String)> {
    let (begun, begin) = mpsc::channel();
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).flatten() {
            text.push_str(&line);
            text.push('\n');
            if line.contains(STARTED) {
                // The receiver no longer waits.
                let _late = begun.send(text.clone());
            }
        }
        text
    });
    if let Ok(until_now) = begin.recv_timeout(PATIENCE) {
        return Ok((said, until_now));
    }
    child.kill()?;
    child.wait()?;
    bail!("it does not start to sample: {}", said.join().unwrap_or_default());
}

thread_local! {
    /// The events that the last run of this thread's test missed.
    static DISTURBED: Cell<Option<Disturbed>> = const { Cell::new(None) };
}

/// A run in which not every event became a sample that was kept, as its ledger shows. Others cause
/// that in two ways:
///
/// - The kernel skips the program on a CPU on which bpf(2) or another program is in progress, and
///   only counts the event.
/// - A run that gets no CPU for a second cannot renew its lease, and the samples after that are
///   late.
///
/// If the test's own numbers are correct, the missing events belong to other programs on the
/// machine. If they are not, the run proves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Disturbed {
    /// The number of events that samples stand for, without those that came after the deadline.
    pub seen: u64,
    /// The number of events that the kernel counted.
    pub counted: u64,
}

impl Disturbed {
    /// Returns what the ledger of a run with a period of 1 shows; `None` for an undisturbed run.
    fn of(ledger: &Ledger) -> Option<Self> {
        let in_time = ledger.counter(Counter::Seen).saturating_sub(ledger.counter(Counter::Late));
        let disturbed = Self { seen: in_time, counted: ledger.event_count };
        (disturbed.seen != disturbed.counted).then_some(disturbed)
    }
}

impl std::fmt::Display for Disturbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} events seen in time", self.seen, self.counted)
    }
}

impl std::error::Error for Disturbed {}

/// Runs a test, and repeats it while it fails and is [`Disturbed`], at most five times in total.
///
/// # Errors
///
/// Returns the test's own error: immediately if no events were missed, otherwise after the fifth
/// time.
pub fn undisturbed(test: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..4 {
        DISTURBED.set(None);
        match test() {
            Err(error) if error.is::<Disturbed>() => say(&format!("again: {error}")),
            Err(error) if let Some(disturbed) = DISTURBED.get() => {
                let what: String = error.to_string().chars().take(120).collect();
                say(&format!("again: {disturbed}: {what}"));
            }
            other => return other,
        }
    }
    test()
}

/// Calls `run` until it finds nothing missing, at most five times.
///
/// For what the ledger of a run does not show. While another process on the machine is inside
/// bpf(2), events are counted but not sampled. Each sample that is not taken stands for a whole
/// period, so a few of them in a second exceed what may be missing; and a virtual machine that is
/// not scheduled misses the ticks of its timers. A wrong weight would fail in every run, and so
/// would a governor that does not work.
///
/// # Errors
///
/// Returns the error of `run`, or an error if something was missing in each of the five runs.
pub fn until_undisturbed(mut run: impl FnMut() -> Result<Option<String>>) -> Result<()> {
    let mut lacking = String::new();
    for _ in 0..5 {
        match run()? {
            Some(lack) => {
                say(&format!("again: {lack}"));
                lacking = lack;
            }
            None => return Ok(()),
        }
    }
    bail!("in each of five runs something was missing, in the last: {lacking}")
}
