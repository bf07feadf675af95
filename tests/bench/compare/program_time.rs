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

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    let ways = [(Filter::None, "added"), (Filter::RejectsAll, "rejected")];
    let faults = ways.map(|(filter, what)| {
        let title = format!("A page fault after the other, {what}");
        asked(setting, &title, Load::Faults, |tool| by_fault(setting, tool, filter))
    });
    let timers = ways.map(|(filter, what)| {
        let title = format!("A timer of {} kHz beside cache misses, {what}", HERTZ / 1000);
        let command = |tool| by_timer(setting, tool, HERTZ, filter, "--overhead off ");
        asked(setting, &title, Load::Memory, command)
    });
    faults.into_iter().chain(timers).collect()
}

fn asked(setting: &Rc<Setting>, title: &str, load: Load, command: impl Fn(Tool) -> Vec<String>) -> Question {
    let note = "Each run as the kernel accounts it, which itself takes most of the time of an empty program.";
    let question = Question::new(title, "ns per run", note);
    [Tool::EmptyProgram, Tool::Precise, Tool::Bpftrace].into_iter().fold(question, |question, tool| {
        let setting = Rc::clone(setting);
        question.with(tool, vec![command(tool)], move |commands| run_time(&setting, tool, commands, load))
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
