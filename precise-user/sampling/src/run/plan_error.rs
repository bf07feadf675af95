//! Errors of building a [`Plan`](super::plan::Plan).

use std::time::Duration;

use crate::error::SamplingError;
use crate::pmu::{EncodeError, Unsupported};
use crate::run::event_filter::{CgroupError, FilterError};
use precise_model::Dimension;

use super::plan::{MAX_CELLS, MAX_DEPTH, MAX_LINES, MAX_RING_PAGES, MAX_STACK_COPY, MAX_STACKS, MIN_EPOCH};

/// An error in a plan. Its messages name values, not flags, because the flags belong to the caller.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file of the kill switch exists.
    #[error(transparent)]
    Stopped(SamplingError),
    /// A text does not name an event of this machine, or this machine cannot sample the event.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// This machine has no event for a preset.
    #[error(transparent)]
    Preset(#[from] Unsupported),
    /// No event was requested, and the kernel grants none of the default events.
    #[error(transparent)]
    NothingOpens(SamplingError),
    /// A latency threshold or a filter for L3 misses was set for an event that is not a preset.
    #[error(
        "a latency threshold and a filter for L3 misses apply only to presets, and '{event}' is not a preset"
    )]
    NoPreset {
        /// The event.
        event: String,
    },
    /// The list of events is empty.
    #[error("there is no event to sample")]
    NoEvents,
    /// Some requested CPUs are not online, or the list of requested CPUs is empty.
    #[error("{}", not_online(.missing))]
    Cpus {
        /// The requested CPUs that are not online; empty if no CPU was requested.
        missing: Vec<u32>,
        /// The CPUs that are online.
        online: Vec<u32>,
    },
    /// The period or frequency is 0.
    #[error("a period or frequency of 0 takes no sample")]
    Rate,
    /// A cgroup of the filter is invalid.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The filter does not fit the events, this machine, or the eBPF program.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The size of the copies of stacks, in bytes, is not possible.
    #[error("copies of {0} bytes of stacks: they have from 8 to {MAX_STACK_COPY} bytes, a multiple of 8")]
    StackCopy(u32),
    /// The memory of the unwind tables, in bytes, is not possible.
    #[error("unwind tables of {0} bytes: they take from 1 MiB to 1 GiB")]
    UnwindMemory(u64),
    /// The number of frames is not possible.
    #[error("call chains of {0} frames: they have from 1 to {MAX_DEPTH}")]
    Depth(u32),
    /// The run groups by both call chains and data addresses, and no cell has room for both.
    #[error("a capture can hold call chains or data addresses, but not both")]
    ChainsWithAddresses,
    /// No sample of these events has the dimension.
    #[error("samples of {} have no {}", .events.join(" and "), lacking(*.dimension))]
    Lacking {
        /// The dimension.
        dimension: Dimension,
        /// Names of the events.
        events: Vec<String>,
    },
    /// The granule of data addresses is not a power of two.
    #[error("a granule of {0} bytes is not a power of two")]
    Granule(u64),
    /// The number of cache lines for c2c is out of range.
    #[error("the number of cache lines must be from 1 to {MAX_LINES} (8 bytes each), not {0}")]
    Lines(u64),
    /// The number of cells per CPU is out of range.
    #[error("the number of cells per CPU must be from 1 to {MAX_CELLS} (128 bytes each), not {0}")]
    Cells(u64),
    /// The number of call chains per CPU is out of range.
    #[error("the number of call chains per CPU must be from 1 to {MAX_STACKS} (2,112 bytes each), not {0}")]
    Stacks(u64),
    /// The epoch is too short.
    #[error("an epoch of {0:?} is shorter than {MIN_EPOCH:?}")]
    Epoch(Duration),
    /// The budget is not a share of a CPU's time.
    #[error("the budget must be a share of a CPU's time above 0 and at most 1, not {0}")]
    Budget(f64),
    /// The number of pages in each CPU's ring is invalid.
    #[error("the number of pages per ring must be a power of two up to {MAX_RING_PAGES}, not {0}")]
    RingPages(usize),
    /// A streaming run has an option that needs the cell table.
    #[error("a streaming run has no table, so it cannot have {0}")]
    NotStreamed(&'static str),
}

/// Returns the words for a dimension that the samples of some events lack.
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
