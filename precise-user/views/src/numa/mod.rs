//! `precise numa`: which NUMA node's CPUs read which node's memory, as far as samples tell.
//!
//! An access is remote if the CPU is on one node, and the memory on another:
//!
//! ```
//! use precise_model::Node;
//! use precise_model::testing::{CaptureBuilder, L1, RAM, REMOTE_RAM};
//! use precise_views::numa::{ServingPlace, numa};
//!
//! let mut made = CaptureBuilder::new();
//! made.meta().machine.nodes = vec![Node { id: 0, cpus: vec![0] }, Node { id: 1, cpus: vec![1] }];
//! made.cell().samples(800).latency(5).data_src(L1).cpu(1);
//! made.cell().samples(50).latency(300).data_src(RAM).cpu(1);
//! made.cell().samples(150).latency(600).data_src(REMOTE_RAM).cpu(1);
//!
//! let result = numa(&made.build(), None)?;
//!
//! let event = &result.events[0];
//! // 150 of the 200 accesses that reach memory are remote. Cache hits do not count here.
//! assert_eq!(event.remote_share.expect("enough samples").value, 0.75);
//! // With two nodes, "remote" names the node: the CPUs of node 1 read the memory of node 0.
//! let to = &event.from.iter().find(|from| from.node == Some(1)).expect("was sampled").to;
//! let node_0 = to.iter().find(|to| to.place == ServingPlace::Memory(0)).expect("was read");
//! assert_eq!((node_0.samples, node_0.average), (150, Some(600.0)));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::NumaView;

use std::collections::BTreeMap;

use precise_common::data_src::{DataSource, MemoryLevel};
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples, Share, Weight};
use super::weighing::Weighing;
use super::{ViewError, trust};
use precise_model::digits::thousands;
use precise_model::{Capture, Node, Row};

/// The result of `precise numa`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Numa {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// NUMA nodes of the machine that was sampled; empty if the capture does not contain them.
    pub nodes: Vec<Node>,
    /// One entry per event.
    pub events: Vec<NumaEvent>,
}

/// The accesses of one event by NUMA node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NumaEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of accesses whose samples tell where they were served.
    pub accesses: u64,
    /// Number of accesses that were served by memory, of whichever node.
    pub memory: u64,
    /// Number of accesses that were served by another node's memory.
    pub remote: u64,
    /// Fraction of the accesses to memory that went to another node; `None` if there are too few
    /// samples.
    pub remote_share: Option<Share>,
    /// Fraction of all accesses that went to another node's memory; `None` if there are too few
    /// samples.
    pub remote_of_accesses: Option<Share>,
    /// Accesses by the node of the CPU, one row per node.
    pub from: Vec<FromNode>,
    /// Number of samples that shares need. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Number of samples that are not memory accesses, or do not tell where they were served.
    pub without: u64,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The accesses from the CPUs of one node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FromNode {
    /// Node of the CPUs; `None` if the capture does not contain it.
    pub node: Option<u32>,
    /// Number of accesses from these CPUs.
    pub accesses: u64,
    /// Places that served these accesses; places without accesses are left out.
    pub to: Vec<ServedAccesses>,
}

/// Accesses that were served by one place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServedAccesses {
    /// The place.
    pub place: ServingPlace,
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the accesses from these CPUs; `None` if there are too few samples.
    pub share: Option<Share>,
    /// Average latency, in core cycles; `None` without latencies.
    pub average: Option<f64>,
}

/// A place that serves an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServingPlace {
    /// Memory of this node.
    Memory(u32),
    /// Memory of the CPU's own node, if the number of that node is unknown.
    OwnMemory,
    /// Memory of another node. With more than two nodes a sample does not tell which one.
    OtherMemory,
    /// A cache of another node.
    OtherCache,
    /// A cache of another core or of another node; the hardware does not report which.
    RemoteCache,
    /// A cache of the CPU's own node; the access did not reach memory.
    Cache,
    /// Another place: I/O, uncached memory, or a sample that only tells which levels were missed.
    Elsewhere,
}

/// Returns the accesses of a capture by NUMA node.
///
/// # Errors
///
/// Returns an error if the capture lacks data sources or CPUs. The message names the command that
/// records them.
pub fn numa(capture: &Capture, min_samples: Option<u64>) -> Result<Numa, ViewError> {
    Needs::of::<NumaView>().check(capture)?;
    let min = min_samples.unwrap_or(MIN_SAMPLES);
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events.map(|(index, (info, trust))| {
        let mut result = of_event(capture, index, min, EventSummary::of(info, trust));
        result.notes.extend(about::latency_limits(info));
        result
    });
    Ok(Numa { run: Run::of(capture), nodes: capture.meta.machine.nodes.clone(), events: events.collect() })
}

#[derive(Default)]
struct Sum {
    samples: Samples,
    latency: Weight,
    timed: Samples,
}

fn of_event(capture: &Capture, index: usize, min: u64, event: EventSummary) -> NumaEvent {
    let machine = &capture.meta.machine;
    let weighing = Weighing::of(capture, index);
    let mut table: BTreeMap<Option<u32>, BTreeMap<ServingPlace, Sum>> = BTreeMap::new();
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let node = row.cpu.and_then(|cpu| machine.node_of(cpu.into()));
        let Some(place) = place(row, node, &machine.nodes) else { continue };
        let sum = table.entry(node).or_default().entry(place).or_default();
        sum.samples.add(weighing.samples(row));
        if row.measures.latency_max > 0 {
            sum.latency.add(weighing.latency(row));
            sum.timed.add(weighing.samples(row));
        }
    }
    let total = |places: &BTreeMap<ServingPlace, Sum>, wanted: &dyn Fn(ServingPlace) -> bool| {
        places.iter().filter(|(place, _)| wanted(**place)).map(|(_, sum)| sum.samples).sum::<Samples>()
    };
    let all = |wanted: &dyn Fn(Option<u32>, ServingPlace) -> bool| {
        table.iter().map(|(node, places)| total(places, &|p| wanted(*node, p))).sum::<Samples>()
    };
    let other = |node: Option<u32>, place| match place {
        ServingPlace::Memory(id) => node != Some(id),
        place => place == ServingPlace::OtherMemory,
    };
    let memory = all(&|_, place| {
        matches!(place, ServingPlace::Memory(_) | ServingPlace::OwnMemory | ServingPlace::OtherMemory)
    });
    let remote = all(&other);
    let accesses = all(&|_, _| true);
    let without = super::samples(capture, index).saturating_sub(accesses.count);
    let share = |part: Samples, whole: Samples| (whole.count >= min).then(|| part.share_of(whole));
    let from = table.iter().map(|(node, places)| {
        let accesses = total(places, &|_| true);
        let served = |(place, sum): (&ServingPlace, &Sum)| ServedAccesses {
            place: *place,
            samples: sum.samples.count,
            share: share(sum.samples, accesses),
            average: (sum.timed.count > 0).then(|| sum.latency.sum / sum.timed.weight.sum),
        };
        FromNode { node: *node, accesses: accesses.count, to: places.iter().map(served).collect() }
    });
    let from: Vec<_> = from.collect();
    let mut notes = Vec::new();
    match machine.nodes.len() {
        0 => notes.push(
            "The capture does not tell which CPU belongs to which node: all CPUs share one row, and \
             memory of another node has no number."
                .to_owned(),
        ),
        1 => notes.push("This machine has one node, so all memory is local to every CPU.".to_owned()),
        2 => {}
        _ if remote.count > 0 => notes.push(
            "With more than two nodes, a sample does not tell which node's memory was remote.".to_owned(),
        ),
        _ => {}
    }
    if without > 0 {
        notes.push(format!(
            "{} of the samples do not report the level that served the access and are in no row.",
            thousands(without)
        ));
    }
    NumaEvent {
        event,
        accesses: accesses.count,
        memory: memory.count,
        remote: remote.count,
        remote_share: share(remote, memory),
        remote_of_accesses: share(remote, accesses),
        from,
        too_few: (accesses.count < min).then_some(min),
        without,
        notes,
    }
}

/// Returns the place that served an access from a CPU of `node`; `None` if the data source does not
/// tell.
fn place(row: &Row, node: Option<u32>, nodes: &[Node]) -> Option<ServingPlace> {
    let source = row.data_source();
    let DataSource { level, remote, hops, miss, .. } = source;
    if level == MemoryLevel::Na {
        return None;
    }
    // Hops: 1 means another core of the same node; 2 and more mean other nodes.
    let far = remote && hops != 1;
    Some(match level {
        _ if miss => ServingPlace::Elsewhere,
        MemoryLevel::Ram | MemoryLevel::Pmem | MemoryLevel::Cxl => {
            let mut others = nodes.iter().filter(|other| Some(other.id) != node);
            match (far, node, others.next(), others.next()) {
                (false, Some(node), ..) if level != MemoryLevel::Cxl => ServingPlace::Memory(node),
                (false, ..) => ServingPlace::OwnMemory,
                (true, Some(_), Some(other), None) => ServingPlace::Memory(other.id),
                (true, ..) => ServingPlace::OtherMemory,
            }
        }
        MemoryLevel::Io | MemoryLevel::Uncached => ServingPlace::Elsewhere,
        _ if remote && hops >= 2 => ServingPlace::OtherCache,
        _ if remote && hops == 0 => ServingPlace::RemoteCache,
        _ => ServingPlace::Cache,
    })
}
