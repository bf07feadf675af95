//! How what precise takes grows with what runs on the machine, and with what it is asked.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise_tests::cgroup::Cgroup;
use precise_tests::kill_on_drop::KillOnDrop;

use super::commands::{Filter, by_fault};
use super::growth::Growth;
use super::part::Part;
use super::running::Running;
use super::setting::Setting;
use super::slowdown::under;
use super::tool::Tool;
use super::work::Load;

const SPREAD: [u64; 3] = [10, 100, 1_000];
/// Pages that all processes together touch in a second.
const PAGES: u64 = 20_000;
/// The same, where the number of samples grows.
const SAMPLES: [u64; 3] = [1_000, 10_000, 100_000];
/// How many processes touch them.
const FEW: u64 = 10;
const MAPPINGS: [u64; 3] = [600, 6_000, 60_000];
/// The filter has sixteen slots.
const SLOTS: [u64; 3] = [1, 4, 16];
/// How long CPU time is measured, and how long the run lasts before that.
const WHILE: Duration = Duration::from_secs(10);
const SETTLED: Duration = Duration::from_secs(3);

/// Returns the parts of this chapter.
///
/// # Errors
///
/// Returns no error.
#[expect(clippy::unnecessary_wraps, reason = "chapters have one type")]
pub fn parts(setting: &Rc<Setting>) -> Result<Vec<Part>> {
    let note = "CPU time of the recorder, in ten seconds. All processes together touch 20,000 pages a second, \
                whatever their number; each page fault is sampled, by instruction and by what is counted.";
    let spread = Growth::new(
        "Processes, and cgroups with one process each",
        "ms per second",
        note,
        "processes",
        &SPREAD,
    );
    let spread =
        [("processes", false), ("cgroups", true)].into_iter().fold(spread, |growth, (name, cgroups)| {
            let setting = Rc::clone(setting);
            growth.with(name, move |at| recorder_of(&setting, Tool::Precise, SPREAD[at], PAGES, cgroups))
        });

    let note = "CPU time of the recorder, in ten seconds. Ten processes together touch this number of pages a \
                second; each page fault is sampled, precise's by instruction and process.";
    let samples = Growth::new("Samples", "ms per second", note, "samples a second", &SAMPLES);
    let recorders = [Tool::Precise, Tool::Perf].into_iter().filter(|tool| tool.is_installed());
    let samples = recorders.fold(samples, |growth, tool| {
        let setting = Rc::clone(setting);
        growth.with(tool.name(), move |at| recorder_of(&setting, tool, FEW, SAMPLES[at], false))
    });

    let note = "CPU time of a run of a second, from its start to its end, of a process that has this number \
                of mappings of its program.";
    let mappings = Growth::new("Mappings of a process", "ms", note, "mappings", &MAPPINGS);
    let shared = Rc::clone(setting);
    let mappings = mappings.with("precise", move |at| mapped(&shared, MAPPINGS[at]));

    let note = "A page fault that the last of the terms rejects, and the others let pass.";
    let slots = Growth::new("Terms of a filter", "ns per operation", note, "terms", &SLOTS);
    let shared = Rc::clone(setting);
    let slots = slots.with("precise", move |at| rejected(&shared, SLOTS[at]));
    Ok([samples, spread, mappings, slots].map(Part::Growth).into())
}

/// Returns the milliseconds of CPU time that the recorder takes in a second.
fn recorder_of(setting: &Setting, tool: Tool, processes: u64, pages: u64, in_cgroups: bool) -> Result<f64> {
    let named = |number| Cgroup::new(&format!("growth-{number}"));
    let cgroups: Vec<Cgroup> =
        (0..if in_cgroups { processes } else { 0 }).map(named).collect::<Result<_>>()?;
    let folders = cgroups.iter().map(|cgroup| cgroup.folder().as_os_str().to_owned());
    let pages = (pages / processes).to_string();
    let numbers = ["spread".to_owned(), processes.to_string(), pages].map(OsString::from);
    let load = idle(Command::new(setting.work.crowd()).args(numbers.into_iter().chain(folders)))?;
    let command = match tool {
        Tool::Precise => {
            let by = if in_cgroups { "cgroup" } else { "process" };
            let text = format!(
                "record -q -a -e page-faults -c 1 --filter comm==crowd --by ip,{by} --epoch 1s --duration \
                 300s -o growth.parquet"
            );
            setting.command(tool, &text)
        }
        _ => by_fault(setting, tool, 1, Filter::None),
    };
    let running = Running::start(tool, &[command], setting)?;
    let spent = running.cpu_time_after(SETTLED, WHILE)?;
    drop(load);
    for cgroup in cgroups {
        cgroup.remove()?;
    }
    Ok(spent)
}

/// Returns the milliseconds of CPU time of a run for a second.
fn mapped(setting: &Setting, mappings: u64) -> Result<f64> {
    let load = idle(Command::new(setting.work.crowd()).args(["mappings", &mappings.to_string()]))?;
    let text = format!("record -q -e page-faults -c 1 -p {} --duration 1s -o growth.parquet", load.id());
    Ok(setting.run(&setting.command(Tool::Precise, &text))?.cpu_seconds * 1e3)
}

/// Returns the nanoseconds of a page fault that the last term of a filter rejects.
fn rejected(setting: &Setting, terms: u64) -> Result<f64> {
    let passing = (2..=terms).map(|pid| format!("pid!={pid}&&")).collect::<String>();
    let text = format!(
        "record -q -a -e page-faults -c 1 --by ip,cgroup,process --filter {passing}pid==1 --duration 300s \
         -o growth.parquet"
    );
    under(setting, Tool::Precise, &[setting.command(Tool::Precise, &text)], Load::Faults)
}

/// Starts a program that is dropped with its result, and waits until it says that it is ready.
fn idle(command: &mut Command) -> Result<KillOnDrop> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take().context("a pipe")?;
    let child = KillOnDrop::from(child);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    ensure!(line == "ready\n", "the load printed {line:?}");
    Ok(child)
}
