//! The flags that say what to sample, of whom, how often and for how long: the same for every live run.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, ValueEnum};
use precise::error::{Class, Failure};
use precise::kernel::program::ReadPath;
use precise::model::{Precision, parse_cpu_list};
use precise::run::plan::{Plan, PlanBuilder, Target};

use super::{filter::FilterArguments, values};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["all_cpus", "pid", "tid", "command"]))]
#[command(group = ArgGroup::new("how-often").args(["count", "freq"]))]
pub struct SelectionArguments {
    /// Events or presets: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them
    #[arg(short, long, value_name = "EVENTS")]
    event: Vec<String>,
    /// Sample everything; the default
    #[arg(short, long)]
    all_cpus: bool,
    /// Sample these processes, with what they start
    #[arg(short, long, value_name = "PIDS", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Sample these threads, with what they start
    #[arg(short, long, value_name = "TIDS", value_delimiter = ',')]
    tid: Vec<u32>,
    /// Sample on these CPUs only: 0-3,7
    #[arg(short = 'C', long, value_name = "CPUS")]
    cpu: Option<String>,
    /// A sample each so many events
    #[arg(short, long, value_name = "NUMBER", value_parser = values::count)]
    count: Option<u64>,
    /// About so many samples per second and CPU
    #[arg(short = 'F', long, value_name = "HERTZ", value_parser = values::count)]
    freq: Option<u64>,
    /// Of the presets loads, mem and c2c: only loads of at least so many core cycles, by the hardware where it can
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u32).range(1..))]
    ldlat: Option<u32>,
    /// Of the presets loads and l3-miss: let the hardware drop what did not miss the L3 cache (AMD Zen 4 and later);
    /// far fewer interrupts, and no rates
    #[arg(long)]
    l3_miss_only: bool,
    /// How precise the instruction addresses must be
    #[arg(long, default_value = "auto", value_name = "HOW")]
    precise: Precise,
    #[command(flatten)]
    filter: FilterArguments,
    /// End after this long; 10s unless a command is run
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// End when this file is there, and do not begin while it is: beside /run/precise/stop, which ends every precise on the
    /// machine
    #[arg(long, value_name = "FILE")]
    stop_file: Option<PathBuf>,
    /// How the program reads the kernel's structures; for tests
    #[arg(long, hide = true)]
    read_path: Option<Path>,
    /// A command to sample from its start to its end
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Precise {
    /// The most that there is; each step down is said
    Auto,
    /// Exact, or fail
    Require,
    /// Not asked for
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Path {
    Direct,
    Probe,
}

impl SelectionArguments {
    /// The run that they describe. What it does with its samples, the command adds.
    ///
    /// # Errors
    ///
    /// When a value makes no sense by itself.
    pub fn plan(&self) -> Result<PlanBuilder, Failure> {
        let mut builder = Plan::builder()
            .precision(match self.precise {
                Precise::Auto => Precision::Auto,
                Precise::Require => Precision::Require,
                Precise::Off => Precision::Off,
            })
            .l3_miss_only(self.l3_miss_only)
            .filter(self.filter.flags()?)
            .cgroups(self.filter.cgroups())
            .command_line(std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect())
            .gives_up_rights(true);
        for event in &self.event {
            builder = builder.event(event);
        }
        if let Some(cycles) = self.ldlat {
            builder = builder.latency_threshold(cycles);
        }
        if let Some(list) = &self.cpu {
            let cpus = parse_cpu_list(list);
            builder = builder
                .cpus(cpus.map_err(|error| Failure::new(Class::Usage, format!("-C {list}: {error}")))?);
        }
        builder = match (self.count, self.freq) {
            (Some(period), _) => builder.period(period),
            (_, Some(frequency)) => builder.frequency(frequency),
            _ => builder,
        };
        if let Some(target) = self.target() {
            builder = builder.target(target);
        }
        if let Some(duration) = self.duration {
            builder = builder.duration(duration);
        }
        if let Some(file) = &self.stop_file {
            builder = builder.stop_file(file.clone());
        }
        Ok(match self.read_path {
            Some(Path::Direct) => builder.read_path(ReadPath::Direct),
            Some(Path::Probe) => builder.read_path(ReadPath::Probe),
            None => builder,
        })
    }

    fn target(&self) -> Option<Target> {
        match (&self.command[..], &self.pid[..], &self.tid[..]) {
            ([], [], []) => None,
            ([], [], tids) => Some(Target::Threads(tids.to_vec())),
            ([], pids, _) => Some(Target::Processes(pids.to_vec())),
            (command, ..) => Some(Target::Command(command.to_vec())),
        }
    }
}
