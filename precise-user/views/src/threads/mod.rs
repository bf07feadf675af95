//! Who ran where: the CPUs and nodes of each thread's samples.

pub mod csv;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::ThreadsView;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{Event, Run};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::weighing::Weighing;
use super::{ViewError, trust};
use precise_model::keys::Key;
use precise_model::values::{Atom, Value};
use precise_model::{Capture, Row};

/// Options for `precise threads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsOptions {
    /// Threads to keep of each event, those with most samples first.
    pub limit: usize,
    /// Samples of an event, or of a thread, below which it has no shares.
    pub min_samples: u64,
}

impl Default for ThreadsOptions {
    fn default() -> Self {
        Self { limit: 20, min_samples: MIN_SAMPLES }
    }
}

/// Who ran where.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Threads {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// NUMA nodes that the capture knows; 0 where it knows none, and no CPU has a node.
    pub nodes: usize,
    /// One per event.
    pub events: Vec<ThreadsEvent>,
}

/// The threads of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ThreadsEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples of it.
    pub samples: u64,
    /// Samples needed for a table, where there are fewer.
    pub too_few: Option<u64>,
    /// The threads, those with the largest share first.
    pub threads: Vec<Thread>,
    /// Threads that `threads` leaves out, and their samples.
    pub left_out: (u64, u64),
    /// What a reader must know of these numbers: one sentence each.
    pub notes: Vec<String>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Thread {
    /// Name of its process, or the reason why there is none.
    pub process: Value,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Samples of it.
    pub samples: u64,
    /// Part of the event's samples.
    pub share: Share,
    /// The CPUs that it was sampled on, the most used first.
    pub cpus: Vec<On>,
    /// The nodes that it was sampled on, the most used first; empty where the capture knows none.
    pub nodes: Vec<On>,
    /// Part of its samples on the CPU that it used most; `None` with too few samples.
    pub on_main_cpu: Option<Share>,
    /// Part of its samples on other nodes than the one that it used most; `None` with too few
    /// samples, or without nodes.
    pub off_main_node: Option<Share>,
}

/// A CPU or a node that a thread ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct On {
    /// Its number.
    pub id: u32,
    /// The thread's samples there.
    pub samples: u64,
}

/// The samples of one thread while they are added up.
#[derive(Default)]
struct Sum {
    all: Samples,
    cpus: BTreeMap<u32, Samples>,
    nodes: BTreeMap<u32, Samples>,
}

/// The threads of a capture, with where they ran.
///
/// # Errors
///
/// When the capture does not know the threads or the CPUs: the sentence names the command that
/// records them.
pub fn threads(capture: &Capture, options: &ThreadsOptions) -> Result<Threads, ViewError> {
    Needs::of::<ThreadsView>().check(capture)?;
    let events = capture.meta.events.iter().zip(trust::trust(capture).events).enumerate();
    let events =
        events.map(|(index, (info, trust))| of_event(capture, options, index, Event::of(info, trust)));
    Ok(Threads { run: Run::of(capture), nodes: capture.meta.machine.nodes.len(), events: events.collect() })
}

fn of_event(capture: &Capture, options: &ThreadsOptions, index: usize, event: Event) -> ThreadsEvent {
    let weighing = Weighing::of(capture, index);
    let mut all = Samples::default();
    let mut unknown = 0u64;
    // A thread may change its name: its ids say who it is, and its last row says what it is called.
    let mut threads: BTreeMap<(u32, u32), (&Row, Sum)> = BTreeMap::new();
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let samples = weighing.samples(row);
        all.add(samples);
        let (named, sum) = threads.entry((row.pid, row.tid)).or_insert_with(|| (row, Sum::default()));
        *named = row;
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
    // By weight; threads of equal weight stay in the order of their ids.
    ranked.sort_by(|(_, (_, a)), (_, (_, b))| b.all.order(&a.all));
    let shown = if too_few.is_some() { 0 } else { options.limit.min(ranked.len()) };
    let rest = ranked.split_off(shown);
    let rest_samples = rest.iter().fold(0u64, |sum, (_, (_, thread))| sum.saturating_add(thread.all.count));
    let ranked = ranked.into_iter().map(|((pid, tid), (row, sum))| Thread {
        process: Atom::of(capture, row, Key::Process).value(capture, Key::Process),
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
        notes.push(format!("{unknown} of the samples do not say on which CPU they were taken."));
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

/// The samples of a thread at the place that it used most, at all others, and at all.
struct Used {
    most: Samples,
    others: Samples,
    all: Samples,
}

/// How a thread used some CPUs or nodes; `None` where fewer than `least` samples say it.
fn used(places: &BTreeMap<u32, Samples>, least: u64) -> Option<Used> {
    let all: Samples = places.values().copied().sum();
    let (main, most) = places.iter().max_by(|(_, a), (_, b)| a.order(b)).filter(|_| all.count >= least)?;
    let others = places.iter().filter(|(id, _)| *id != main).map(|(_, samples)| *samples).sum();
    Some(Used { most: *most, others, all })
}

/// CPUs or nodes, the most used first.
fn places(places: &BTreeMap<u32, Samples>) -> Vec<On> {
    let mut ranked: Vec<_> = places.iter().collect();
    ranked.sort_by(|(_, a), (_, b)| b.order(a));
    ranked.into_iter().map(|(id, samples)| On { id: *id, samples: samples.count }).collect()
}
