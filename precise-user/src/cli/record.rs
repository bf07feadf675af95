//! `precise record`.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::{ArgGroup, Args, ValueEnum};
use precise::{
    capture::{Capture, Dimension, Precision, child, live, opening, plan},
    error::{Class, Failure},
    kernel::{event::Rate, program::ReadPath},
    machine::{MachineInfo, Root, parse_cpu_list},
    pmu::{self, EventRequest, Pmus, Workflow},
    views::heatmap::HeatmapOptions,
};

use super::{
    Outcome, Output,
    filter::{self, FilterArguments},
    heatmap,
    output::say,
    progress::Line,
    report::Shape,
    values,
};

/// Cells per CPU and half: 512 KiB of memory each.
const TABLE_CELLS: u64 = 8192;
/// Length of a run for which nothing else sets an end.
const DURATION: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["all_cpus", "pid", "tid", "command"]))]
#[command(group = ArgGroup::new("how-often").args(["count", "freq"]))]
pub struct RecordArguments {
    /// Events or workflows: cycles, page-faults, cpu/event=0xd1,umask=0x20/p, loads, …; `precise list` shows them
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
    /// How precise the instruction addresses must be
    #[arg(long, default_value = "auto", value_name = "HOW")]
    precise: Precise,
    #[command(flatten)]
    filter: FilterArguments,
    /// Group by these in the kernel: ip, address, cgroup, process, thread, cpu, source, latency
    #[arg(long, value_name = "DIMENSIONS", value_delimiter = ',')]
    by: Vec<String>,
    /// Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "64")]
    granule: u64,
    /// Read the table this often: the time axis
    #[arg(long, value_name = "TIME", value_parser = values::epoch, default_value = "1s")]
    epoch: Duration,
    /// End after this long; 10s unless a command is run
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// Cells for each CPU; 128 bytes of memory each
    #[arg(long, value_name = "NUMBER", value_parser = values::size, default_value_t = TABLE_CELLS)]
    table_cells: u64,
    /// Keep the capture in this file; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    output: PathBuf,
    /// Draw a heatmap into this file as well: .png or .svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Say nothing but the result
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    shape: Shape,
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

/// Records, keeps, prints.
pub fn run(arguments: &RecordArguments, out: &mut Output) -> Outcome {
    arguments.shape.check()?;
    if let Some(plot) = &arguments.plot {
        heatmap::extension(plot)?;
    }
    let plan = plan(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Class::Failed, format!("the run loop cannot be started: {error}")))?;
    let events: Vec<&str> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
    let line = Line::new(
        &format!("{} of {}", events.join(", "), plan.target.words()),
        plan.duration,
        arguments.quiet,
    );
    let finished = runtime.block_on(live::run(&plan, |progress| line.show(&progress)));
    line.end();
    let live::Finished { capture, command } = finished?;

    // The result first: a capture that cannot be kept is no reason not to show it.
    let to_file = arguments.output != std::path::Path::new("-");
    if to_file {
        arguments.shape.print(&capture, None, out)?;
    }
    capture.write(&arguments.output).map_err(|error| Failure::new(Class::Failed, error.to_string()))?;
    if to_file && !arguments.quiet {
        say(&format!("kept the capture in {}", arguments.output.display()));
    }
    if let Some(plot) = &arguments.plot {
        draw(&capture, plot, arguments.quiet)?;
    }
    let seen: u64 = capture.meta.events.iter().map(|event| event.ledger.counter("seen")).sum();
    let code = command.map_or(0, child::shell_code);
    // A command that failed explains itself; one that worked without a sample does not.
    if seen == 0 && code == 0 {
        return Err(Failure::new(
            Class::NoSamples,
            "not one sample arrived: the event did not happen, or cannot sample here",
        )
        .advise("Try a shorter period (-c), a longer run, or another event (`precise list`)."));
    }
    Ok(ExitCode::from(code))
}

fn draw(capture: &Capture, plot: &std::path::Path, quiet: bool) -> Result<(), Failure> {
    match heatmap::draw(capture, &HeatmapOptions::default(), 1200, plot) {
        // Nothing to draw is no failure of the run: the ledger says where the samples went.
        Err(failure) if failure.class == Class::NoSamples => say(&failure.what),
        other => {
            other?;
            if !quiet {
                say(&format!("drew {}", plot.display()));
            }
        }
    }
    Ok(())
}

fn plan(arguments: &RecordArguments) -> Result<plan::Plan, Failure> {
    let machine = MachineInfo::read(&Root::default());
    let precision = match arguments.precise {
        Precise::Auto => Precision::Auto,
        Precise::Require => Precision::Require,
        Precise::Off => Precision::Off,
    };
    let requests = requests(arguments, precision)?;
    let dimensions = dimensions(arguments, &requests)?;
    if !arguments.granule.is_power_of_two() {
        return Err(Failure::new(
            Class::Usage,
            format!("--granule {} is no power of two", arguments.granule),
        ));
    }
    let table_cells =
        usize::try_from(arguments.table_cells).ok().filter(|cells| *cells <= 1 << 22).ok_or_else(|| {
            Failure::new(Class::Usage, "--table-cells is more than 4M: half a gigabyte for each CPU")
        })?;
    let cpus = cpus(arguments, &machine)?;
    let target = if !arguments.command.is_empty() {
        plan::Target::Command(arguments.command.clone())
    } else if !arguments.pid.is_empty() {
        plan::Target::Processes(arguments.pid.clone())
    } else if !arguments.tid.is_empty() {
        plan::Target::Threads(arguments.tid.clone())
    } else {
        plan::Target::All
    };
    let duration = match (&target, arguments.duration) {
        (plan::Target::Command(_), duration) => duration,
        (_, duration) => Some(duration.unwrap_or(DURATION)),
    };
    let mut events = Vec::new();
    let expression = arguments.filter.expression()?;
    let filter_text = expression.as_ref().map(ToString::to_string).unwrap_or_default();
    for request in requests {
        let rate = match (arguments.count, arguments.freq) {
            (Some(period), _) => Rate::Period(period),
            (_, Some(frequency)) => Rate::Frequency(frequency),
            _ => Rate::Period(request.default_period),
        };
        let filter = filter::compile(expression.as_ref(), &request, &machine)?;
        events.push(plan::PlannedEvent { request, rate, filter });
    }
    Ok(plan::Plan {
        events,
        target,
        cpus,
        precision,
        dimensions,
        address_granule: arguments.granule,
        filter_text,
        epoch: arguments.epoch,
        duration,
        table_cells,
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        read_path: arguments.read_path.map(|path| match path {
            Path::Direct => ReadPath::Direct,
            Path::Probe => ReadPath::Probe,
        }),
    })
}

/// The events that were asked for, or what this machine does best.
fn requests(arguments: &RecordArguments, precision: Precision) -> Result<Vec<EventRequest>, Failure> {
    let pmus = Pmus::read(&Root::default());
    let unsupported = |error: &dyn std::fmt::Display| {
        Failure::new(Class::Unsupported, error.to_string()).advise("See what there is with `precise list`.")
    };
    if arguments.event.is_empty() {
        let candidates =
            pmu::workflow::default_candidates(&pmus, precision).map_err(|error| unsupported(&error))?;
        return opening::choose(candidates, 0, precision);
    }
    let mut requests = Vec::new();
    for text in &arguments.event {
        // A name that is a workflow and an event (`cycles`) is the event: users know it from perf.
        match (pmu::parse_list(text, &pmus), Workflow::parse(text)) {
            (Ok(parsed), _) => requests.extend(parsed),
            (Err(_), Some(workflow)) => requests.extend(
                pmu::workflow::events_for(workflow, &pmus, &pmu::Options::default())
                    .map_err(|error| unsupported(&error))?,
            ),
            (Err(error), None) => return Err(Failure::new(Class::Usage, error.to_string())),
        }
    }
    Ok(requests)
}

/// What to group by: as asked for, or everything that is cheap to know and that the events have.
fn dimensions(arguments: &RecordArguments, requests: &[EventRequest]) -> Result<Vec<Dimension>, Failure> {
    if arguments.by.is_empty() {
        let mut dimensions = vec![Dimension::Ip, Dimension::Cgroup, Dimension::Process];
        if requests.iter().any(|request| request.fields.data_source) {
            dimensions.push(Dimension::Source);
        }
        if requests.iter().any(|request| request.fields.latency) {
            dimensions.push(Dimension::Latency);
        }
        return Ok(dimensions);
    }
    let mut dimensions = Vec::new();
    for word in &arguments.by {
        let dimension = match word.trim() {
            "function" | "line" | "sym" | "symbol" | "module" | "dso" | "srcline" => Some(Dimension::Ip),
            "pid" | "comm" => Some(Dimension::Process),
            "tid" => Some(Dimension::Thread),
            "addr" | "variable" | "region" | "page" | "cacheline" => Some(Dimension::Address),
            "level" | "snoop" | "tlb" | "mem" => Some(Dimension::Source),
            name => Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == name),
        };
        let Some(dimension) = dimension else {
            let all: Vec<_> = Dimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
            return Err(Failure::new(Class::Usage, format!("'{word}' is nothing to group by"))
                .advise(format!("There are: {}.", all.join(", "))));
        };
        if !dimensions.contains(&dimension) {
            dimensions.push(dimension);
        }
    }
    let lacking =
        |has: fn(&precise::capture::Fields) -> bool| !requests.iter().any(|request| has(&request.fields));
    for (dimension, missing, what) in [
        (Dimension::Address, lacking(|fields| fields.address), "data addresses"),
        (Dimension::Latency, lacking(|fields| fields.latency), "latencies"),
        (Dimension::Source, lacking(|fields| fields.data_source), "memory levels"),
    ] {
        if missing && dimensions.contains(&dimension) {
            let names: Vec<_> = requests.iter().map(|request| request.name.as_str()).collect();
            return Err(Failure::new(
                Class::Usage,
                format!("samples of {} have no {what}", names.join(" and ")),
            )
            .advise("`precise list` shows which events have them."));
        }
    }
    Ok(dimensions)
}

fn cpus(arguments: &RecordArguments, machine: &MachineInfo) -> Result<Vec<u32>, Failure> {
    let Some(list) = &arguments.cpu else { return Ok(machine.online.clone()) };
    let wanted =
        parse_cpu_list(list).map_err(|error| Failure::new(Class::Usage, format!("-C {list}: {error}")))?;
    let missing: Vec<String> =
        wanted.iter().filter(|cpu| !machine.online.contains(cpu)).map(u32::to_string).collect();
    if wanted.is_empty() || !missing.is_empty() {
        return Err(Failure::new(
            Class::Usage,
            format!("there is no online CPU {} here", missing.join(", ")),
        )
        .advise(format!("Online are {}.", precise::machine::format_cpu_list(&machine.online))));
    }
    Ok(wanted)
}
