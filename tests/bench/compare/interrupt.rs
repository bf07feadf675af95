//! What a timer's sample takes in the interrupt, as the kernel's own tracepoints see it.
//!
//! How much slower a program becomes is what a user pays, but on a virtual machine the interrupt
//! itself is nine tenths of that, and differs from second to second by more than the profilers do.
//! Between the tracepoints is only what a profiler asked for.

use std::fs;
use std::mem;
use std::rc::Rc;

use anyhow::{Context as _, Result};

use super::commands::{Filter, by_timer};
use super::question::{Question, words};
use super::running::Running;
use super::setting::Setting;
use super::slowdown::{LOADS, RATES};
use super::tool::Tool;
use super::work::Load;

/// What the tracer writes.
const TOOK: &str = "took.txt";
/// The load has CPU 1. `perf_swevent_hrtimer` is the function of the timers of perf events.
const TRACER: &str = "\
    tracepoint:timer:hrtimer_expire_entry \
    /cpu == 1 && (uint64)args->function == kaddr(\"perf_swevent_hrtimer\")/ { @at = nsecs; } \
    tracepoint:timer:hrtimer_expire_exit /cpu == 1 && @at/ { @took = stats(nsecs - @at); @at = (uint64)0; }";
const NOTE: &str = "\
    From one of the kernel's tracepoints around the timer's function to the other, which includes what \
    bpftrace takes to look at the clock, and nothing of the interrupt itself. The profiler and that bpftrace \
    run on another CPU.";

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    // Before the first table.
    let mut note = NOTE;
    let all = LOADS.into_iter().flat_map(|(name, load)| {
        RATES.map(|hertz| {
            let title = format!("{name}, timer of {} kHz, in the interrupt", hertz / 1000);
            question(setting, title, mem::take(&mut note), hertz, load)
        })
    });
    all.collect()
}

fn question(setting: &Rc<Setting>, title: String, note: &'static str, hertz: u32, load: Load) -> Question {
    let elsewhere = |command: Vec<String>| words("taskset -c 0").into_iter().chain(command).collect();
    let tracer = || elsewhere(["bpftrace", "-o", TOOK, "-e", TRACER].map(str::to_owned).to_vec());
    let contenders = [Tool::EmptyProgram, Tool::Precise, Tool::Perf, Tool::Bpftrace];
    let question = Question::new(title, "ns per interrupt", note);
    contenders.into_iter().fold(question, |question, tool| {
        let profiler = elsewhere(by_timer(setting, tool, hertz, Filter::None, "--overhead off "));
        let setting = Rc::clone(setting);
        question.with(tool, vec![profiler, tracer()], move |commands| took(&setting, tool, commands, load))
    })
}

/// Returns the nanoseconds of one run of the timer's function beside a load. The commands are those
/// of the profiler and of the tracer.
fn took(setting: &Setting, tool: Tool, commands: &[Vec<String>], load: Load) -> Result<f64> {
    let profiler = Running::start(tool, commands, setting)?;
    let tracer = Running::start(Tool::Bpftrace, commands.get(1..).unwrap_or_default(), setting)?;
    setting.work.run(load)?;
    tracer.interrupt()?;
    profiler.interrupt()?;
    let said = fs::read_to_string(setting.folder.join(TOOK)).context(TOOK)?;
    average(&said).with_context(|| format!("the tracer saw no timer: {said}"))
}

/// Returns what `stats` of bpftrace prints as the average.
fn average(said: &str) -> Option<f64> {
    let (_, after) = said.split_once("average ")?;
    after.split(',').next()?.trim().parse().ok()
}
