//! What a run is to do, validated: no argument of a command line gets further than this.
//! [`Plan::builder`] makes one.

use std::{ffi::OsString, time::Duration};

use crate::kernel::event::Rate;
use crate::kernel::program::ReadPath;
use crate::pmu::EventRequest;
use crate::symbols::pattern::Pattern;
use precise_filter::Compiled;
use precise_model::{Dimension, Precision};

use super::kill_switch::KillSwitch;
pub use super::plan_builder::{PlanBuilder, with_chains};
pub use super::plan_error::PlanError;

/// Length of a run for which nothing else sets an end, unless another one is chosen.
pub const DURATION: Duration = Duration::from_secs(10);
/// Interval between two reads of the table, unless another one is chosen.
pub const EPOCH: Duration = Duration::from_secs(1);
/// The shortest epoch: below, reading the table costs more than it tells.
pub const MIN_EPOCH: Duration = Duration::from_millis(100);
/// What a run may cost on each CPU unless another budget or a period is chosen, as a share of its
/// time.
pub const BUDGET: f64 = 0.01;
/// Bytes that data addresses are grouped by, unless others are chosen: a cache line.
pub const GRANULE: u64 = 64;
/// Cells per CPU and half of the table, unless another number is chosen: 512 KiB of memory each.
pub const TABLE_CELLS: u64 = 8192;
/// The most cells: half a gigabyte for each CPU.
pub const MAX_CELLS: usize = 1 << 22;
/// Cache lines that c2c keeps in detail, unless another number is chosen: 8 bytes of memory each.
pub const LINES: u64 = 4096;
/// The most cache lines.
pub const MAX_LINES: u32 = 1 << 24;
/// The most call chains: half a gigabyte for each CPU.
pub const MAX_STACKS: usize = 1 << 18;
/// Pages of each CPU's ring, unless others are chosen: half a megabyte, some 4,000 samples.
pub const RING_PAGES: usize = 128;
/// The most pages of a ring: one gigabyte for each CPU.
pub const MAX_RING_PAGES: usize = 1 << 18;

/// What call chains take of memory unless another number is chosen: programs with an interpreter
/// have thousands of them a second.
const STACK_BYTES: usize = 64 << 20;
/// Both halves of one chain's place.
const BYTES_PER_STACK: usize = 2112;

/// Call chains for each of so many CPUs, where no other number is chosen: what 64 MiB hold, from
/// 256 to 8192.
pub fn default_stacks(cpus: usize) -> usize {
    let room = STACK_BYTES / (cpus.max(1) * BYTES_PER_STACK);
    (1 << room.max(1).ilog2()).clamp(256, 8192)
}

/// Whom to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything.
    All,
    /// Processes, with all their threads and what they start.
    Processes(Vec<u32>),
    /// Threads, and what they start.
    Threads(Vec<u32>),
    /// A command, from its exec to its end, with its children.
    Command(Vec<OsString>),
}

/// Everything about a run, validated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The events, at least one.
    pub events: Vec<PlannedEvent>,
    /// Whom to sample.
    pub target: Target,
    /// CPUs to sample on.
    pub cpus: Vec<u32>,
    /// How much precision is asked for.
    pub precision: Precision,
    /// What to group by.
    pub dimensions: Vec<Dimension>,
    /// Data addresses are grouped by this many bytes, a power of two.
    pub address_granule: u64,
    /// Addresses only of cache lines that a HITM load shows, and room for so many, a power of two
    /// (c2c). `None`: all addresses.
    pub promoted_lines: Option<u32>,
    /// The filter as the user wrote it.
    pub filter_text: String,
    /// Cgroups that the filter keeps, also those that are made while the run goes on.
    pub watch: Vec<Pattern>,
    /// Interval between two reads of the table.
    pub epoch: Duration,
    /// Length of the run; `None`: until the command ends or somebody interrupts.
    pub duration: Option<Duration>,
    /// Cells per CPU and half.
    pub table_cells: usize,
    /// Call chains per CPU and half, where the run groups by them.
    pub stacks: usize,
    /// The command line, for the capture.
    pub command_line: Vec<String>,
    /// Forces a read path; for tests.
    pub read_path: Option<ReadPath>,
    /// Streams the samples instead of aggregating them.
    pub stream: Option<Streaming>,
    /// What the run may cost on each CPU, as a part of its time; `None`: whatever it does.
    pub budget: Option<f64>,
    /// What ends the run, and keeps it from beginning, as long as it is thrown.
    pub kill_switch: KillSwitch,
    /// The process is there for this run only: once all is open, it gives up what it needs no more.
    pub gives_up_rights: bool,
}

/// What a streaming run does with its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// Pages of each CPU's ring, a power of two.
    pub ring_pages: usize,
    /// Ends the run after so many samples.
    pub samples: Option<u64>,
    /// Each sample with its cgroup.
    pub cgroup: bool,
    /// Each sample with what the driver adds, where it adds something.
    pub raw: bool,
    /// Each sample with its physical address. On Intel a page-table walk in the NMI.
    pub phys_address: bool,
    /// Each sample with the size of its page. A page-table walk in the NMI.
    pub page_size: bool,
}

impl Default for Streaming {
    /// [`RING_PAGES`], without an end, and nothing that costs beside what the program reads.
    fn default() -> Self {
        Self {
            ring_pages: RING_PAGES,
            samples: None,
            cgroup: false,
            raw: false,
            phys_address: false,
            page_size: false,
        }
    }
}

/// One event of a plan.
#[derive(Clone, Debug)]
pub struct PlannedEvent {
    /// What it is.
    pub request: EventRequest,
    /// How often.
    pub rate: Rate,
    /// The filter, compiled for this event.
    pub filter: Compiled,
}

impl Target {
    /// In words, for reports.
    pub fn words(&self) -> String {
        let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::All => "all processes".into(),
            Self::Processes(pids) if pids.len() == 1 => format!("process {}", list(pids)),
            Self::Processes(pids) => format!("processes {}", list(pids)),
            Self::Threads(tids) if tids.len() == 1 => format!("thread {}", list(tids)),
            Self::Threads(tids) => format!("threads {}", list(tids)),
            Self::Command(command) => {
                let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
                format!("command `{}` and its children", words.join(" "))
            }
        }
    }
}
