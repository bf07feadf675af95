//! Flags that every live run takes: events, processes, periods, duration.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, ValueEnum};
use precise::error::{Class, Failure};
use precise::kernel::event::Rate;
use precise::kernel::program::ReadPath;
use precise::machine::{MachineInfo, Root};
use precise::model::{Precision, Preset, parse_cpu_list};
use precise::pmu;
use precise::pmu::{EncodeError, EventRequest, Pmus};
use precise::run::kill_switch::KillSwitch;
use precise::run::plan::{Plan, Target};
use precise::run::{event_filter, opening};

use super::{filter::FilterArguments, values};

/// Headings of `--help`, shared by all commands that sample.
pub const WHAT: &str = "What to sample";
/// Processes and CPUs.
pub const WHOM: &str = "Whom to sample";
/// Which samples to keep.
pub const FILTER: &str = "Filter";
/// How samples are grouped, kept and shown.
pub const OUTPUT: &str = "Output";
/// When a run ends, and what it may use.
pub const LIMITS: &str = "Limits";

/// Length of a run for which nothing else sets an end.
const DURATION: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["all_cpus", "pid", "tid", "command"]))]
#[command(group = ArgGroup::new("how-often").args(["count", "freq"]))]
pub struct SelectionArguments {
    /// Sample these events or presets [default: precise cycles, or cpu-clock]
    ///
    /// A preset (loads, mem, c2c, cycles, faults, …) selects the events that answer a question on this machine. Events are
    /// written as in perf: page-faults, cpu/event=0xd1,umask=0x20/p. `precise list` shows what this machine has.
    #[arg(short, long, value_name = "EVENTS", help_heading = WHAT)]
    event: Vec<String>,
    /// Take one sample every N events
    ///
    /// With -c the period is never changed, so that runs stay comparable, unless --overhead is given as well. Without -c and
    /// -F every event has a default period, which `precise list` shows.
    #[arg(short, long, value_name = "N", value_parser = values::count, help_heading = WHAT)]
    count: Option<u64>,
    /// Aim for N samples per second per CPU
    ///
    /// The kernel adjusts the period all the time. Samples are then spread evenly over time, not over events.
    #[arg(short = 'F', long, value_name = "N", value_parser = values::count, help_heading = WHAT)]
    freq: Option<u64>,
    /// Set the precision
    ///
    /// How exact the instruction addresses of samples must be.
    #[arg(long, default_value = "auto", value_name = "HOW", help_heading = WHAT)]
    precise: Precise,
    /// Sample only loads of at least N core cycles (presets loads, mem, c2c)
    ///
    /// The hardware filters where it can, which saves interrupts.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = WHAT,
        hide_short_help = true
    )]
    ldlat: Option<u32>,
    /// Let the hardware drop loads that hit the L3 cache (presets loads, l3-miss)
    ///
    /// Needs AMD Zen 4 or later. It saves most interrupts, but rates can no longer be derived from the samples.
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    l3_miss_only: bool,
    /// Sample all processes on all CPUs (default)
    #[arg(short, long, help_heading = WHOM)]
    all_cpus: bool,
    /// Sample these processes and the processes that they start
    #[arg(short, long, value_name = "PIDS", value_delimiter = ',', help_heading = WHOM)]
    pid: Vec<u32>,
    /// Sample these threads and the threads that they start
    #[arg(short, long, value_name = "TIDS", value_delimiter = ',', help_heading = WHOM, hide_short_help = true)]
    tid: Vec<u32>,
    /// Sample only these CPUs, for example 0-3,7
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = WHOM)]
    cpu: Option<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Stop after this time [default: 10s, or the end of COMMAND]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = LIMITS)]
    duration: Option<Duration>,
    /// Stop as soon as this file exists
    ///
    /// The run does not start while the file exists. /run/precise/stop has the same effect on every precise of the machine.
    #[arg(long, value_name = "FILE", help_heading = LIMITS, hide_short_help = true)]
    stop_file: Option<PathBuf>,
    /// How the program reads the kernel's structures; for tests
    #[arg(long, hide = true)]
    read_path: Option<Path>,
    /// Command to run and sample, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Precise {
    /// As precise as the hardware allows; every downgrade is reported
    Auto,
    /// Precise, or fail
    Require,
    /// Do not ask for precision
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Path {
    Direct,
    Probe,
}

impl SelectionArguments {
    /// Whether a preset is among the events.
    pub fn asks_for(&self, preset: Preset) -> bool {
        let mut names = self.event.iter().flat_map(|list| pmu::split_list(list));
        names.any(|name| Preset::parse(name) == Some(preset))
    }

    /// Whether a fixed period was asked for (`-c`).
    pub fn has_period(&self) -> bool {
        self.count.is_some()
    }

    /// The length that was asked for.
    pub fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// The run that they describe. What it does with its samples, the command adds.
    ///
    /// # Errors
    ///
    /// When they make no sense, or this machine has no such event.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let kill_switch = KillSwitch::and(self.stop_file.clone());
        // Before anything else: also what would be refused opens events to find out.
        kill_switch.allow()?;
        let machine = MachineInfo::read(&Root::default());
        let precision = match self.precise {
            Precise::Auto => Precision::Auto,
            Precise::Require => Precision::Require,
            Precise::Off => Precision::Off,
        };
        let requests = requests(self, precision)?;
        let cpus = cpus(self, &machine)?;
        let target = if !self.command.is_empty() {
            Target::Command(self.command.clone())
        } else if !self.pid.is_empty() {
            Target::Processes(self.pid.clone())
        } else if !self.tid.is_empty() {
            Target::Threads(self.tid.clone())
        } else {
            Target::All
        };
        let duration = match (&target, self.duration) {
            (Target::Command(_), duration) => duration,
            (_, duration) => Some(duration.unwrap_or(DURATION)),
        };
        let cgroups = self.filter.cgroups()?;
        let expression = self.filter.expression(&cgroups)?;
        let filter_text = expression.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut events = Vec::new();
        for request in requests {
            let rate = match (self.count, self.freq) {
                (Some(period), _) => Rate::Period(period),
                (_, Some(frequency)) => Rate::Frequency(frequency),
                _ => Rate::Period(request.default_period),
            };
            events.push(event_filter::plan(expression.as_ref(), request, rate, &machine, &cgroups.watch)?);
        }
        Ok(Plan {
            events,
            target,
            cpus,
            precision,
            dimensions: Vec::new(),
            address_granule: 1,
            promoted_lines: None,
            filter_text,
            watch: cgroups.watch,
            epoch: Duration::from_secs(1),
            duration,
            table_cells: 0,
            stacks: 0,
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            read_path: self.read_path.map(|path| match path {
                Path::Direct => ReadPath::Direct,
                Path::Probe => ReadPath::Probe,
            }),
            stream: None,
            budget: None,
            kill_switch,
            gives_up_rights: true,
        })
    }
}

/// The events that were asked for, or what this machine does best.
fn requests(arguments: &SelectionArguments, precision: Precision) -> Result<Vec<EventRequest>, Failure> {
    let pmus = Pmus::read(&Root::default());
    let unsupported = |error: &dyn std::fmt::Display| {
        Failure::new(Class::Unsupported, error.to_string())
            .advise("`precise list` shows what this machine supports.")
    };
    if arguments.event.is_empty() {
        if arguments.ldlat.is_some() || arguments.l3_miss_only {
            return Err(no_preset("cycles"));
        }
        let candidates =
            pmu::preset::default_candidates(&pmus, precision).map_err(|error| unsupported(&error))?;
        return opening::choose(candidates, 0, precision);
    }
    let options = pmu::Options { ldlat: arguments.ldlat, l3_miss_only: arguments.l3_miss_only };
    let mut requests = Vec::new();
    for text in arguments.event.iter().flat_map(|list| pmu::split_list(list)) {
        // `cycles` is the event: users know it from perf, and it means the same. Other names that are both, such as
        // branches, are what `precise list` shows.
        match Preset::parse(text) {
            Some(preset) if preset != Preset::Cycles => requests.extend(
                pmu::preset::events_for(preset, &pmus, &options).map_err(|error| unsupported(&error))?,
            ),
            _ if let Some((preset, modifiers)) = pmu::modified::parse(text) => {
                let events = pmu::modified::events(preset, modifiers, &pmus, &options);
                requests.extend(events.map_err(|error| match error {
                    EncodeError::Unsupported { .. } => unsupported(&error),
                    _ => Failure::new(Class::Usage, error.to_string()),
                })?);
            }
            _ if options != pmu::Options::default() => return Err(no_preset(text)),
            _ => requests.extend(
                pmu::parse(text, &pmus).map_err(|error| Failure::new(Class::Usage, error.to_string()))?,
            ),
        }
    }
    Ok(requests)
}

fn no_preset(text: &str) -> Failure {
    Failure::new(
        Class::Usage,
        format!("--ldlat and --l3-miss-only apply only to presets, and '{text}' is not a preset"),
    )
    .advise("Write them as terms of the event instead: cpu/mem-loads,ldlat=30/, ibs_op/l3missonly=1/.")
}

fn cpus(arguments: &SelectionArguments, machine: &MachineInfo) -> Result<Vec<u32>, Failure> {
    let Some(list) = &arguments.cpu else { return Ok(machine.online.clone()) };
    let wanted =
        parse_cpu_list(list).map_err(|error| Failure::new(Class::Usage, format!("-C {list}: {error}")))?;
    let missing: Vec<String> =
        wanted.iter().filter(|cpu| !machine.online.contains(cpu)).map(u32::to_string).collect();
    if wanted.is_empty() || !missing.is_empty() {
        return Err(Failure::new(Class::Usage, format!("CPU {} is not online", missing.join(", ")))
            .advise(format!("Online CPUs: {}.", precise::model::format_cpu_list(&machine.online))));
    }
    Ok(wanted)
}
