//! What a timer's sample takes in the interrupt, as the kernel's own trace events see it.
//!
//! How much slower a program becomes is what a user pays, but on a virtual machine the interrupt
//! itself is nine tenths of that, and differs from second to second by more than the profilers do.
//! Between the two events is only what a profiler asked for. They are written to a buffer of
//! tracefs: an eBPF program that looks at the clock would warm up what the eBPF programs need.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};

use super::question::Question;
use super::running::Running;
use super::setting::Setting;
use super::slowdown::{each_timer, elsewhere};
use super::tool::Tool;
use super::work::{Load, NAME};

/// Where tracefs is mounted.
const TRACEFS: &str = "/sys/kernel/tracing";
/// The function of the timers of perf events.
const FUNCTION: &str = "perf_swevent_hrtimer";
/// Room for 100,000 events of a CPU and more.
const KILOBYTES: &str = "16384";
const ENTRY: &str = "hrtimer_expire_entry";
const EXIT: &str = "hrtimer_expire_exit";
const NOTE: &str = "\
    Where the program is interrupted: from the kernel's trace event `timer:hrtimer_expire_entry` of the \
    function `perf_swevent_hrtimer` to `timer:hrtimer_expire_exit`, which includes what it takes to write \
    an event, and nothing of the interrupt itself. The profiler itself runs on another CPU.";

/// Returns the questions of this chapter.
pub fn questions(setting: &Rc<Setting>) -> Vec<Question> {
    each_timer(NOTE, |title, note, hertz, load| question(setting, &title, note, hertz, load))
}

fn question(setting: &Rc<Setting>, title: &str, note: &'static str, hertz: u32, load: Load) -> Question {
    let contenders = [Tool::EmptyProgram, Tool::Precise, Tool::Perf, Tool::Bpftrace];
    let question = Question::new(format!("{title}, in the interrupt"), "ns per interrupt", note);
    contenders.into_iter().fold(question, |question, tool| {
        let command = vec![elsewhere(setting, tool, hertz)];
        let setting = Rc::clone(setting);
        question.with(tool, command, move |commands| took(&setting, tool, commands, load))
    })
}

/// Returns the mean nanoseconds of the timer's function beside a load.
fn took(setting: &Setting, tool: Tool, commands: &[Vec<String>], load: Load) -> Result<f64> {
    let profiler = Running::start(tool, commands, setting)?;
    let trace = Trace::start()?;
    setting.work.run(load)?;
    let said = trace.stop()?;
    profiler.interrupt()?;
    mean(&said).with_context(|| format!("no timer interrupted {NAME}: is {FUNCTION} another function here?"))
}

/// The trace events of the load's timers, in a buffer of their own.
struct Trace {
    instance: PathBuf,
}

impl Trace {
    /// Starts to write events.
    fn start() -> Result<Self> {
        let symbols = fs::read_to_string("/proc/kallsyms").context("/proc/kallsyms")?;
        let address = symbols.lines().find_map(|line| {
            let mut words = line.split(' ');
            let address = words.next()?;
            (words.nth(1)? == FUNCTION).then_some(address)
        });
        let address = address.with_context(|| format!("this kernel has no function {FUNCTION}"))?;
        let instance = Path::new(TRACEFS).join(format!("instances/precise-bench-{}", std::process::id()));
        fs::create_dir(&instance).with_context(|| {
            format!("{}: is it mounted (`mount -t tracefs tracefs {TRACEFS}`)?", instance.display())
        })?;
        let trace = Self { instance };
        trace.set("buffer_size_kb", KILOBYTES)?;
        let of_load = format!("comm == \"{NAME}\"");
        trace
            .set(&format!("events/timer/{ENTRY}/filter"), &format!("{of_load} && function == 0x{address}"))?;
        trace.set(&format!("events/timer/{EXIT}/filter"), &of_load)?;
        for event in [ENTRY, EXIT] {
            trace.set(&format!("events/timer/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let file = self.instance.join(file);
        fs::write(&file, value).with_context(|| format!("{} = {value}", file.display()))
    }

    /// Stops, and returns the events as text.
    fn stop(self) -> Result<String> {
        self.set("tracing_on", "0")?;
        // The load has this CPU.
        let statistics = fs::read_to_string(self.instance.join("per_cpu/cpu1/stats"))?;
        ensure!(
            statistics.lines().any(|line| line == "overrun: 0"),
            "the buffer of tracefs was too small: {statistics}"
        );
        Ok(fs::read_to_string(self.instance.join("per_cpu/cpu1/trace"))?)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let removed = self.set("events/enable", "0").and_then(|()| Ok(fs::remove_dir(&self.instance)?));
        if let Err(error) = removed {
            precise_tests::say(&format!("{} stays: {error:#}", self.instance.display()));
        }
    }
}

/// Returns the mean time between an entry and the exit after it, in nanoseconds. A line is `load-7
/// [001] d.h1. 12.345678: hrtimer_expire_entry: …`. The time has microseconds only, which the mean
/// of thousands evens out.
fn mean(trace: &str) -> Option<f64> {
    let (mut begun, mut sum, mut number) = (None, 0.0, 0u32);
    for line in trace.lines() {
        let mut fields = line.split(": ");
        let time = fields.next().and_then(|before| before.split(' ').next_back()?.parse::<f64>().ok());
        match fields.next() {
            Some(ENTRY) => begun = time,
            Some(EXIT) => {
                if let (Some(begun), Some(ended)) = (begun.take(), time) {
                    sum += ended - begun;
                    number += 1;
                }
            }
            _ => {}
        }
    }
    (number > 0).then(|| sum * 1e9 / f64::from(number))
}
