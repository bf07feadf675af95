//! The profilers that are compared, and how each is told to do the same.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::{kill_on_drop::KillOnDrop, program};

use super::question::{Question, What};
use super::work::Work;

/// A profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// No profiler.
    None,
    /// precise.
    Precise,
    /// `perf record`.
    Perf,
    /// bpftrace.
    Bpftrace,
}

impl Tool {
    /// The tools that precise is compared with.
    pub const PEERS: [Self; 2] = [Self::Perf, Self::Bpftrace];

    /// The name, as tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "no profiler",
            Self::Precise => "precise",
            Self::Perf => "perf record",
            Self::Bpftrace => "bpftrace",
        }
    }

    /// Whether it can be run here.
    pub fn is_installed(self) -> bool {
        match self {
            Self::None | Self::Precise => true,
            Self::Perf => program::exists("perf"),
            Self::Bpftrace => program::exists("bpftrace"),
        }
    }
}

/// A profiler with the arguments that answer one question.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The profiler.
    pub tool: Tool,
    /// The command; empty without a profiler.
    pub command: Vec<String>,
}

/// How long a profiler may take to end after SIGINT.
const END: Duration = Duration::from_secs(60);

impl Contender {
    /// Returns the contenders of a question that are installed and can do it, the one without a
    /// profiler first.
    pub fn all(question: &Question, precise: &Path) -> Vec<Self> {
        [Tool::None, Tool::Precise, Tool::Perf, Tool::Bpftrace]
            .into_iter()
            .filter(|tool| tool.is_installed() && (*tool != Tool::None || question.needs_baseline()))
            .map(|tool| Self { tool, command: command(question.what, tool, precise) })
            .filter(|contender| contender.tool == Tool::None || !contender.command.is_empty())
            .collect()
    }

    /// Asks a question once.
    pub fn measure(&self, question: &Question, work: &Work) -> Result<f64> {
        let Some(load) = question.load else { return self.own_time(work) };
        let running = self.start(&work.folder)?;
        let value = work.run(load);
        if let Some(running) = running {
            interrupt(running)?;
        }
        value
    }

    /// Returns the milliseconds from start to end of the profiler.
    fn own_time(&self, work: &Work) -> Result<f64> {
        let (program, arguments) = self.command.split_first().context("nothing to time")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&work.folder).stdin(Stdio::null());
        let begin = Instant::now();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let took = begin.elapsed();
        ensure!(status.success(), "`{}` failed: {status}", self.command.join(" "));
        Ok(took.as_secs_f64() * 1e3)
    }

    /// Starts the profiler, and waits until it samples. `None` without a profiler.
    fn start(&self, folder: &Path) -> Result<Option<KillOnDrop>> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = KillOnDrop::from(child.with_context(|| self.command.join(" "))?);
        // Nothing that all of them print says that they sample.
        std::thread::sleep(match self.tool {
            Tool::Bpftrace => Duration::from_secs(3),
            _ => Duration::from_secs(1),
        });
        if let Some(status) = running.try_wait()? {
            bail!("`{}` ended at once: {status}", self.command.join(" "));
        }
        Ok(Some(running))
    }
}

/// Interrupts a profiler. Returns the time until its end.
fn interrupt(mut running: KillOnDrop) -> Result<Duration> {
    let begin = Instant::now();
    // SAFETY: the child has not been waited for, so the process id is its own.
    unsafe { libc::kill(running.id().cast_signed(), libc::SIGINT) };
    while begin.elapsed() < END {
        if running.try_wait()?.is_some() {
            return Ok(begin.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("it did not end within {} s of SIGINT", END.as_secs())
}

/// Returns the command of a tool.
fn command(what: What, tool: Tool, precise: &Path) -> Vec<String> {
    let precise = precise.display().to_string();
    let text = match (what, tool) {
        (_, Tool::None) => return Vec::new(),
        (What::EachFault, Tool::Precise) => {
            "record -q -a -e page-faults -c 1 --by ip,cgroup,process --duration 300s -o precise.parquet"
        }
        (What::EachFault, Tool::Perf) => "perf record -q -a -e page-faults -c 1 -o perf.data",
        (What::EachFault, Tool::Bpftrace) => {
            let script = "software:page-faults:1 { @[pid, cgroup, reg(\"ip\")] = count(); }";
            return ["bpftrace", "-e", script].map(str::to_owned).to_vec();
        }
        (What::NoFault, Tool::Precise) => {
            "record -q -a -e page-faults -c 1 --by ip,cgroup,process --filter pid==1 --duration 300s -o \
             precise.parquet"
        }
        // perf filters tracepoints only.
        (What::NoFault, Tool::Perf) => return Vec::new(),
        (What::NoFault, Tool::Bpftrace) => {
            let script = "software:page-faults:1 /pid == 1/ { @[pid, cgroup, reg(\"ip\")] = count(); }";
            return ["bpftrace", "-e", script].map(str::to_owned).to_vec();
        }
        (What::Timer { hertz }, tool) => return timer(hertz, tool, &precise),
        (What::Start, Tool::Precise) => "record -q -e page-faults -c 1 -o precise.parquet -- true",
        (What::Start, Tool::Perf) => "perf record -q -e page-faults -c 1 -o perf.data -- true",
        (What::Start, Tool::Bpftrace) => {
            let script = "software:page-faults:1 { @[pid, reg(\"ip\")] = count(); }";
            return ["bpftrace", "-e", script, "-c", "/bin/true"].map(str::to_owned).to_vec();
        }
    };
    let words = text.split_whitespace().map(str::to_owned);
    if tool == Tool::Precise { [precise].into_iter().chain(words).collect() } else { words.collect() }
}

/// Returns the command that samples all CPUs by a timer.
fn timer(hertz: u32, tool: Tool, precise: &str) -> Vec<String> {
    let hertz = hertz.to_string();
    let words: Vec<&str> = match tool {
        Tool::None => Vec::new(),
        Tool::Precise => {
            let fixed = ["record", "-q", "-a", "-e", "cpu-clock", "--overhead", "off", "--duration", "300s"];
            let rest = ["--by", "ip,cgroup,process", "-o", "precise.parquet", "-F", &hertz];
            return [&[precise][..], &fixed, &rest].concat().into_iter().map(str::to_owned).collect();
        }
        Tool::Perf => vec!["perf", "record", "-q", "-a", "-e", "cpu-clock", "-o", "perf.data", "-F", &hertz],
        Tool::Bpftrace => {
            let script = format!("profile:hz:{hertz} {{ @[pid, cgroup, reg(\"ip\")] = count(); }}");
            return vec!["bpftrace".to_owned(), "-e".to_owned(), script];
        }
    };
    words.into_iter().map(str::to_owned).collect()
}
