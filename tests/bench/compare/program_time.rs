//! What the eBPF program itself takes, as the kernel accounts it (`bpf_stats`).

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};

use super::commands::{Filter, by_fault, by_timer};
use super::question::Question;
use super::running::Running;
use super::setting::Setting;
use super::tool::Tool;
use super::work::Load;

/// A rate at which all that the program touches is cold.
const HERTZ: u32 = 10_000;

/// What the reader must know where all programs are at a perf event.
const AT_EVENTS: &str =
    "Each run as the kernel accounts it, which itself takes most of the time of an empty program.";
/// The same of page faults, each of which is sampled.
const AT_TRACEPOINTS: &str = "\
    Each run as the kernel accounts it, which itself takes most of the time of an empty program. \
    precise's program is at tracepoints, and reads what the others are given at a perf event.";

/// What is asked: beside which load, and how each contender samples.
struct Asked<'a> {
    title: &'a str,
    note: &'static str,
    load: Load,
    command: &'a dyn Fn(Tool, Filter) -> Vec<String>,
}

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    let timer = format!("A timer of {} kHz beside cache misses", HERTZ / 1000);
    let asked = [
        Asked {
            title: "A page fault after the other",
            note: AT_TRACEPOINTS,
            load: Load::Faults,
            command: &|tool, filter| by_fault(setting, tool, 1, filter),
        },
        Asked {
            title: "Every second page fault",
            note: AT_EVENTS,
            load: Load::Faults,
            command: &|tool, filter| by_fault(setting, tool, 2, filter),
        },
        Asked {
            title: &timer,
            note: AT_EVENTS,
            load: Load::Memory,
            command: &|tool, filter| by_timer(setting, tool, HERTZ, filter, "--overhead off "),
        },
    ];
    asked.iter().flat_map(|asked| ask(setting, asked)).collect()
}

/// Returns the questions about samples that are added, and about samples that are rejected.
fn ask(setting: &Rc<Setting>, asked: &Asked<'_>) -> [Question; 2] {
    let Asked { title, note, load, command } = *asked;
    [(Filter::None, "added"), (Filter::RejectsAll, "rejected")].map(|(filter, what)| {
        let question = Question::new(format!("{title}, {what}"), "ns per run", note);
        [Tool::EmptyProgram, Tool::Precise, Tool::Bpftrace].into_iter().fold(question, |question, tool| {
            let setting = Rc::clone(setting);
            let command = vec![command(tool, filter)];
            question.with(tool, command, move |commands| run_time(&setting, tool, commands, load))
        })
    })
}

/// Returns the nanoseconds of one run of a profiler's programs beside a load.
fn run_time(setting: &Setting, tool: Tool, commands: &[Vec<String>], load: Load) -> Result<f64> {
    let _accounted = enable_stats(Stats::RunTime).context("the kernel does not account programs")?;
    let others = programs()?;
    let running = Running::start(tool, commands, setting)?;
    let before = programs()?;
    setting.work.run(load)?;
    let after = programs()?;
    running.interrupt()?;
    let (mut runs, mut spent) = (0, Duration::ZERO);
    for (id, (ran, took)) in after.iter().filter(|(id, _)| !others.contains_key(id)) {
        let (ran_before, took_before) = before.get(id).copied().unwrap_or_default();
        runs += ran - ran_before;
        spent += took.saturating_sub(took_before);
    }
    ensure!(runs > 0, "no program ran");
    Ok(spent.as_secs_f64() * 1e9 / runs as f64)
}

/// Returns how often each loaded program has run, and for how long.
fn programs() -> Result<HashMap<u32, (u64, Duration)>> {
    loaded_programs()
        .map(|program| {
            let program = program.context("a program cannot be described")?;
            Ok((program.id(), (program.run_count(), program.run_time())))
        })
        .collect()
}
