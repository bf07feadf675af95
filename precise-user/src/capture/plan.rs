//! What a run is to do, validated: no argument of a command line gets further than this.

use std::{ffi::OsString, time::Duration};

use super::model::{Dimension, Precision};
use crate::{
    filter::Compiled,
    kernel::{event::Rate, program::ReadPath},
    pmu::EventRequest,
};

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
    /// The filter as the user wrote it.
    pub filter_text: String,
    /// Interval between two reads of the table.
    pub epoch: Duration,
    /// Length of the run; `None`: until the command ends or somebody interrupts.
    pub duration: Option<Duration>,
    /// Cells per CPU and half.
    pub table_cells: usize,
    /// The command line, for the capture.
    pub command_line: Vec<String>,
    /// Forces a read path; for tests.
    pub read_path: Option<ReadPath>,
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
