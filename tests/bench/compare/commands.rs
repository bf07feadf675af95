//! The commands with which all CPUs are sampled.

use super::question::words;
use super::setting::Setting;
use super::tool::Tool;

/// Which samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    None,
    /// None of them.
    RejectsAll,
}

/// Returns the command that samples one of `period` page faults.
pub fn by_fault(setting: &Setting, tool: Tool, period: u32, filter: Filter) -> Vec<String> {
    match tool {
        Tool::Precise => {
            let text = format!(
                "record -q -a -e page-faults -c {period} --by ip,cgroup,process --duration 300s -o x.parquet"
            );
            filtered(setting.command(tool, &text), filter)
        }
        Tool::Bpftrace | Tool::EmptyProgram => {
            script(tool, &format!("software:page-faults:{period}"), filter)
        }
        _ => words(&format!("perf record -q -a -e page-faults -c {period} -o perf.data")),
    }
}

/// Returns the command that samples by a timer.
pub fn by_timer(setting: &Setting, tool: Tool, hertz: u32, filter: Filter, options: &str) -> Vec<String> {
    match tool {
        Tool::Precise => {
            let text = format!(
                "record -q -a -e cpu-clock {options}--duration 300s --by ip,cgroup,process -o x.parquet -F \
                 {hertz}"
            );
            filtered(setting.command(tool, &text), filter)
        }
        Tool::Bpftrace | Tool::EmptyProgram => script(tool, &format!("profile:hz:{hertz}"), filter),
        _ => words(&format!("perf record -q -a -e cpu-clock -o perf.data -F {hertz}")),
    }
}

/// Returns the command that counts the samples of a timer by CPU, so that nothing has to be named.
/// perf has none: it writes what it always does.
pub fn by_timer_and_cpu(setting: &Setting, tool: Tool, hertz: u32) -> Vec<String> {
    match tool {
        Tool::Precise => {
            let text = format!("record -q -a -e cpu-clock --duration 300s --by cpu -o x.parquet -F {hertz}");
            setting.command(tool, &text)
        }
        Tool::Bpftrace => ["bpftrace", "-e", &format!("profile:hz:{hertz} {{ @[cpu] = count(); }}")]
            .map(str::to_owned)
            .to_vec(),
        _ => by_timer(setting, tool, hertz, Filter::None, ""),
    }
}

fn filtered(mut command: Vec<String>, filter: Filter) -> Vec<String> {
    if filter == Filter::RejectsAll {
        command.extend(words("--filter pid==1"));
    }
    command
}

fn script(tool: Tool, probe: &str, filter: Filter) -> Vec<String> {
    let script = match (tool, filter) {
        (Tool::EmptyProgram, _) => format!("{probe} {{ }}"),
        (_, Filter::None) => format!("{probe} {{ @[pid, cgroup, reg(\"ip\")] = count(); }}"),
        (_, Filter::RejectsAll) => format!("{probe} /pid == 1/ {{ @[pid, cgroup, reg(\"ip\")] = count(); }}"),
    };
    ["bpftrace", "-e", &script].map(str::to_owned).to_vec()
}
