//! The plan of a run: its options, validated. [`Plan::builder`] makes one.

use std::{ffi::OsString, time::Duration};

use crate::kernel::event::Rate;
use crate::kernel::program::ReadPath;
use crate::pmu::EventRequest;
use precise_filter::Compiled;
use precise_filter::pattern::Pattern;
use precise_model::{Dimension, Precision};

use super::cell_slot::CellSlot;
use super::kill_switch::KillSwitch;
pub use super::plan_builder::PlanBuilder;
pub use super::plan_error::PlanError;

/// Default length of a run that has no other end.
pub const DURATION: Duration = Duration::from_secs(10);
/// The longest interval between two reads of the cell table that is chosen by default.
pub const EPOCH: Duration = Duration::from_secs(1);
/// The default number of epochs of a run whose length is known: the columns of its time axis.
pub const EPOCHS: u32 = 60;
/// The shortest epoch. Reading the table more often costs more than it is worth.
pub const MIN_EPOCH: Duration = Duration::from_millis(100);
/// Default overhead budget: a share of each CPU's time. Not used with a fixed period.
pub const BUDGET: f64 = 0.01;
/// Default granule of data addresses, in bytes: one cache line.
pub const GRANULE: u64 = 64;
/// Default number of cells per CPU in each half of the table, unless [`TABLE_BYTES`] allows only
/// fewer: 512 KiB of memory per CPU and half.
pub const TABLE_CELLS: u64 = 8192;
/// Default upper limit in bytes of the cell tables of all CPUs and events of a run.
pub const TABLE_BYTES: u64 = 256 << 20;
/// The default number of cells never falls below this, whatever [`TABLE_BYTES`] says.
pub const LEAST_CELLS: u64 = 64;
/// The largest number of cells: half a gigabyte per CPU.
pub const MAX_CELLS: usize = 1 << 22;
/// Default number of cache lines that c2c keeps in detail; each takes 8 bytes of memory.
pub const LINES: u64 = 4096;
/// The largest number of cache lines.
pub const MAX_LINES: u32 = 1 << 24;
/// The largest number of call chains: half a gigabyte per CPU.
pub const MAX_STACKS: usize = 1 << 18;
/// Default number of pages in each CPU's ring: half a megabyte, about 4,000 samples.
pub const RING_PAGES: usize = 128;
/// The largest number of pages in a ring: one gigabyte per CPU.
pub const MAX_RING_PAGES: usize = 1 << 18;

/// Default memory of unwind tables, in bytes: enough for the code of a few hundred programs and
/// libraries.
pub const UNWIND_BYTES: u64 = 32 << 20;
/// Default size of the copies of stacks of a streaming run, in bytes.
pub const STACK_COPY: u32 = 16 << 10;
/// The largest size of the copies of stacks, in bytes: a record has at most 64 KiB.
pub const MAX_STACK_COPY: u32 = 65_528;
/// Pages of each CPU's ring of a streaming run with call chains: a sample is a hundred times
/// larger.
pub const RING_PAGES_OF_CHAINS: usize = 1024;
/// The largest memory of unwind tables, in bytes.
pub const MAX_UNWIND_BYTES: u64 = 1 << 30;
/// The largest number of frames of a chain that are unwound by tables.
pub const MAX_DEPTH: u32 = precise_common::stack::MAX_FRAMES as u32;

/// Memory of one cell in both halves of the table, in bytes.
const BYTES_PER_CELL: u64 = 128;
/// Default memory for call chains, in bytes. Programs with an interpreter have thousands of
/// different chains per second.
const STACK_BYTES: usize = 64 << 20;
/// Memory of one call chain in both halves of the table, in bytes.
pub const BYTES_PER_STACK: usize = 2112;

/// Returns the default number of cells per CPU in each half of the table, for a run that samples
/// `events` events on `cpus` CPUs: [`TABLE_CELLS`], or as many as [`TABLE_BYTES`] allows; a power
/// of two.
pub fn default_cells(cpus: usize, events: usize) -> u64 {
    let tables = (cpus.max(1) as u64).saturating_mul(events.max(1) as u64);
    let room = TABLE_BYTES / tables.saturating_mul(BYTES_PER_CELL).max(1);
    (1 << room.max(1).ilog2()).clamp(LEAST_CELLS, TABLE_CELLS)
}

/// Returns the default interval between two reads of the cell table in a run of this length: a
/// sixtieth, from [`MIN_EPOCH`] to [`EPOCH`]. `None`: the length is not known, and the run may be
/// short.
pub fn default_epoch(duration: Option<Duration>) -> Duration {
    duration.map_or(EPOCH / 4, |duration| (duration / EPOCHS).clamp(MIN_EPOCH, EPOCH))
}

/// Returns the default number of call chains per CPU for a run on `cpus` CPUs: as many as fit in 64
/// MiB, a power of two from 128 to 8192.
pub fn default_stacks(cpus: usize) -> usize {
    let room = STACK_BYTES / (cpus.max(1) * BYTES_PER_STACK);
    (1 << room.max(1).ilog2()).clamp(128, 8192)
}

/// What to sample: the whole system, or some processes, threads or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All processes.
    All,
    /// Processes with the given ids, with all their threads and child processes.
    Processes(Vec<u32>),
    /// Threads with the given ids, with the threads and processes that they start.
    Threads(Vec<u32>),
    /// A command, from its exec to its end, including its children.
    Command(Vec<OsString>),
}

/// How the user's part of call chains is unwound. The kernel always unwinds its own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CallGraph {
    /// By unwind tables, and where code has none, by frame pointers.
    #[default]
    Auto,
    /// By unwind tables only.
    Tables,
    /// By frame pointers, in the kernel.
    FramePointers,
}

/// All options of a run, validated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The events; at least one.
    pub events: Vec<PlannedEvent>,
    /// The processes or threads to sample.
    pub target: Target,
    /// A command that runs while the target is sampled, and whose end ends the run; empty if there
    /// is none. It is sampled only as far as the target contains it.
    pub until: Vec<OsString>,
    /// Whether the standard output of the command goes to standard error, because the run writes
    /// data to the standard output.
    pub output_apart: bool,
    /// CPUs to sample on.
    pub cpus: Vec<u32>,
    /// CPUs that are offline, and are sampled from when they come online.
    pub later: Vec<u32>,
    /// The requested precision.
    pub precision: Precision,
    /// Dimensions to group by.
    pub dimensions: Vec<Dimension>,
    /// Granule of data addresses in bytes, a power of two.
    pub address_granule: u64,
    /// Keep data addresses only of cache lines that a HITM load touched (c2c); the value is the
    /// number of lines to keep, a power of two. `None`: keep all addresses.
    pub promoted_lines: Option<u32>,
    /// The filter as the user wrote it.
    pub filter_text: String,
    /// Cgroups that the filter keeps, including those created during the run.
    pub watch: Vec<Pattern>,
    /// Interval between two reads of the cell table.
    pub epoch: Duration,
    /// Length of the run; `None`: until the command ends or the user interrupts it.
    pub duration: Option<Duration>,
    /// Cells per CPU in each half of the table.
    pub table_cells: usize,
    /// A sentence if there are fewer cells than [`TABLE_CELLS`] only because the machine has so
    /// many CPUs.
    pub fewer_cells: Option<String>,
    /// Call chains per CPU in each half of the table, if the run groups by them.
    pub stacks: usize,
    /// How the user's part of call chains is unwound, if the run groups by them.
    pub call_graph: CallGraph,
    /// Memory of the unwind tables in bytes, if there are any.
    pub unwind_bytes: u64,
    /// The number of frames of user space that are unwound by tables.
    pub depth: u32,
    /// Whether a run of all processes keeps the samples of this process and of its helpers.
    pub include_self: bool,
    /// The command line, to be stored in the capture.
    pub command_line: Vec<String>,
    /// Forces a read path; for tests.
    pub read_path: Option<ReadPath>,
    /// Options for streaming; `None`: the run aggregates its samples.
    pub stream: Option<Streaming>,
    /// Overhead budget as a share of each CPU's time; `None`: no limit.
    pub budget: Option<f64>,
    /// The files that end the run, or prevent it from starting, while they exist.
    pub kill_switch: KillSwitch,
    /// Whether to drop unneeded privileges once everything is open, because the process exists only
    /// for this run.
    pub gives_up_rights: bool,
}

impl Plan {
    /// Returns what is sampled in words, for reports: the target, and the command that the run
    /// waits for.
    pub fn words(&self) -> String {
        let target = self.target.words();
        if self.until.is_empty() { target } else { format!("{target} during `{}`", joined(&self.until)) }
    }

    /// Returns the command that the run starts, which is either its target or [`Self::until`].
    pub fn command(&self) -> Option<&[OsString]> {
        match &self.target {
            Target::Command(command) => Some(command),
            _ if self.until.is_empty() => None,
            _ => Some(&self.until),
        }
    }

    /// Returns how many bytes of the user stack each sample of a streaming run carries; 0 if none.
    pub fn copied_stack(&self) -> u32 {
        match self.stream {
            Some(stream) if stream.chains && self.call_graph != CallGraph::FramePointers => stream.stack_copy,
            _ => 0,
        }
    }

    /// Returns what the cells of an event have in the place of the data address.
    pub fn slot(&self, request: &EventRequest) -> CellSlot {
        CellSlot::of(&self.dimensions, request)
    }

    /// Returns what the cells of each event have in the place of the data address, if they are not
    /// all the same.
    pub fn slots(&self) -> Vec<CellSlot> {
        let both = [Dimension::Address, Dimension::Stack].iter().all(|of| self.dimensions.contains(of));
        let events = self.events.iter().filter(|_| both);
        events.map(|event| self.slot(&event.request)).collect()
    }

    /// Returns whether the program unwinds the user's part of call chains by tables.
    pub fn unwinds(&self) -> bool {
        self.call_graph != CallGraph::FramePointers && self.dimensions.contains(&Dimension::Stack)
    }

    /// Returns whether the program leaves out the samples of this process and of its helpers. Runs
    /// of chosen processes contain them only if they were chosen.
    pub fn leaves_out_own(&self) -> bool {
        !self.include_self && self.target == Target::All
    }
}

/// Options of a streaming run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// Pages of each CPU's ring, a power of two.
    pub ring_pages: usize,
    /// Ends the run after this number of samples; `None`: no limit.
    pub samples: Option<u64>,
    /// Whether each sample has its cgroup.
    pub cgroup: bool,
    /// Whether each sample has the raw data of the PMU driver, if the driver adds any.
    pub raw: bool,
    /// Whether each sample has its physical address. On Intel this costs a page-table walk in the
    /// NMI.
    pub phys_address: bool,
    /// Whether each sample has the size of its page. This costs a page-table walk in the NMI.
    pub page_size: bool,
    /// Whether each sample has its call chain.
    pub chains: bool,
    /// Bytes of the user stack that each sample carries if it has a call chain that is not unwound
    /// by the kernel: a multiple of 8, at most [`MAX_STACK_COPY`].
    pub stack_copy: u32,
}

impl Default for Streaming {
    /// [`RING_PAGES`], no limit on samples, and no optional fields.
    fn default() -> Self {
        Self {
            ring_pages: RING_PAGES,
            samples: None,
            cgroup: false,
            raw: false,
            phys_address: false,
            page_size: false,
            chains: false,
            stack_copy: STACK_COPY,
        }
    }
}

/// One event of a plan.
#[derive(Clone, Debug)]
pub struct PlannedEvent {
    /// The event to open.
    pub request: EventRequest,
    /// How often to sample it.
    pub rate: Rate,
    /// The filter, compiled for this event.
    pub filter: Compiled,
}

impl Target {
    /// Returns the target in words, for reports.
    pub fn words(&self) -> String {
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::All => "all processes".into(),
            Self::Processes(pids) if pids.len() == 1 => format!("process {}", list(pids)),
            Self::Processes(pids) => format!("processes {}", list(pids)),
            Self::Threads(tids) if tids.len() == 1 => format!("thread {}", list(tids)),
            Self::Threads(tids) => format!("threads {}", list(tids)),
            Self::Command(command) => format!("command `{}` and its children", joined(command)),
        }
    }
}

fn joined(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
