//! What call chains cost: each profiler samples the same program by a timer, one after another.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use precise::capture::CaptureFile as _;
use precise::model::Capture;
use precise_common::ledger::Counter;
use precise_tests::kill_on_drop::KillOnDrop;
use precise_tests::program::exists;

use super::attached::{interrupt, quiet, signal};
use super::programs;
use precise_tests::chains::{ChainsTaken, of_perf, of_precise};

/// A way to take call chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainWay {
    /// `precise record -g`.
    Precise,
    /// `perf record --call-graph` with this argument.
    Perf(&'static str),
    /// bpftrace with `ustack`.
    Bpftrace,
}

/// All ways.
const WAYS: [ChainWay; 5] = [
    ChainWay::Precise,
    ChainWay::Perf("fp"),
    ChainWay::Perf("dwarf"),
    ChainWay::Perf("dwarf,65528"),
    ChainWay::Bpftrace,
];

/// How each of some ways samples.
#[derive(Clone, Copy, Debug)]
pub struct TimerSampling {
    /// Samples per second.
    pub hertz: u32,
    /// How long.
    pub time: Duration,
    ways: &'static [ChainWay],
}

/// A glance, and one that takes about a million samples. `dwarf,65528` would write 65 GB there.
const SAMPLINGS: [TimerSampling; 3] = [
    TimerSampling { hertz: 999, time: Duration::from_secs(4), ways: &WAYS },
    TimerSampling { hertz: 9973, time: Duration::from_secs(4), ways: &WAYS },
    TimerSampling {
        hertz: 9973,
        time: Duration::from_secs(105),
        ways: &[ChainWay::Precise, ChainWay::Perf("fp"), ChainWay::Perf("dwarf"), ChainWay::Bpftrace],
    },
];

impl ChainWay {
    /// Returns the name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Precise => "precise record -g".to_owned(),
            Self::Perf(graph) => format!("perf record --call-graph {graph}"),
            Self::Bpftrace => "bpftrace, ustack".to_owned(),
        }
    }
}

/// What a way cost.
#[derive(Clone, Debug)]
pub struct WayCost {
    /// The way.
    pub way: ChainWay,
    /// How it sampled.
    pub sampling: TimerSampling,
    /// Samples that were kept.
    pub samples: u64,
    /// Samples that were taken and lost, as the profiler says.
    pub lost: u64,
    /// Samples whose chains reach the outermost function.
    pub whole: u64,
    /// The bytes of what was written.
    pub bytes: u64,
    /// From Ctrl-C to the end of the profiler.
    pub end: Duration,
    /// From there to the picture, or for perf to the chains as text.
    pub picture: Duration,
}

/// Measures all ways that are installed.
pub fn measure(precise: &Path, folder: &Path) -> Result<Vec<WayCost>> {
    let mut costs = Vec::new();
    let python = programs::PROGRAMS.first().context("a program")?;
    for sampling in SAMPLINGS {
        for &way in sampling.ways {
            if way == ChainWay::Bpftrace && !exists("bpftrace") {
                continue;
            }
            let Some(running) = programs::start(python, folder)? else { return Ok(costs) };
            costs.push(of_way(way, sampling, precise, &running, folder).with_context(|| way.name())?);
        }
    }
    Ok(costs)
}

fn of_way(
    way: ChainWay,
    sampling: TimerSampling,
    precise: &Path,
    running: &KillOnDrop,
    folder: &Path,
) -> Result<WayCost> {
    let (id, rate) = (running.id().to_string(), sampling.hertz.to_string());
    let file = folder.join(if way == ChainWay::Precise { "cost.parquet" } else { "cost.data" });
    let mut command;
    match way {
        ChainWay::Precise => {
            command = Command::new(precise);
            command.args(["record", "-q", "-g", "-e", "cpu-clock", "-F", &rate, "-p", &id]);
            command.args(["--overhead", "off", "--duration", "300s", "-o"]).arg(&file);
        }
        ChainWay::Perf(graph) => {
            command = Command::new("perf");
            command.args(["record", "-q", "-e", "cpu-clock", "-F", &rate, "-p", &id]);
            command.args(["--call-graph", graph, "-o"]).arg(&file);
        }
        ChainWay::Bpftrace => {
            let script = format!("profile:hz:{rate} /pid == {id}/ {{ @[ustack(127)] = count(); }}");
            command = Command::new("bpftrace");
            command.args(["-f", "json", "-o"]).arg(&file).args(["-e", &script]);
        }
    }
    signal(running, libc::SIGSTOP);
    let profiler = quiet(&mut command)?;
    std::thread::sleep(Duration::from_secs(3));
    signal(running, libc::SIGCONT);
    std::thread::sleep(sampling.time);
    let end = interrupt(profiler)?;
    signal(running, libc::SIGSTOP);
    let bytes = std::fs::metadata(&file)?.len();
    let begin = Instant::now();
    let (taken, lost, picture) = match way {
        ChainWay::Precise => {
            let mut flamegraph = Command::new(precise);
            flamegraph.arg("flamegraph").arg("-i").arg(&file).arg("-o").arg(folder.join("cost.svg"));
            wait(&mut flamegraph)?;
            let picture = begin.elapsed();
            let ledger = Capture::read(&file)?.meta.events.first().context("an event")?.ledger.clone();
            let lost = ledger.counter(Counter::Seen) - ledger.counter(Counter::Aggregated);
            (of_precise(&file)?, lost, picture)
        }
        ChainWay::Perf(_) => {
            let taken = of_perf(&file)?;
            (taken, lost_by_perf(&file)?, begin.elapsed())
        }
        // It prints its chains with names at its end, so that there is nothing left to do.
        ChainWay::Bpftrace => (ChainsTaken::new(), 0, Duration::ZERO),
    };
    let (samples, whole) = if way == ChainWay::Bpftrace {
        of_bpftrace(&std::fs::read_to_string(&file)?)
    } else {
        let whole = taken.values().filter(|group| is_whole(group.frames.last().map_or("", |f| &f.function)));
        (taken.values().map(|group| group.samples).sum(), whole.map(|group| group.samples).sum())
    };
    std::fs::remove_file(&file)?;
    Ok(WayCost { way, sampling, samples, lost, whole, bytes, end, picture })
}

/// Returns whether a function is the outermost one of a thread, by its name: the one measure that
/// all profilers share.
fn is_whole(outermost: &str) -> bool {
    ["_start", "__clone3", "clone3", "__clone", "clone"].contains(&outermost)
}

fn wait(command: &mut Command) -> Result<()> {
    let done = command.stdin(Stdio::null()).output()?;
    anyhow::ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// Returns the samples that perf reports as lost.
fn lost_by_perf(file: &Path) -> Result<u64> {
    let mut report = Command::new("perf");
    let out = report.args(["report", "--stats", "-i"]).arg(file).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let of = |line: &str| line.trim().strip_prefix("LOST_SAMPLES events:").map(|rest| rest.trim().to_owned());
    Ok(text
        .lines()
        .filter_map(of)
        .filter_map(|count| count.split_whitespace().next()?.parse::<u64>().ok())
        .sum())
}

/// Returns the number of samples in bpftrace's map, and of those that are whole.
fn of_bpftrace(text: &str) -> (u64, u64) {
    let (mut samples, mut whole) = (0, 0);
    for line in text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        let maps = line["data"].as_object().into_iter().flat_map(|maps| maps.values());
        for (stack, count) in maps.filter_map(|map| map.as_object()).flatten() {
            let count = count.as_u64().unwrap_or(0);
            samples += count;
            let outermost = stack.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
            let name = outermost.trim().split('+').next().unwrap_or("");
            whole += if is_whole(name) { count } else { 0 };
        }
    }
    (samples, whole)
}
