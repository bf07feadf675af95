//! What a profiler itself takes: CPU time, memory, and the time until it answers.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use precise_tests::cgroup;

use super::commands::{Filter, by_fault, by_timer, by_timer_and_cpu};
use super::question::{Question, words};
use super::running::Running;
use super::setting::Setting;
use super::tool::Tool;
use super::work::Load;

/// How long CPU time is measured.
const WHILE: Duration = Duration::from_secs(10);
/// Profilers read what runs already before that.
const SETTLED: Duration = Duration::from_secs(2);
const HERTZ: u32 = 999;
const PROFILERS: [Tool; 3] = [Tool::Precise, Tool::Perf, Tool::Bpftrace];
/// Those of them, and a monitor that names processes and cgroups all the time, as precise does.
const MONITORS: [Tool; 4] = [Tool::Precise, Tool::Perf, Tool::Bpftrace, Tool::Below];
/// The configuration of the monitor, in the folder where all commands run.
const BELOW_CONFIG: &str = "below.conf";

const NOTE: &str = "\
    User space and what the kernel does for it, in ten seconds. They include the debug information that \
    precise reads once for each file. They do not include the samples themselves, and not what perf does at \
    its end. below, where it is asked, takes no samples: every five seconds, it writes what the kernel \
    counts of each process and cgroup.";

/// What else the machine does.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    Busy(Load),
    Starts(u32),
}

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    let cpu = [
        ("CPU time of the profiler, timer of 999 Hz, nothing beside it", Beside::Nothing),
        ("CPU time of the profiler, timer of 999 Hz, all CPUs busy", Beside::Busy(Load::Compute)),
        ("CPU time of the profiler, timer of 999 Hz, 100 processes start each second", Beside::Starts(100)),
    ];
    let named = |tool| match tool {
        Tool::Below => words(&format!("below --config {BELOW_CONFIG} record")),
        _ => by_timer(setting, tool, HERTZ, Filter::None, ""),
    };
    let asked = |(title, beside)| cpu_time(setting, title, beside, &MONITORS, named);
    let mut all: Vec<Question> = cpu.map(asked).into();
    let title = "CPU time of the profiler, the same, counting by CPU: without names";
    let unnamed = |tool| by_timer_and_cpu(setting, tool, HERTZ);
    all.push(cpu_time(setting, title, Beside::Starts(100), &PROFILERS, unnamed));
    let title = "CPU time of the profiler, each page fault sampled, all CPUs busy with them";
    let each_fault = |tool| by_fault(setting, tool, 1, Filter::None);
    all.push(cpu_time(setting, title, Beside::Busy(Load::Faults), &PROFILERS, each_fault));
    all.extend([whole(setting), memory(setting), start(setting), answer(setting)]);
    all
}

fn cpu_time(
    setting: &Rc<Setting>,
    title: &str,
    beside: Beside,
    contenders: &[Tool],
    command: impl Fn(Tool) -> Vec<String>,
) -> Question {
    let question = Question::new(title, "ms per second", NOTE);
    contenders.iter().fold(question, |question, &tool| {
        let (command, setting) = (command(tool), Rc::clone(setting));
        question.with(tool, vec![command], move |commands| {
            if tool == Tool::Below {
                configure_below(&setting)?;
            }
            let running = Running::start(tool, commands, &setting)?;
            let (_busy, _starts) = match beside {
                Beside::Nothing => (Vec::new(), None),
                Beside::Busy(load) => (setting.work.busy(load)?, None),
                Beside::Starts(rate) => (Vec::new(), Some(setting.work.starting(rate)?)),
            };
            running.cpu_time_after(SETTLED, WHILE)
        })
    })
}

/// Tells below to write into the folder, and where cgroups are.
fn configure_below(setting: &Setting) -> Result<()> {
    let (folder, cgroups) = (setting.folder.display(), cgroup::mount_point()?);
    let lines =
        [("log_dir", ""), ("store_dir", "/store")].map(|(name, at)| format!("{name} = '{folder}{at}'\n"));
    let cgroups = format!("cgroup_root = '{}'\n", cgroups.display());
    Ok(std::fs::write(setting.folder.join(BELOW_CONFIG), lines.concat() + &cgroups)?)
}

fn whole(setting: &Rc<Setting>) -> Question {
    let note = "From the start of the profiler to its answer, while 100 processes start each second. precise and \
                bpftrace print their answer when they end; perf's is that of `perf report`.";
    let title = format!("CPU time of a profile of {} s, timer of {HERTZ} Hz", WHILE.as_secs());
    let question = Question::new(title, "ms", note);
    let seconds = WHILE.as_secs();
    let script = format!("profile:hz:{HERTZ} {{ @[comm, reg(\"ip\")] = count(); }}");
    let precise = format!("record -q -a -e cpu-clock -F {HERTZ} --duration {seconds}s -o x.parquet");
    let record = format!("perf record -q -a -e cpu-clock -F {HERTZ} -o perf.data -- sleep {seconds}");
    let report = words("perf report --stdio -s comm,sym -i perf.data");
    let sleep = format!("/bin/sleep {seconds}");
    let bpftrace = ["bpftrace", "-e", &script, "-c", &sleep].map(str::to_owned).to_vec();
    let commands = [
        (Tool::Precise, vec![setting.command(Tool::Precise, &precise)]),
        (Tool::Perf, vec![words(&record), report]),
        (Tool::Bpftrace, vec![bpftrace]),
    ];
    commands.into_iter().fold(question, |question, (tool, commands)| {
        let setting = Rc::clone(setting);
        question.with(tool, commands, move |commands| {
            let _load = setting.work.starting(100)?;
            commands.iter().map(|command| Ok(setting.run(command)?.cpu_seconds * 1e3)).sum()
        })
    })
}

fn memory(setting: &Rc<Setting>) -> Question {
    const RATE: u32 = 1000;
    let note = "The largest memory of each process of the profiler, after twelve seconds. The goal of \
                precise is 150 MB at most.";
    let title = "Memory of the profiler while 1,000 processes start each second";
    let question = Question::new(title, "MB", note);
    PROFILERS.into_iter().fold(question, |question, tool| {
        let command = match tool {
            Tool::Precise => {
                setting.command(tool, "record -q -a -e page-faults -c 101 --duration 300s -o x.parquet")
            }
            Tool::Bpftrace => {
                let script = "software:page-faults:101 { @[pid, comm, reg(\"ip\")] = count(); }";
                ["bpftrace", "-e", script].map(str::to_owned).to_vec()
            }
            _ => words("perf record -q -a -e page-faults -c 101 -o perf.data"),
        };
        let setting = Rc::clone(setting);
        question.with(tool, vec![command], move |commands| {
            let running = Running::start(tool, commands, &setting)?;
            let _load = setting.work.starting(RATE)?;
            std::thread::sleep(SETTLED + WHILE);
            let peak = running.peak();
            running.interrupt()?;
            Ok(peak as f64 / 1e6)
        })
    })
}

fn start(setting: &Rc<Setting>) -> Question {
    let note = "A profile of a program that ends at once: all of it is the profiler's start and end.";
    let question = Question::new("From start to end of a profile of `true`", "ms", note).limit(1.0);
    let script = "software:page-faults:1 { @[pid, reg(\"ip\")] = count(); }";
    let commands = [
        (Tool::Precise, setting.command(Tool::Precise, "record -q -e page-faults -c 1 -o x.parquet -- true")),
        (Tool::Perf, words("perf record -q -e page-faults -c 1 -o perf.data -- true")),
        (Tool::Bpftrace, ["bpftrace", "-e", script, "-c", "/bin/true"].map(str::to_owned).to_vec()),
    ];
    commands.into_iter().fold(question, |question, (tool, command)| {
        let setting = Rc::clone(setting);
        question.with(tool, vec![command], move |commands| Ok(setting.seconds(commands)? * 1e3))
    })
}

fn answer(setting: &Rc<Setting>) -> Question {
    let note = "A program takes 1,000,000 page faults, each of which is sampled; then SIGINT. precise and \
                bpftrace print their answer when they end; perf's is that of `perf report`.";
    let question = Question::new("From Ctrl-C to the answer, after 1,000,000 samples", "ms", note);
    let report = words("perf report --stdio -s comm,sym -i perf.data");
    let script = "software:page-faults:1 { @[comm, ustack(1)] = count(); }";
    let bpftrace = ["bpftrace", "-e", script].map(str::to_owned).to_vec();
    let commands = [Tool::Precise, Tool::Perf].map(|tool| (tool, by_fault(setting, tool, 1, Filter::None)));
    commands.into_iter().chain([(Tool::Bpftrace, bpftrace)]).fold(question, |question, (tool, command)| {
        let after = (tool == Tool::Perf).then(|| report.clone());
        let (setting, commands) = (Rc::clone(setting), [command].into_iter().chain(after).collect());
        question.with(tool, commands, move |commands| {
            let running = Running::start(tool, commands, &setting)?;
            setting.work.run_times(Load::Faults, 1_000_000)?;
            let ended = running.interrupt()?.as_secs_f64();
            let reported = setting.seconds(commands.get(1..).unwrap_or_default())?;
            Ok((ended + reported) * 1e3)
        })
    })
}
