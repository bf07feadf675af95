//! What a run is to do, validated: no argument of a command line gets further than this.

use std::{ffi::OsString, time::Duration};

use crate::kernel::event::Rate;
use crate::kernel::program::ReadPath;
use crate::pmu::EventRequest;
use crate::symbols::pattern::Pattern;
use precise_filter::Compiled;
use precise_model::{Dimension, Precision};

use super::kill_switch::KillSwitch;

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
    /// Addresses only of cache lines that a HITM load shows, and room for so many, a power of two (c2c). `None`: all addresses.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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
