//! Which nodes there are, and what became of their samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use precise_capture::FlatColumn;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::{FleetBucket, FleetError};
use crate::fold::EventKey;
use crate::met::{InCluster, Met, MetNodes};
use crate::part::{FleetBatch, FleetPick, read_part};
use crate::sources::{PartChoice, SpanSources};
use crate::spread::GROUPS;
use crate::tables::{CLUSTER, EVENT, FleetTable, KIND, LEDGER, NODE, NODE_GROUP, UNIT};

/// The number of nodes that are named.
const NAMED: usize = 5;

/// The nodes of a fleet in a span of time.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FleetCensus {
    /// Nodes that reported in the 24 hours before; `None` if there are no tables of these.
    pub expected: Option<u64>,
    /// Nodes that reported in the span.
    pub reported: u64,
    /// Nodes that were expected, or reported.
    pub known: u64,
    /// Nodes that were expected and did not report.
    pub silent: u64,
    /// The first of the silent nodes, by name.
    pub silent_nodes: Vec<String>,
    /// Nodes of which the verdict of at least one capture is not precise.
    pub degraded: u64,
    /// The first of these nodes, by name, and what was found.
    pub degraded_nodes: Vec<FleetFinding>,
}

/// A node whose samples are not precise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetFinding {
    /// The node.
    pub node: String,
    /// The first finding; `None` if there is none.
    pub finding: Option<String>,
}

/// What became of the samples of an event, on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FleetLedger {
    /// Nodes that took samples of the event.
    pub nodes: u64,
    /// Captures.
    pub captures: u64,
    /// Samples that reached the program.
    pub arrived: u64,
    /// Samples that were added to the table.
    pub kept: u64,
    /// Samples that the filter did not want.
    pub rejected: u64,
    /// Samples that the program could not keep.
    pub lost: u64,
    /// Samples that did not reach the program.
    pub missed: u64,
    /// Samples that were kept and that user space lost.
    pub discarded: u64,
    /// Samples in the tables of the fleet.
    pub in_tables: u64,
    /// Samples of which the ledger does not say what became.
    pub unaccounted: u64,
    /// Whether the ledger closes: a sample for each capture may be off, where the numbers of a
    /// capture are divided between hours.
    pub closes: bool,
    /// The time that the nodes sampled, added up, ns.
    pub sampled_ns: u64,
    /// The same by group of nodes.
    #[serde(skip)]
    pub times: [u64; GROUPS],
}

impl FleetLedger {
    fn close(&mut self) {
        let ends = self.kept.saturating_add(self.rejected).saturating_add(self.lost);
        let stored = self.kept.saturating_sub(self.discarded);
        self.unaccounted = self.arrived.abs_diff(ends).saturating_add(stored.abs_diff(self.in_tables));
        self.closes = self.unaccounted <= self.captures;
    }
}

/// The nodes of a span, and the ledgers of events.
#[derive(Debug, Default)]
pub(crate) struct CountedNodes {
    pub census: FleetCensus,
    pub ledgers: BTreeMap<EventKey, FleetLedger>,
}

/// The columns that the ledger is read from.
const NUMBERS: [&str; 9] =
    ["captures", "sampled_ns", "arrived", "kept", "rejected", "lost", "missed", "discarded", "samples"];

fn column(name: &str) -> Option<FlatColumn> {
    LEDGER.into_iter().find(|column| column.name == name)
}

/// Returns the number of a row's node. Cluster and node are the first columns.
fn node(nodes: &mut MetNodes, met: &mut Met<InCluster>, batch: &FleetBatch<'_>, row: usize) -> Option<u32> {
    Some(met.node(nodes, [batch.column(0)?, batch.column(1)?], row))
}

/// Counts the nodes of a span. `before` is the day before; of the events, only those of `event`.
pub(crate) fn count(
    bucket: &Arc<dyn FleetBucket>,
    sources: &SpanSources,
    before: &SpanSources,
    event: Option<&str>,
) -> Result<CountedNodes, FleetError> {
    let mut nodes = MetNodes::default();
    let (mut expected, mut reported) = (FxHashSet::default(), FxHashSet::default());
    for source in before.parts(PartChoice::of_table(FleetTable::Ledger)) {
        let mut met = Met::default();
        read_part(bucket, source.part, &FleetPick::default(), &[CLUSTER, NODE], |batch| {
            if batch.is_first() {
                met = Met::default();
            }
            expected.extend(batch.rows().filter_map(|row| node(&mut nodes, &mut met, batch, row)));
        })?;
    }
    let mut degraded: FxHashMap<u32, Option<String>> = FxHashMap::default();
    let mut of_events: Vec<(EventKey, FleetLedger, FxHashSet<u32>)> = Vec::new();
    let mut columns = vec![CLUSTER, NODE, NODE_GROUP, EVENT, UNIT, KIND];
    columns.extend(["precise", "finding"].into_iter().chain(NUMBERS).filter_map(column));
    for source in sources.parts(PartChoice::of_table(FleetTable::Ledger)) {
        let mut met = Met::default();
        read_part(bucket, source.part, &FleetPick::default(), &columns, |batch| {
            if batch.is_first() {
                met = Met::default();
            }
            let mut last = None;
            for row in batch.rows() {
                let Some(number) = node(&mut nodes, &mut met, batch, row) else { continue };
                reported.insert(number);
                if event.is_some_and(|event| batch.text(3, row) != Some(event)) {
                    continue;
                }
                let keys = [3, 4, 5].map(|at| batch.number(at, row));
                let place = match last {
                    Some((of, place)) if of == keys => place,
                    _ => event_place(&mut of_events, batch, row),
                };
                last = Some((keys, place));
                if let Some((_, ledger, of)) = of_events.get_mut(place) {
                    add(ledger, batch, row);
                    of.insert(number);
                }
                if batch.number(6, row) == Some(0) {
                    let finding = degraded.entry(number).or_default();
                    *finding = finding.take().or_else(|| batch.text(7, row).map(str::to_owned));
                }
            }
        })?;
    }
    let silent: FxHashSet<u32> = expected.difference(&reported).copied().collect();
    let named = nodes.shown(&degraded.keys().copied().collect(), NAMED);
    let finding = |(node, number): (String, u32)| FleetFinding {
        node,
        finding: degraded.get(&number).cloned().flatten(),
    };
    let census = FleetCensus {
        expected: (!before.hours.is_empty()).then_some(expected.len() as u64),
        reported: reported.len() as u64,
        known: (reported.len() + silent.len()) as u64,
        silent: silent.len() as u64,
        silent_nodes: nodes.shown(&silent, NAMED).into_iter().map(|(node, _)| node).collect(),
        degraded: degraded.len() as u64,
        degraded_nodes: named.into_iter().map(finding).collect(),
    };
    let closed = |(key, mut ledger, of): (EventKey, FleetLedger, FxHashSet<u32>)| {
        ledger.nodes = of.len() as u64;
        ledger.close();
        (key, ledger)
    };
    Ok(CountedNodes { census, ledgers: of_events.into_iter().map(closed).collect() })
}

/// Returns the place of the event of a row in a list, which it is added to.
fn event_place(
    list: &mut Vec<(EventKey, FleetLedger, FxHashSet<u32>)>,
    batch: &FleetBatch<'_>,
    row: usize,
) -> usize {
    let [event, unit, kind] = [3, 4, 5].map(|at| batch.text(at, row).unwrap_or_default().to_owned());
    let key = EventKey { event, unit, kind };
    list.iter().position(|(other, ..)| *other == key).unwrap_or_else(|| {
        list.push((key, FleetLedger::default(), FxHashSet::default()));
        list.len() - 1
    })
}

fn add(ledger: &mut FleetLedger, batch: &FleetBatch<'_>, row: usize) {
    let FleetLedger {
        captures, sampled_ns, arrived, kept, rejected, lost, missed, discarded, in_tables, ..
    } = ledger;
    let sums = [captures, sampled_ns, arrived, kept, rejected, lost, missed, discarded, in_tables];
    let number = |at: usize| batch.number(at, row).unwrap_or(0);
    for (at, sum) in sums.into_iter().enumerate() {
        *sum = sum.saturating_add(number(8 + at));
    }
    if let Some(time) = ledger.times.get_mut(number(2) as usize % GROUPS) {
        *time = time.saturating_add(number(9));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_closes_or_says_by_how_much_it_does_not() {
        let mut ledger = FleetLedger {
            captures: 2,
            arrived: 100,
            kept: 60,
            rejected: 30,
            lost: 10,
            discarded: 5,
            in_tables: 55,
            ..FleetLedger::default()
        };
        ledger.close();
        assert!(ledger.closes && ledger.unaccounted == 0);
        (ledger.arrived, ledger.in_tables) = (107, 50);
        ledger.close();
        assert!(!ledger.closes && ledger.unaccounted == 12);
        assert!(NUMBERS.into_iter().chain(["precise", "finding"]).all(|name| column(name).is_some()));
    }
}
