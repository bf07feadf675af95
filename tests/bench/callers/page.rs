//! The results as text and as a page.

use std::fmt::Write as _;

use precise::machine::{MachineInfo, Root};

use super::cost::WayCost;
use precise_tests::chain_judge::{ChainDifference, SameVerdict};
use precise_tests::chains::UserFrame;

/// Frames of each chain that are printed around the place where two chains part.
const AROUND: usize = 4;

/// Returns what differs for one program, with examples.
pub fn details(name: &str, verdict: &SameVerdict) -> String {
    let SameVerdict { samples, both, same, same_functions, .. } = verdict;
    let mut out = format!(
        "{name}: {samples} samples, {both} of them perf's too; {same} chains the same, {same_functions} more \
         by function\n"
    );
    for ((reason, file), samples) in &verdict.ends {
        let _ = writeln!(out, "  {samples} end with {reason} in {file}");
    }
    for (difference, (samples, pairs)) in &verdict.different {
        let _ = writeln!(out, "  {samples} × {}", words(difference));
        for (ours, theirs) in pairs {
            let part = ours.iter().zip(theirs).take_while(|(a, b)| a.address == b.address).count();
            let _ =
                writeln!(out, "    precise: {}\n    perf:    {}", around(ours, part), around(theirs, part));
        }
    }
    out
}

fn around(frames: &[UserFrame], part: usize) -> String {
    let shown = frames.iter().enumerate().skip(part.saturating_sub(2)).take(AROUND);
    let of = |(at, frame): (usize, &UserFrame)| {
        let name = if frame.function.is_empty() { "?" } else { &frame.function };
        format!("{at}:{name} {:#x} ({})", frame.address, frame.file)
    };
    let shown: Vec<String> = shown.map(of).collect();
    format!("{} of {}", shown.join(" ← "), frames.len())
}

/// Returns a difference in words.
fn words(difference: &ChainDifference) -> String {
    let file = |file: &String| if file.is_empty() { "no file".to_owned() } else { file.clone() };
    match difference {
        ChainDifference::PerfEnds { file: at } => format!("perf ends in {}, precise goes on", file(at)),
        ChainDifference::PreciseEnds { reason, file: at } => {
            format!("precise ends in {} ({reason}), perf goes on", file(at))
        }
        ChainDifference::Apart { file: at, reason } => {
            format!("other callers from {} on; precise ends with {reason}", file(at))
        }
        ChainDifference::Lost => "perf has lost the sample".to_owned(),
        ChainDifference::OnlyPerf => "precise has no such sample".to_owned(),
    }
}

/// Returns the table of programs.
pub fn compared(all: &[(&str, SameVerdict)]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut out =
        "| program | samples of both | the same | the same as far as perf goes | perf ends first | precise ends first | other \
                   callers | whole, by precise |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for (name, verdict) in all {
        let sum = |wanted: fn(&ChainDifference) -> bool| -> u64 {
            verdict.different.iter().filter(|(kind, _)| wanted(kind)).map(|(_, (samples, _))| samples).sum()
        };
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let same = verdict.same + verdict.same_functions;
        let first = sum(|kind| matches!(kind, ChainDifference::PerfEnds { .. }));
        let _ = writeln!(
            out,
            "| {name} | {} | {:.2} % | {:.2} % | {} | {} | {} | {:.2} % |",
            verdict.both,
            share(same, verdict.both),
            share(same + first, verdict.both),
            first,
            sum(|kind| matches!(kind, ChainDifference::PreciseEnds { .. })),
            sum(|kind| matches!(kind, ChainDifference::Apart { .. })),
            share(verdict.whole, verdict.samples),
        );
    }
    out
}

/// Returns the table of costs.
pub fn costs(all: &[WayCost]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut out =
        "| way | Hz | s | samples | lost | whole chains | MB for 10⁶ samples | s from Ctrl-C to its end | s to \
                   the picture |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for cost in all {
        let each = cost.bytes as f64 / cost.samples.max(1) as f64;
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {:.1} % | {each:.1} | {:.2} | {:.2} |",
            cost.way.name(),
            cost.sampling.hertz,
            cost.sampling.time.as_secs(),
            cost.samples,
            cost.lost,
            100.0 * cost.whole as f64 / cost.samples.max(1) as f64,
            cost.end.as_secs_f64(),
            cost.picture.as_secs_f64(),
        );
    }
    out
}

/// Returns the page.
pub fn page(all: &[(&str, SameVerdict)], measured: &[WayCost]) -> String {
    let machine = MachineInfo::read(&Root::default()).machine;
    let mut out = format!(
        "{HEAD}`cargo xtask bench callers --page docs/callers.md` wrote this page on\n{} ({} CPUs, Linux {}).\n\n{SAME}",
        machine.cpu, machine.cpus, machine.kernel
    );
    out += &compared(all);
    out += DIFFERENT;
    for (name, verdict) in all {
        for (difference, (samples, _)) in &verdict.different {
            let _ = writeln!(out, "| {name} | {samples} | {} |", words(difference));
        }
    }
    out += WHOLE;
    for (name, verdict) in all {
        for ((reason, file), samples) in verdict.ends.iter().filter(|((reason, _), _)| reason != "root") {
            let _ = writeln!(out, "| {name} | {samples} | {reason} in {file} |");
        }
    }
    out += COST;
    out + &costs(measured)
}

const HEAD: &str = "\
# Call chains beside perf

Are the call chains of [record -g](flamegraph.md) right, and what do they cost?

";

const SAME: &str = "\
## The same samples

A program as Debian or its makers ship it, without frame pointers, was stopped. precise (`-g`) and
perf (`--call-graph dwarf,65528`) attached to it, and it ran on: both sampled the same page faults.
Chains are compared by the addresses of all their frames in user space, and where these differ, by
function and file.

";

const DIFFERENT: &str = "
Where precise has a sample and perf has none, perf has lost it: its ring was full. perf ends first
in two kinds of places: in memory without a file (`[anon]`), which is the code of a JIT compiler,
where precise goes on by frame pointers; and inside rustc, probably where the stack is deeper than
the 64 kB that perf can copy (the depth was not measured).

| program | samples | difference |
| --- | --- | --- |
";

const WHOLE: &str = "
Chains of precise that are not whole:

| program | samples | reason and place |
| --- | --- | --- |
";

const COST: &str = "
Java code has no frame pointers unless the JVM is told to keep them.

## What it costs

Each profiler sampled python3 by a timer, for some seconds (column s), one after another. A chain is
whole if its outermost function is `_start` or `clone3`. A file of precise has each chain once, so
its bytes per sample get fewer the longer it samples: the last rows have about a million samples,
where `dwarf,65528` would write 65 GB. The last column is the time of `precise flamegraph`, and for
perf that of `perf script`, without the program that draws what it prints. bpftrace 0.17 ends at the
first sample whose stack has found no place in its map, so only what it printed before is counted.

";
