//! Where loads and stores hit: perf mem's table, loads and stores apart.

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::MemView;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, Event, Run};
use super::grouping::{Grouping, Groups};
use super::needs::{self, Needs};
use super::stats::MIN_SAMPLES;
use super::{ViewError, trust};
use precise_model::keys::{Key, Sort};
use precise_model::words;
use precise_model::{Capture, Dimension, EventInfo, Row};

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct MemOptions {
    /// What to group by; `None` for perf mem's columns, and the node where the capture knows it.
    pub by: Option<Vec<Key>>,
    /// What to sort by; `None` for the time that was waited, and samples where there are no
    /// latencies.
    pub sort: Option<Sort>,
    /// Groups to keep of each kind of access.
    pub limit: Option<usize>,
    /// Samples of a kind of access below which nothing is ranked.
    pub min_samples: u64,
}

impl Default for MemOptions {
    fn default() -> Self {
        Self { by: None, sort: None, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// Where loads and stores hit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Mem {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// What the groups are.
    pub by: Vec<Key>,
    /// One per event.
    pub events: Vec<MemEvent>,
}

/// The accesses of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples of it.
    pub samples: u64,
    /// Loads, stores, and what else there is.
    pub accesses: Vec<Accesses>,
    /// Samples that were no memory access, or of which the hardware did not say: in no table.
    pub without: u64,
    /// What a reader must know of these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Accesses of one kind. Shares are parts of this kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Accesses {
    /// LOAD, STORE, …
    pub op: &'static str,
    /// Whether they have latencies.
    pub timed: bool,
    /// What they are sorted by.
    pub sort: Sort,
    /// The groups.
    #[serde(flatten)]
    pub groups: Groups,
}

/// The kinds of accesses, in the order of their tables.
const OPS: [&str; 5] = ["LOAD", "STORE", "LOAD|STORE", "PFETCH", "EXEC"];

/// Where the loads and stores of a capture hit.
///
/// # Errors
///
/// When the capture does not know: the sentence names the command that records it.
pub fn mem(capture: &Capture, options: &MemOptions) -> Result<Mem, ViewError> {
    let by = options.by.clone().unwrap_or_else(|| columns(capture));
    Needs::of::<MemView>().and(&by).check(capture)?;
    needs::coarse(capture, &by)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events.map(|(index, (info, trust))| {
        let accesses: Vec<_> =
            OPS.iter().filter_map(|op| accesses(capture, options, &by, index, op)).collect();
        let samples = super::samples(capture, index);
        let known = accesses.iter().fold(0u64, |sum, a| sum.saturating_add(a.groups.total.count));
        let without = samples.saturating_sub(known);
        let notes = notes(info, without, samples);
        MemEvent { event: Event::of(info, trust), samples, accesses, without, notes }
    });
    Ok(Mem { run: Run::of(capture), events: events.collect(), by })
}

/// perf mem's columns that tell where an access hit.
fn columns(capture: &Capture) -> Vec<Key> {
    let mut by = vec![Key::Level, Key::Snoop, Key::Tlb, Key::Locked];
    if needs::has(capture, Dimension::Cpu) && capture.meta.machine.nodes.len() > 1 {
        by.push(Key::Node);
    }
    by
}

fn accesses(
    capture: &Capture,
    options: &MemOptions,
    by: &[Key],
    event: usize,
    op: &'static str,
) -> Option<Accesses> {
    let of_op = |row: &Row| words::op(row.data_source()) == Some(op);
    let rows = || capture.rows.iter().filter(|row| usize::from(row.event) == event && of_op(row));
    rows().next()?;
    let timed = rows().any(|row| row.measures.latency_max > 0);
    let sort = options.sort.unwrap_or(if timed { Sort::Latency } else { Sort::Samples });
    let grouping =
        Grouping { capture, event, by, sort, limit: options.limit, min_samples: options.min_samples };
    Some(Accesses { op, timed, sort, groups: grouping.groups(of_op) })
}

fn notes(info: &EventInfo, without: u64, samples: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if without > 0 && without == samples {
        notes
            .push(format!("No sample of {} was a memory access, as far as the hardware reports.", info.name));
    } else if without > 0 {
        notes.push(format!(
            "{without} of the samples were not memory accesses, or the hardware did not report it: they \
             are in no table."
        ));
    }
    notes.extend(about::latency_limits(info));
    notes
}
