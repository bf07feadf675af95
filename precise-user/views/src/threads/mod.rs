//! `precise threads`: the CPUs and NUMA nodes of each thread's samples.
//!
//! A thread that moves between nodes leaves its caches and its memory behind:
//!
//! ```
//! use precise_model::{Node, testing::CaptureBuilder};
//! use precise_views::threads::{ThreadsOptions, threads};
//!
//! let mut made = CaptureBuilder::new();
//! made.meta().machine.nodes = vec![Node { id: 0, cpus: vec![0] }, Node { id: 1, cpus: vec![1] }];
//! made.cell().samples(300).cpu(0).process(10, "moves");
//! made.cell().samples(100).cpu(1).process(10, "moves");
//! made.cell().samples(200).cpu(1).process(20, "stays");
//!
//! let result = threads(&made.build(), &ThreadsOptions::default())?;
//!
//! let [moves, stays] = &result.events[0].threads[..] else { panic!("two threads") };
//! // Thread 10 ran mostly on node 0, and 100 of its 400 samples are elsewhere: 25 %.
//! assert_eq!((moves.tid, moves.off_main_node.expect("enough samples").value), (10, 0.25));
//! // Thread 20 never left its CPU.
//! assert_eq!((stays.tid, stays.on_main_cpu.expect("enough samples").value), (20, 1.0));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::ThreadsView;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::weighing::Weighing;
use super::{ViewError, trust};
use precise_model::digits::thousands;
use precise_model::keys::Key;
use precise_model::values::{RawValue, Value};
use precise_model::{Capture, CompactSort as _, Name, Row};

/// Options for `precise threads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsOptions {
    /// Number of threads to keep of each event, those with most samples first.
    pub limit: usize,
    /// Minimum number of samples of an event, or of a thread, for shares.
    pub min_samples: u64,
}

impl Default for ThreadsOptions {
    fn default() -> Self {
        Self { limit: 20, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise threads`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Threads {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Number of NUMA nodes in the capture; 0 if they are unknown. CPUs then have no node.
    pub nodes: usize,
    /// One entry per event.
    pub events: Vec<ThreadsEvent>,
}

/// The threads of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ThreadsEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Number of samples that the table needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Threads, those with the largest share first.
    pub threads: Vec<Thread>,
    /// Number of threads that `threads` leaves out, and the number of their samples.
    pub left_out: (u64, u64),
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// A thread, with the CPUs and nodes that it ran on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Thread {
    /// Name of the thread, or the reason why it is unknown.
    pub name: Value,
    /// Name of the thread's process, or the reason why it is unknown.
    pub process: Value,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of samples of the thread.
    pub samples: u64,
    /// Fraction of the event's samples.
    pub share: Share,
    /// CPUs that the thread was sampled on, the most used first.
    pub cpus: Vec<On>,
    /// NUMA nodes that the thread was sampled on, the most used first. Empty if the nodes are
    /// unknown.
    pub nodes: Vec<On>,
    /// Fraction of the thread's samples on the CPU that it used most; `None` with too few samples.
    pub on_main_cpu: Option<Share>,
    /// Fraction of the thread's samples on other nodes than the one that it used most. `None` with
    /// too few samples, or if the nodes are unknown.
    pub off_main_node: Option<Share>,
}

/// A CPU or a NUMA node that a thread ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct On {
    /// Number of the CPU or node.
    pub id: u32,
    /// Number of the thread's samples there.
    pub samples: u64,
}

/// Sums over the samples of one thread.
#[derive(Default)]
struct Sum {
    all: Samples,
    cpus: BTreeMap<u32, Samples>,
    nodes: BTreeMap<u32, Samples>,
}

/// Returns the threads of a capture, with the CPUs and nodes that they ran on.
///
/// # Errors
///
/// Returns an error if the capture lacks threads or CPUs. The message names the command that
/// records them.
pub fn threads(capture: &Capture, options: &ThreadsOptions) -> Result<Threads, ViewError> {
    Needs::of::<ThreadsView>().check(capture)?;
    let events = capture.meta.events.iter().zip(trust::trust(capture).events).enumerate();
    let events =
        events.map(|(index, (info, trust))| of_event(capture, options, index, EventSummary::of(info, trust)));
    Ok(Threads { run: Run::of(capture), nodes: capture.meta.machine.nodes.len(), events: events.collect() })
}

fn of_event(capture: &Capture, options: &ThreadsOptions, index: usize, event: EventSummary) -> ThreadsEvent {
    let weighing = Weighing::of(capture, index);
    let mut all = Samples::default();
    let mut unknown = 0u64;
    // A thread may change its name. It is identified by its ids, and shown with the name in its
    // last epoch.
    let mut threads: BTreeMap<(u32, u32), (&Row, Sum)> = BTreeMap::new();
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let samples = weighing.samples(row);
        all.add(samples);
        let (named, sum) = threads.entry((row.pid, row.tid)).or_insert_with(|| (row, Sum::default()));
        if last(capture, row) > last(capture, named) {
            *named = row;
        }
        sum.all.add(samples);
        let Some(cpu) = row.cpu.map(u32::from) else {
            unknown = unknown.saturating_add(samples.count);
            continue;
        };
        sum.cpus.entry(cpu).or_default().add(samples);
        if let Some(node) = capture.meta.machine.node_of(cpu) {
            sum.nodes.entry(node).or_default().add(samples);
        }
    }
    let too_few = (all.count < options.min_samples).then_some(options.min_samples);
    let mut ranked: Vec<_> = threads.into_iter().collect();
    // Sorted by weight; threads of equal weight stay in the order of their ids.
    ranked.compact_sort_by(|(_, (_, a)), (_, (_, b))| b.all.order(&a.all));
    let shown = if too_few.is_some() { 0 } else { options.limit.min(ranked.len()) };
    let rest = ranked.split_off(shown);
    let rest_samples = rest.iter().fold(0u64, |sum, (_, (_, thread))| sum.saturating_add(thread.all.count));
    let ranked = ranked.into_iter().map(|((pid, tid), (row, sum))| Thread {
        name: match row.thread {
            Name::Known(name) => Value::Text(capture.names.get(name).to_owned()),
            Name::Unknown(reason) => Value::Unknown(reason),
        },
        process: RawValue::of(capture, row, Key::Process).value(capture, Key::Process),
        pid,
        tid,
        samples: sum.all.count,
        share: sum.all.share_of(all),
        on_main_cpu: used(&sum.cpus, options.min_samples).map(|used| used.most.share_of(used.all)),
        off_main_node: used(&sum.nodes, options.min_samples).map(|used| used.others.share_of(used.all)),
        cpus: places(&sum.cpus),
        nodes: places(&sum.nodes),
    });
    let mut notes = Vec::new();
    if capture.meta.machine.nodes.is_empty() {
        notes.push("The capture does not say which CPU belongs to which node.".to_owned());
    }
    if unknown > 0 {
        notes.push(format!("{} of the samples do not say on which CPU they were taken.", thousands(unknown)));
    }
    ThreadsEvent {
        event,
        samples: all.count,
        too_few,
        threads: ranked.collect(),
        left_out: (rest.len() as u64, rest_samples),
        notes,
    }
}

/// Returns what the last row of a thread has most of: its time, and then its names, so that the
/// order of rows does not matter.
fn last<'a>(capture: &'a Capture, row: &Row) -> (u32, [&'a str; 2]) {
    (
        row.epoch,
        [row.thread, row.process].map(|name| match name {
            Name::Known(id) => capture.names.get(id),
            Name::Unknown(reason) => reason.words(),
        }),
    )
}

/// The samples of a thread at the place that it used most, at all other places, and in total.
struct Used {
    most: Samples,
    others: Samples,
    all: Samples,
}

/// Returns how a thread used CPUs or nodes; `None` with fewer than `least` samples.
fn used(places: &BTreeMap<u32, Samples>, least: u64) -> Option<Used> {
    let all: Samples = places.values().copied().sum();
    let (main, most) = places.iter().max_by(|(_, a), (_, b)| a.order(b)).filter(|_| all.count >= least)?;
    let others = places.iter().filter(|(id, _)| *id != main).map(|(_, samples)| *samples).sum();
    Some(Used { most: *most, others, all })
}

/// Returns CPUs or nodes, the most used first.
fn places(places: &BTreeMap<u32, Samples>) -> Vec<On> {
    let mut ranked: Vec<_> = places.iter().collect();
    ranked.compact_sort_by(|(_, a), (_, b)| b.order(a));
    ranked.into_iter().map(|(id, samples)| On { id: *id, samples: samples.count }).collect()
}
