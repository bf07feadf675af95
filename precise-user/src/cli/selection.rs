//! The flags of every command that samples: events, processes, periods, and duration.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, ValueEnum};
use precise::error::{ExitClass, Failure};
use precise::kernel::program::ReadPath;
use precise::model::{Precision, parse_cpu_list};
use precise::run::plan::{Plan, PlanBuilder, Target};

use super::{filter::FilterArguments, values};

/// Heading for the choice of events. All commands that sample share these headings of `--help`.
pub const WHAT: &str = "What to sample";
/// Heading for the choice of processes and CPUs.
pub const WHOM: &str = "Whom to sample";
/// Heading for the choice of samples to keep.
pub const FILTER: &str = "Filter";
/// Heading for how samples are grouped, written and shown.
pub const OUTPUT: &str = "Output";
/// Heading for when a run ends and what it may use.
pub const LIMITS: &str = "Limits";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["all_cpus", "pid", "tid"]))]
#[command(group = ArgGroup::new("how-often").args(["count", "freq"]))]
pub struct SelectionArguments {
    /// Sample these events or presets [default: precise cycles, or cpu-clock]
    ///
    /// A preset (loads, mem, c2c, cycles, faults, …) selects the events that answer a question on
    /// this machine. Events are written as in perf: page-faults, cpu/event=0xd1,umask=0x20/p.
    /// `precise list` shows what this machine has.
    #[arg(short, long, value_name = "EVENTS", help_heading = WHAT)]
    event: Vec<String>,
    /// Take one sample every N events
    ///
    /// With -c the period is never changed, so that runs stay comparable, unless --overhead is
    /// given as well. Without -c and -F every event has a default period, which `precise list`
    /// shows.
    #[arg(short, long, value_name = "N", value_parser = values::count, help_heading = WHAT)]
    count: Option<u64>,
    /// Aim for N samples per second per CPU
    ///
    /// The kernel adjusts the period all the time. Samples are then spread evenly over time, not
    /// over events.
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
    /// Needs AMD Zen 4 or later. It saves most interrupts, but rates can no longer be derived from
    /// the samples.
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    l3_miss_only: bool,
    /// Sample all processes on all CPUs (default)
    #[arg(short, long, help_heading = WHOM)]
    all_cpus: bool,
    /// Keep the samples of precise itself
    ///
    /// A run of all processes leaves out the samples of precise and of its helper processes, and
    /// counts them in the ledger as `own`.
    #[arg(long, conflicts_with_all = ["pid", "tid"], help_heading = WHOM, hide_short_help = true)]
    include_self: bool,
    /// Sample these processes and the processes that they start
    #[arg(
        short,
        long,
        value_name = "PIDS",
        value_delimiter = ',',
        value_parser = values::id,
        help_heading = WHOM
    )]
    pid: Vec<u32>,
    /// Sample these threads and the threads that they start
    #[arg(
        short,
        long,
        value_name = "TIDS",
        value_delimiter = ',',
        value_parser = values::id,
        help_heading = WHOM,
        hide_short_help = true
    )]
    tid: Vec<u32>,
    /// Sample only these CPUs, for example 0-3,7
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = WHOM)]
    cpu: Option<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Stop after this time [default: 10s, or the end of COMMAND]
    ///
    /// A run with -p or -t also stops when these and everything that they started have ended.
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = LIMITS)]
    duration: Option<Duration>,
    /// Stop as soon as this file exists
    ///
    /// The run does not start while the file exists. /run/precise/stop has the same effect on every
    /// precise of the machine.
    #[arg(long, value_name = "FILE", help_heading = LIMITS, hide_short_help = true)]
    stop_file: Option<PathBuf>,
    /// How the program reads the kernel's structures; for tests
    #[arg(long, hide = true)]
    read_path: Option<Path>,
    /// Command to run and sample, with its arguments
    ///
    /// Everything from the command on belongs to it, flags too; `--` before it is optional. With
    /// -a, -p or -t, these are sampled instead, and the end of the command ends the run.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
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
    /// Returns the plan that the flags describe. The command adds what happens to the samples.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid on its own.
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
            .include_self(self.include_self)
            .until(self.command.clone())
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
                .cpus(cpus.map_err(|error| Failure::new(ExitClass::Usage, format!("-C {list}: {error}")))?);
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

    /// Returns whether a command is given.
    pub fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    fn target(&self) -> Option<Target> {
        match (&self.command[..], &self.pid[..], &self.tid[..]) {
            (_, [], tids @ [_, ..]) => Some(Target::Threads(tids.to_vec())),
            (_, pids @ [_, ..], _) => Some(Target::Processes(pids.to_vec())),
            (command @ [_, ..], ..) if !self.all_cpus => Some(Target::Command(command.to_vec())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        selection: SelectionArguments,
        #[arg(short = 'g')]
        chains: bool,
    }

    fn parse(line: &str) -> CommandLine {
        CommandLine::try_parse_from(["record"].into_iter().chain(line.split(' '))).unwrap()
    }

    #[test]
    fn everything_from_the_command_on_is_its_own() {
        for (line, command) in [
            ("-c 3 ./program -c 9 --pid", "./program -c 9 --pid"),
            ("-c 3 -- ./program -c 9 --pid", "./program -c 9 --pid"),
            ("-c 3 ./program -- -x", "./program -- -x"),
            ("-c 3 -g ./program", "./program"),
        ] {
            let CommandLine { selection, .. } = parse(line);
            let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(selection.command, command, "{line}");
            assert_eq!((selection.count, selection.pid.len()), (Some(3), 0), "{line}");
            assert_eq!(selection.target(), Some(Target::Command(command)), "{line}");
        }
        let typo = CommandLine::try_parse_from(["record", "--no-such-flag", "./program"]).unwrap_err();
        assert!(typo.to_string().contains("--no-such-flag"), "{typo}");
    }

    #[test]
    fn a_command_ends_the_run_of_what_was_chosen() {
        for (line, target) in [
            ("-a -- sleep 5", None),
            ("-p 1,2 sleep 5", Some(Target::Processes(vec![1, 2]))),
            ("-t 3 -- sleep 5", Some(Target::Threads(vec![3]))),
        ] {
            let CommandLine { selection, .. } = parse(line);
            assert_eq!(selection.target(), target, "{line}");
            assert_eq!(selection.command, ["sleep", "5"], "{line}");
        }
        assert!(CommandLine::try_parse_from(["record", "-a", "-p", "1"]).is_err());
    }
}
