//! Reading recordings of perf.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use precise::model::digits::thousands;
use precise_tests::large_recording::{self, Addresses, Size};

use super::part::Part;
use super::question::{Question, words};
use super::setting::Setting;
use super::tool::Tool;

/// The size of the recording of loads at few addresses.
const FEW: Size = Size::Bytes(1 << 30);
/// The size of the recording of loads at different addresses. For one of 1 GB, perf 6.1 takes 11 GB
/// of memory and four minutes.
const DIFFERENT: Size = Size::Samples(3_000_000);

/// What perf is asked of a recording, with precise's way to the same answer.
struct Asked {
    title: &'static str,
    recording: &'static str,
    precise: &'static [&'static str],
    perf: &'static str,
}

const ASKED: [Asked; 4] = [
    Asked {
        title: "Loads at few addresses",
        recording: "few.data",
        precise: &["import -q -o few.parquet few.data"],
        perf: "script --no-inline -F pid,tid,time,event,period,ip,addr,data_src,weight -i few.data",
    },
    Asked {
        title: "Loads, each at another address",
        recording: "different.data",
        precise: &["import -q -o different.parquet different.data", "mem -i different.parquet"],
        perf: "report --mem-mode --stdio -i different.data",
    },
    Asked {
        title: "Shared lines of loads, each at another address",
        recording: "different.data",
        precise: &["import -q -o different.parquet different.data", "c2c -i different.parquet"],
        perf: "c2c report --stdio -i different.data",
    },
    Asked {
        title: "Call chains in copied stacks",
        recording: "stacks.data",
        precise: &["import -q -o stacks.parquet stacks.data", "report -g -i stacks.parquet"],
        perf: "report --no-inline --stdio -i stacks.data",
    },
];

/// Whose stacks perf copies: Python, without frame pointers, for some seconds.
const STACKS: &str = "\
import json, time
def tree(depth):
    return [tree(depth - 1) for _ in range(3)] if depth else 'leaf'
end = time.time() + 15
while time.time() < end:
    json.loads(json.dumps(tree(7)))
";

/// Returns the questions of this chapter.
///
/// # Errors
///
/// Returns an error if a recording cannot be made.
pub fn parts(setting: &Rc<Setting>) -> Result<Vec<Part>> {
    if !Tool::Perf.is_installed() {
        return Ok(vec![Part::Text("perf is not installed, so there is nobody to compare with.\n\n".into())]);
    }
    let file = |name: &str| setting.folder.join(name);
    large_recording::write(&file("few.data"), FEW, Addresses::Real)?;
    large_recording::write(&file("different.data"), DIFFERENT, Addresses::Distinct(u64::MAX))?;
    let mut record =
        words("perf record -q --call-graph dwarf -e cpu-clock:u -F 9973 -m 4096 -o stacks.data --");
    record.extend(["python3", "-c", STACKS].map(str::to_owned));
    setting.run(&record)?;
    let mut parts = Vec::new();
    for asked in &ASKED {
        let megabytes = fs::metadata(file(asked.recording))?.len() / 1_000_000;
        let title = format!("{}: {} MB", asked.title, thousands(megabytes));
        parts.extend(question(setting, asked, &title).map(Part::Question));
    }
    Ok(parts)
}

/// Returns the questions about CPU time and memory, which are both answered when the first is
/// asked.
fn question(setting: &Rc<Setting>, asked: &Asked, title: &str) -> [Question; 2] {
    let note = "CPU time until the answer is printed. The recordings are read from the page cache.";
    let mut time = Question::new(title, "s", note);
    let mut memory = Question::new("The same: memory", "MB", "That of the largest process.");
    let precise = asked.precise.iter().map(|text| setting.command(Tool::Precise, text)).collect();
    let perf = vec![words(&format!("perf {}", asked.perf))];
    let newer = vec![setting.command(Tool::NewerPerf, asked.perf)];
    let commands = [(Tool::Precise, precise), (Tool::Perf, perf), (Tool::NewerPerf, newer)];
    for (tool, commands) in commands {
        let peaks = Rc::new(RefCell::new(VecDeque::new()));
        let (setting, seen) = (Rc::clone(setting), Rc::clone(&peaks));
        time = time.with(tool, commands, move |commands| {
            let (mut seconds, mut peak) = (0.0, 0);
            for command in commands {
                let usage = setting.run(command)?;
                seconds += usage.cpu_seconds;
                peak = peak.max(usage.peak_bytes);
            }
            seen.borrow_mut().push_back(peak as f64 / 1e6);
            Ok(seconds)
        });
        memory = memory.with(tool, Vec::new(), move |_commands| {
            peaks.borrow_mut().pop_front().context("CPU time was not asked before")
        });
    }
    [time, memory]
}
