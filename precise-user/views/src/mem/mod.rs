//! `precise mem`: the levels of the memory hierarchy that served loads and stores. This is perf
//! mem's table, with separate tables for loads and stores.
//!
//! The share of the samples and the share of the latency answer different questions:
//!
//! ```
//! use precise_model::testing::{CaptureBuilder, L1, RAM};
//! use precise_views::mem::{MemOptions, mem};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(900).latency(5).data_src(L1);
//! made.cell().samples(100).latency(300).data_src(RAM);
//!
//! let result = mem(&made.build(), &MemOptions::default())?;
//!
//! let loads = &result.events[0].accesses[0];
//! assert_eq!(loads.op, "LOAD");
//! // Groups with latencies are sorted by their sum, as perf mem does.
//! let memory = &loads.groups.list[0];
//! assert_eq!(memory.values[0].text(), "RAM hit");
//! // Only 10 % of the loads reach memory, but they take 30,000 of all 34,500 cycles: 87 %.
//! assert_eq!(memory.share.value, 0.10);
//! assert_eq!(memory.latency_share.expect("is timed").value, 30_000.0 / 34_500.0);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::MemView;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::grouping::{Grouping, Groups};
use super::needs::{self, Needs};
use super::stats::MIN_SAMPLES;
use super::{ViewError, trust};
use precise_model::digits::thousands;
use precise_model::keys::{Key, Sort};
use precise_model::words;
use precise_model::{Capture, Dimension, EventInfo, Row};

/// Options for `precise mem`.
#[derive(Clone, Debug, PartialEq)]
pub struct MemOptions {
    /// Group keys. `None` uses perf mem's columns, plus the NUMA node if the capture has it.
    pub by: Option<Vec<Key>>,
    /// Order of the groups. `None` sorts by latency, or by samples if there are no latencies.
    pub sort: Option<Sort>,
    /// Number of groups to keep of each kind of access; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of samples of a kind of access for a ranking.
    pub min_samples: u64,
}

impl Default for MemOptions {
    fn default() -> Self {
        Self { by: None, sort: None, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise mem`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Mem {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Group keys.
    pub by: Vec<Key>,
    /// One entry per event.
    pub events: Vec<MemEvent>,
}

/// The memory accesses of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Loads, stores, and other kinds of accesses.
    pub accesses: Vec<Accesses>,
    /// Number of samples that were not memory accesses, or whose kind the hardware did not report.
    /// They are in no table.
    pub without: u64,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Accesses of one kind. Shares are relative to the accesses of this kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Accesses {
    /// Kind of access: LOAD, STORE, …
    pub op: &'static str,
    /// Whether these accesses have latencies.
    pub timed: bool,
    /// Order of the groups.
    pub sort: Sort,
    /// The accesses by group.
    #[serde(flatten)]
    pub groups: Groups,
}

/// Kinds of accesses, in the order of their tables.
const OPS: [&str; 5] = ["LOAD", "STORE", "LOAD|STORE", "PFETCH", "EXEC"];

/// Returns the levels that served the loads and stores of a capture.
///
/// # Errors
///
/// Returns an error if the capture lacks data sources or a requested dimension. The message names
/// the command that records it.
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
        MemEvent { event: EventSummary::of(info, trust), samples, accesses, without, notes }
    });
    Ok(Mem { run: Run::of(capture), events: events.collect(), by })
}

/// Returns those of perf mem's columns that describe where an access hit.
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
            "{} of the samples were not memory accesses, or the hardware did not report it: they are in \
             no table.",
            thousands(without)
        ));
    }
    notes.extend(about::latency_limits(info));
    notes
}
