//! The builder of a [`Plan`]: every option with its default.

mod build;
#[cfg(test)]
mod tests;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use precise_filter::FilterFlags;
use precise_model::{Dimension, Precision};

use super::plan::{CallGraph, Plan, Streaming, Target};
use crate::kernel::event::Rate;
use crate::kernel::program::ReadPath;
use crate::machine::Root;
use crate::pmu::{self, EventRequest};

/// Builds a [`Plan`]. Each method documents the default of its option.
///
/// A builder makes the plan of a capture (the default), of a served run ([`Self::series`]) or of a
/// streaming run ([`Self::stream`]).
///
/// ```no_run
/// use std::time::Duration;
///
/// use precise_model::Dimension;
/// use precise_sampling::run::live;
/// use precise_sampling::run::plan::{Plan, Target};
///
/// // Page faults of one process: which code touches which memory, in cache lines, for five seconds.
/// let plan = Plan::builder()
///     .event("page-faults")
///     .period(1)
///     .target(Target::Processes(vec![4711]))
///     .dimensions(vec![Dimension::Ip, Dimension::Address])
///     .duration(Duration::from_secs(5))
///     .build()?;
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// // Opening events needs CAP_PERFMON and CAP_BPF.
/// let finished = runtime.block_on(live::run(&plan, None, |_| {}))?;
/// for row in &finished.kept.read()?.rows {
///     println!("{} samples at {:?}", row.measures.count, row.code);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PlanBuilder {
    names: Vec<String>,
    requests: Option<Vec<EventRequest>>,
    options: pmu::PresetOptions,
    precision: Precision,
    target: Option<Target>,
    until: Vec<OsString>,
    output_apart: bool,
    cpus: Option<Vec<u32>>,
    rate: Option<Rate>,
    filter: FilterFlags,
    cgroups: Vec<String>,
    duration: Option<Duration>,
    stop_file: Option<PathBuf>,
    purpose: Purpose,
    captures: bool,
    dimensions: Option<Vec<Dimension>>,
    call_chains: bool,
    granule: Option<u64>,
    lines: Option<u64>,
    stacks: Option<u64>,
    call_graph: CallGraph,
    unwind_bytes: Option<u64>,
    depth: Option<u32>,
    cells: Option<u64>,
    epoch: Option<Duration>,
    budget: Option<Option<f64>>,
    read_path: Option<ReadPath>,
    command_line: Vec<String>,
    include_self: bool,
    gives_up_rights: bool,
    root: Root,
}

/// What the run does with its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// Aggregates them, for a capture.
    #[default]
    Capture,
    /// Aggregates them, for captures of the last seconds of a run without an end.
    Live,
    /// Aggregates them, for time series without an end.
    Series,
    /// Writes them one by one.
    Stream(Streaming),
}

impl Plan {
    /// Returns a builder. Its default plan samples cycles on all CPUs for ten seconds.
    pub fn builder() -> PlanBuilder {
        PlanBuilder::default()
    }
}

impl PlanBuilder {
    /// Adds an event or a preset, or several separated by commas: `cycles`, `loads:u`,
    /// `cpu/event=0xd1,umask=0x20/p`. `cycles` is the event, as in perf; any other name of both an
    /// event and a preset is the preset.
    ///
    /// Default: the most precise event for CPU cycles that the kernel grants; [`Self::build`] opens
    /// events to find it.
    pub fn event(mut self, names: impl Into<String>) -> Self {
        self.names.push(names.into());
        self
    }

    /// Samples these events instead of those of [`Self::event`]. They do not count as part of a
    /// preset.
    pub fn requests(mut self, requests: Vec<EventRequest>) -> Self {
        self.requests = Some(requests);
        self
    }

    /// Sets the minimum latency in core cycles of the sampled loads, for the presets loads, mem and
    /// c2c. Default: the vendor's threshold.
    pub fn latency_threshold(mut self, cycles: u32) -> Self {
        self.options.ldlat = Some(cycles);
        self
    }

    /// Lets the hardware drop loads that hit the L3 cache, for the presets loads and l3-miss (AMD
    /// Zen 4 and later). Default: false.
    pub fn l3_miss_only(mut self, only: bool) -> Self {
        self.options.l3_miss_only = only;
        self
    }

    /// Sets the required precision of instruction addresses. Default: as precise as the machine
    /// allows, with one finding for each step down.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Sets the processes or threads to sample. Default: all processes.
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Sets the CPUs to sample on; at least one of them must be online. Default: all CPUs.
    pub fn cpus(mut self, cpus: Vec<u32>) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Samples once every `events` events. Replaces [`Self::frequency`]. Default: the default
    /// period of each event.
    pub fn period(mut self, events: u64) -> Self {
        self.rate = Some(Rate::Period(events));
        self
    }

    /// Aims for `hertz` samples per second per CPU. Replaces [`Self::period`].
    pub fn frequency(mut self, hertz: u64) -> Self {
        self.rate = Some(Rate::Frequency(hertz));
        self
    }

    /// Sets the filter for samples. [`Self::cgroups`] replaces its cgroups. Default: keep all
    /// samples.
    pub fn filter(mut self, filter: FilterFlags) -> Self {
        self.filter = filter;
        self
    }

    /// Keeps only samples of these cgroups and their descendants: paths, patterns
    /// (`/system.slice/web-*`), `pod:NAMESPACE/POD`, `container:NAME`, `unit:NAME`. Everything
    /// except a plain path also matches cgroups that are created during the run. Default: all
    /// cgroups.
    pub fn cgroups(mut self, cgroups: Vec<String>) -> Self {
        self.cgroups = cgroups;
        self
    }

    /// Starts a command when sampling has begun, and ends the run when it ends. Has no effect if
    /// the target is a command itself. Default: no command.
    pub fn until(mut self, command: Vec<OsString>) -> Self {
        self.until = command;
        self
    }

    /// Lets the standard output of the command go to standard error, for runs whose caller writes
    /// data to the standard output. Default: false.
    pub fn output_apart(mut self, apart: bool) -> Self {
        self.output_apart = apart;
        self
    }

    /// Sets the length of the run. Default: until the command ends, if there is one
    /// ([`Target::Command`], [`Self::until`]); no end for [`Self::series`] and [`Self::live`];
    /// otherwise ten seconds.
    /// A run of processes or threads also ends when they and everything that they started have
    /// ended.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Adds a kill switch file: while it exists, the run ends or does not start. The kill switch of
    /// the node ([`super::kill_switch::NODE`]) always applies.
    pub fn stop_file(mut self, file: PathBuf) -> Self {
        self.stop_file = Some(file);
        self
    }

    /// Sets the dimensions to group by. Default: instruction, cgroup, process, and those of data
    /// source, latency and outcome that are cheap and that the events have; for the preset c2c,
    /// [`Preset::dimensions`](precise_model::Preset::dimensions).
    pub fn dimensions(mut self, dimensions: Vec<Dimension>) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    /// Also groups by call chains. Default: false.
    pub fn call_chains(mut self, taken: bool) -> Self {
        self.call_chains = taken;
        self
    }

    /// Sets the granule of data addresses in bytes, a power of two. Default: 64, a cache line; 1
    /// for c2c.
    pub fn granule(mut self, bytes: u64) -> Self {
        self.granule = Some(bytes);
        self
    }

    /// Sets the number of cache lines that c2c keeps, rounded up to a power of two. Default:
    /// [`LINES`](super::plan::LINES).
    pub fn lines(mut self, lines: u64) -> Self {
        self.lines = Some(lines);
        self
    }

    /// Sets the number of call chains per CPU in each half of the table. Default:
    /// [`default_stacks`](super::plan::default_stacks).
    pub fn stacks(mut self, stacks: u64) -> Self {
        self.stacks = Some(stacks);
        self
    }

    /// Sets how the user's part of call chains is unwound. Default: by tables, and where code has
    /// none, by frame pointers.
    pub fn call_graph(mut self, how: CallGraph) -> Self {
        self.call_graph = how;
        self
    }

    /// Sets the memory of the unwind tables in bytes. Default:
    /// [`UNWIND_BYTES`](super::plan::UNWIND_BYTES).
    pub fn unwind_memory(mut self, bytes: u64) -> Self {
        self.unwind_bytes = Some(bytes);
        self
    }

    /// Sets the number of frames of user space that are unwound by tables. Default:
    /// [`MAX_DEPTH`](super::plan::MAX_DEPTH).
    pub fn stack_depth(mut self, frames: u32) -> Self {
        self.depth = Some(frames);
        self
    }

    /// Sets the number of cells per CPU in each half of the table. Default:
    /// [`default_cells`](super::plan::default_cells).
    pub fn table_cells(mut self, cells: u64) -> Self {
        self.cells = Some(cells);
        self
    }

    /// Sets the interval between two reads of the cell table. Default:
    /// [`default_epoch`](super::plan::default_epoch); one second in a run for time series, and in a
    /// live one.
    pub fn epoch(mut self, epoch: Duration) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets the overhead budget as a share of each CPU's time; the run samples less often when it
    /// would exceed the budget. `None`: no limit. Default: [`BUDGET`](super::plan::BUDGET), or no
    /// limit with [`Self::period`], because a chosen period is never changed by default.
    pub fn budget(mut self, share: Option<f64>) -> Self {
        self.budget = Some(share);
        self
    }

    /// Makes a run whose samples become time series. It ends only by [`Self::duration`], and also
    /// groups by latency if the events have it.
    pub fn series(mut self) -> Self {
        self.purpose = Purpose::Series;
        self
    }

    /// Sets whether a run for time series is also grouped as a capture is by default, so that its
    /// rows are captures too. Default: false.
    pub fn captures(mut self, captures: bool) -> Self {
        self.captures = captures;
        self
    }

    /// Makes a run whose last seconds are a capture at any time. It has the dimensions of a
    /// capture, and ends only by [`Self::duration`].
    pub fn live(mut self) -> Self {
        self.purpose = Purpose::Live;
        self
    }

    /// Makes a run that writes its samples one by one. It has no cell table, so no option of the
    /// table and no budget can be set.
    pub fn stream(mut self, streaming: Streaming) -> Self {
        self.purpose = Purpose::Stream(streaming);
        self
    }

    /// Sets whether a run of all processes keeps the samples of this process and of the helpers
    /// that it starts. Otherwise the program counts them and leaves them out. Default: false.
    pub fn include_self(mut self, include: bool) -> Self {
        self.include_self = include;
        self
    }

    /// Sets how the eBPF program reads the kernel's structures; for tests. Default: the fastest way
    /// that the kernel supports.
    pub fn read_path(mut self, path: ReadPath) -> Self {
        self.read_path = Some(path);
        self
    }

    /// Sets the command line that is stored in the capture. Default: empty.
    pub fn command_line(mut self, words: Vec<String>) -> Self {
        self.command_line = words;
        self
    }

    /// Sets whether the process drops the capabilities that the run no longer needs once everything
    /// is open. For processes that exist only for this run. Default: false.
    pub fn gives_up_rights(mut self, gives_up: bool) -> Self {
        self.gives_up_rights = gives_up;
        self
    }

    /// Reads PMUs and CPUs below this directory, which may hold another machine's files; for tests.
    pub fn root(mut self, root: Root) -> Self {
        self.root = root;
        self
    }
}
