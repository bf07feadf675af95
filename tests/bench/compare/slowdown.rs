//! How much slower a program becomes while all CPUs are sampled.

use std::rc::Rc;

use anyhow::Result;

use super::question::{Question, words};
use super::running::Running;
use super::setting::Setting;
use super::tool::Tool;
use super::work::Load;

/// Samples each page fault: what precise and perf are told.
pub const FAULTS: [(Tool, &str); 2] = [
    (Tool::Precise, "record -q -a -e page-faults -c 1 --by ip,cgroup,process --duration 300s -o x.parquet"),
    (Tool::Perf, "perf record -q -a -e page-faults -c 1 -o perf.data"),
];

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    let faults =
        slowed(setting, "A page fault, each sampled by instruction, cgroup and process", Load::Faults);
    let faults = faults.limit(1.2);
    let faults = FAULTS.into_iter().fold(faults, |question, (tool, text)| {
        profiled(setting, question, Load::Faults, tool, setting.command(tool, text))
    });
    let script = |filter: &str| {
        let script = format!("software:page-faults:1 {filter}{{ @[pid, cgroup, reg(\"ip\")] = count(); }}");
        ["bpftrace", "-e", &script].map(str::to_owned).to_vec()
    };
    let faults = profiled(setting, faults, Load::Faults, Tool::Bpftrace, script(""));

    // perf filters tracepoints only.
    let rejected = slowed(setting, "A page fault that a filter rejects", Load::Faults);
    let text = "record -q -a -e page-faults -c 1 --by ip,cgroup,process --filter pid==1 --duration 300s \
                -o x.parquet";
    let command = setting.command(Tool::Precise, text);
    let rejected = profiled(setting, rejected, Load::Faults, Tool::Precise, command);
    let rejected = profiled(setting, rejected, Load::Faults, Tool::Bpftrace, script("/pid == 1/ "));

    let loads = [
        ("A cache miss", Load::Memory),
        ("A multiplication", Load::Compute),
        ("A system call", Load::Syscalls),
    ];
    let timers = loads.into_iter().flat_map(|(name, load)| {
        [1000u32, 10_000, 20_000]
            .map(|hertz| timer(setting, &format!("{name}, timer of {} kHz", hertz / 1000), hertz, load))
    });
    [faults, rejected].into_iter().chain(timers).collect()
}

fn slowed(setting: &Rc<Setting>, title: &str, load: Load) -> Question {
    let question = Question::new(title, "ns per operation", "");
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

fn timer(setting: &Rc<Setting>, title: &str, hertz: u32, load: Load) -> Question {
    let contenders = [Tool::Precise, Tool::Perf, Tool::Bpftrace];
    contenders.into_iter().fold(slowed(setting, title, load), |question, tool| {
        profiled(setting, question, load, tool, by_timer(setting, tool, hertz, "--overhead off "))
    })
}

/// Returns the command that samples all CPUs by a timer.
pub fn by_timer(setting: &Setting, tool: Tool, hertz: u32, options: &str) -> Vec<String> {
    match tool {
        Tool::Precise => setting.command(
            tool,
            &format!("record -q -a -e cpu-clock {options}--duration 300s --by ip,cgroup,process -o x.parquet -F {hertz}"),
        ),
        Tool::Bpftrace => {
            let script = format!("profile:hz:{hertz} {{ @[pid, cgroup, reg(\"ip\")] = count(); }}");
            vec!["bpftrace".to_owned(), "-e".to_owned(), script]
        }
        _ => words(&format!("perf record -q -a -e cpu-clock -o perf.data -F {hertz}")),
    }
}
