//! Why a [`Plan`](super::plan::Plan) cannot be made.

use std::time::Duration;

use crate::error::SamplingError;
use crate::pmu::{EncodeError, Unsupported};
use crate::run::event_filter::{CgroupError, FilterError};
use precise_model::Dimension;

use super::plan::{MAX_CELLS, MAX_LINES, MAX_RING_PAGES, MAX_STACKS, MIN_EPOCH};

/// What is wrong with a plan. Its sentences name values, not flags: those are the caller's.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file of the kill switch exists.
    #[error("sampling is switched off on this machine: {why}")]
    Stopped {
        /// Which file, in words.
        why: String,
    },
    /// A text is no event of this machine, or this machine cannot sample it.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// This machine has no event for a preset.
    #[error(transparent)]
    Preset(#[from] Unsupported),
    /// No event was asked for, and the kernel grants none of those that samples are taken of by
    /// default.
    #[error(transparent)]
    NothingOpens(SamplingError),
    /// A latency threshold or a filter for L3 misses, and an event that is no preset.
    #[error(
        "a latency threshold and a filter for L3 misses apply only to presets, and '{event}' is not a preset"
    )]
    NoPreset {
        /// The event.
        event: String,
    },
    /// A plan for given events, of which there are none.
    #[error("there is no event to sample")]
    NoEvents,
    /// CPUs that are not online; with an empty list of those, no CPU was asked for.
    #[error("{}", not_online(.missing))]
    Cpus {
        /// Those that were asked for and are not online.
        missing: Vec<u32>,
        /// Those that are.
        online: Vec<u32>,
    },
    /// A period or frequency of 0.
    #[error("a period or frequency of 0 takes no sample")]
    Rate,
    /// A cgroup that the filter cannot mean.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The filter does not fit the events, this machine, or the program.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Call chains and data addresses in one capture.
    #[error("a capture can hold call chains or data addresses, but not both")]
    ChainsWithAddresses,
    /// A dimension that no sample of these events has.
    #[error("samples of {} have no {}", .events.join(" and "), lacking(*.dimension))]
    Lacking {
        /// The dimension.
        dimension: Dimension,
        /// Names of the events.
        events: Vec<String>,
    },
    /// The granule of data addresses.
    #[error("a granule of {0} bytes is not a power of two")]
    Granule(u64),
    /// The room for cache lines of c2c.
    #[error("the number of cache lines must be from 1 to {MAX_LINES} (8 bytes each), not {0}")]
    Lines(u64),
    /// The cells of each CPU.
    #[error("the number of cells per CPU must be from 1 to {MAX_CELLS} (128 bytes each), not {0}")]
    Cells(u64),
    /// The call chains of each CPU.
    #[error("the number of call chains per CPU must be from 1 to {MAX_STACKS} (2,112 bytes each), not {0}")]
    Stacks(u64),
    /// The interval between two reads of the table.
    #[error("an epoch of {0:?} is shorter than {MIN_EPOCH:?}")]
    Epoch(Duration),
    /// The budget, as a share of a CPU's time.
    #[error("the budget must be a share of a CPU's time above 0 and at most 1, not {0}")]
    Budget(f64),
    /// The pages of each CPU's ring.
    #[error("the number of pages per ring must be a power of two up to {MAX_RING_PAGES}, not {0}")]
    RingPages(usize),
    /// Something that needs the cell table, for a run that streams.
    #[error("a streaming run has no table, so it cannot have {0}")]
    NotStreamed(&'static str),
}

/// Group keys are by dimension; a dimension of memory or time is what some events' samples lack.
fn lacking(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Address => "data addresses",
        Dimension::PageSize => "data addresses, and so no page sizes",
        Dimension::Latency => "latencies",
        Dimension::Source => "memory levels",
        Dimension::Outcome => "outcomes of branches or fetches",
        other => other.as_str(),
    }
}

fn not_online(missing: &[u32]) -> String {
    match missing {
        [] => "the list of CPUs is empty".to_owned(),
        [cpu] => format!("CPU {cpu} is not online"),
        cpus => {
            let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
            format!("CPUs {} are not online", cpus.join(", "))
        }
    }
}
