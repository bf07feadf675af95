//! How much slower a program becomes while all CPUs are sampled.

use std::mem;
use std::rc::Rc;

use anyhow::Result;

use super::commands::{Filter, by_fault, by_timer};
use super::question::{Question, words};
use super::running::Running;
use super::setting::Setting;
use super::tool::Tool;
use super::work::Load;

/// The programs that timers sample.
const LOADS: [(&str, Load); 3] =
    [("A cache miss", Load::Memory), ("A multiplication", Load::Compute), ("A system call", Load::Syscalls)];
/// The rates of the timers, in hertz.
const RATES: [u32; 3] = [1000, 10_000, 20_000];

/// Returns the questions about page faults, each of which is sampled.
pub fn faults(setting: &Rc<Setting>) -> Vec<Question> {
    let faults = |title, note, filter, tools: &[Tool]| {
        let question = slowed(setting, title, note, Load::Faults);
        tools.iter().fold(question, |question, tool| {
            profiled(setting, question, Load::Faults, *tool, by_fault(setting, *tool, 1, filter))
        })
    };
    let note = "A program that does nothing shows what the kernel itself takes for a sample of a perf event. \
                precise takes these samples at the kernel's tracepoints, which is a shorter way \
                ([journal](journal/0020-each-fault.md)).";
    let added = faults(
        "A page fault, each sampled by instruction, cgroup and process",
        note,
        Filter::None,
        &[Tool::Precise, Tool::Perf, Tool::Bpftrace, Tool::EmptyProgram],
    );
    // perf filters tracepoints only.
    let rejected = faults(
        "A page fault that a filter rejects",
        note,
        Filter::RejectsAll,
        &[Tool::Precise, Tool::Bpftrace, Tool::EmptyProgram],
    );
    vec![added.limit(1.0), rejected]
}

/// Returns the questions about timers.
pub fn timers(setting: &Rc<Setting>) -> Vec<Question> {
    let note = "The profiler itself runs on another CPU, and what it takes there is in its own chapter. A program \
                that does nothing shows what the timer's interrupt takes by itself. The next chapter looks into the \
                interrupt, where there is less noise.";
    each_timer(note, |title, note, hertz, load| timer(setting, &title, note, hertz, load))
}

/// Returns the question about each program at each rate, by its title. The note is before the first
/// table.
pub fn each_timer(
    mut note: &'static str,
    ask: impl Fn(String, &'static str, u32, Load) -> Question,
) -> Vec<Question> {
    let timers = LOADS.into_iter().flat_map(|(name, load)| {
        RATES.map(|hertz| {
            ask(format!("{name}, timer of {} kHz", hertz / 1000), mem::take(&mut note), hertz, load)
        })
    });
    timers.collect()
}

/// Returns the command that samples by a timer, and itself runs on another CPU than the load, which
/// has CPU 1.
pub fn elsewhere(setting: &Setting, tool: Tool, hertz: u32) -> Vec<String> {
    let command = by_timer(setting, tool, hertz, Filter::None, "--overhead off ");
    words("taskset -c 0").into_iter().chain(command).collect()
}

fn slowed(setting: &Rc<Setting>, title: &str, note: &'static str, load: Load) -> Question {
    let question = Question::new(title, "ns per operation", note);
    let setting = Rc::clone(setting);
    question.with(Tool::None, Vec::new(), move |_| setting.work.run(load))
}

fn profiled(
    setting: &Rc<Setting>,
    question: Question,
    load: Load,
    tool: Tool,
    command: Vec<String>,
) -> Question {
    let setting = Rc::clone(setting);
    question.with(tool, vec![command], move |commands| under(&setting, tool, commands, load))
}

/// Returns the nanoseconds of an operation while a profiler samples.
///
/// # Errors
///
/// Returns an error if the profiler or the load fails.
pub fn under(setting: &Setting, tool: Tool, commands: &[Vec<String>], load: Load) -> Result<f64> {
    let running = Running::start(tool, commands, setting)?;
    let value = setting.work.run(load);
    running.interrupt()?;
    value
}

fn timer(setting: &Rc<Setting>, title: &str, note: &'static str, hertz: u32, load: Load) -> Question {
    let contenders = [Tool::Precise, Tool::Perf, Tool::Bpftrace, Tool::EmptyProgram];
    contenders.into_iter().fold(slowed(setting, title, note, load), |question, tool| {
        profiled(setting, question, load, tool, elsewhere(setting, tool, hertz))
    })
}
