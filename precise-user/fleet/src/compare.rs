//! `precise fleet diff`: what changed in a fleet from one time to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::asked::{FleetAsked, OpenedTables};
use crate::bucket::FleetBucket;
use crate::census::FleetLedger;
use crate::fold::EventKey;
use crate::gather::{Gather, NamedSection};
use crate::question::{AskError, FleetKey, FleetQuestion};
use crate::report::total;
use crate::span::FleetSpan;
use crate::spread::{FleetInterval, Spread, corrected, growth, share_change};
use crate::sums::{Gathered as _, SampleSums};
use crate::typed::FleetTypes;
use precise_model::CompactSort as _;

/// A difference counts as real if chance and nodes make one as large with at most this probability.
const SIGNIFICANT: f64 = 0.05;
/// The number of samples that a group must have had in both times together, if nothing changed, to
/// be tested (Cochran 1954).
const MIN_EXPECTED: f64 = 5.0;

/// What changed in a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetDiff {
    /// The time before.
    pub before: FleetAsked,
    /// The time after.
    pub after: FleetAsked,
    /// The keys of the groups.
    pub by: Vec<FleetKey>,
    /// One entry for each event, unit and kind that both times have.
    pub events: Vec<FleetEventDiff>,
    /// Events of one time only, one sentence each.
    pub notes: Vec<String>,
}

/// The change of an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEventDiff {
    /// The event as the user named it.
    pub event: String,
    /// Unit of weight.
    pub unit: String,
    /// What took the samples, and what its hardware filters.
    pub kind: String,
    /// The sums before and after.
    pub totals: [FleetTotals; 2],
    /// Growth of the events in a second of a node, 0.1 for a tenth, over all nodes that sampled the
    /// event; `None` if one of the rates is 0.
    pub growth: Option<FleetInterval>,
    /// The number of samples that each time needs. Present if one has fewer.
    pub too_few: Option<u64>,
    /// Of the 32 groups of nodes, those with samples at both times. With fewer than two, intervals
    /// do not include the differences between nodes.
    pub node_groups: u32,
    /// The groups: those that changed first, then by the size of the change.
    pub groups: Vec<FleetDifference>,
    /// The number of groups that the limit left out, and how many of these changed.
    pub left_out: [u64; 2],
    /// Groups for which memory had no room, before and after.
    pub cut: [u64; 2],
}

/// The sums of an event in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetTotals {
    /// Samples.
    pub samples: u64,
    /// Events that the samples stand for.
    pub weight: u64,
    /// Nodes with samples of the service; `None` if all services were asked for.
    pub nodes: Option<u64>,
    /// Events in a second of a node; `None` if the time is not known.
    pub rate: Option<f64>,
    /// Mean latency of the samples, core cycles; `None` if they have none.
    pub latency_avg: Option<f64>,
    /// What became of the event's samples on all nodes.
    pub ledger: FleetLedger,
}

/// A group before and after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetDifference {
    /// One value for each key; null if it is not known.
    pub values: Vec<Option<String>>,
    /// Samples before and after.
    pub samples: [u64; 2],
    /// Share of the event's weight before.
    pub before: FleetInterval,
    /// Share of the event's weight after.
    pub after: FleetInterval,
    /// The difference of the shares.
    pub change: FleetInterval,
    /// The probability that chance and nodes alone make such a difference, corrected for the number
    /// of groups (Holm); `None` if there are too few samples.
    pub p: Option<f64>,
    /// Whether the difference is real: `p` is at most 5 %.
    pub changed: bool,
    /// Mean latencies before and after, core cycles.
    pub latency_avg: [Option<f64>; 2],
}

/// Returns what changed in a fleet from one span to another.
///
/// # Errors
///
/// Returns an error if there are no tables or no samples of one of the spans, or if the tables
/// cannot be read.
pub fn fleet_diff(
    bucket: &Arc<dyn FleetBucket>,
    question: &FleetQuestion,
    [before, after]: [FleetSpan; 2],
    types: &mut dyn FleetTypes,
) -> Result<FleetDiff, AskError> {
    let mut side = |span: FleetSpan| -> Result<Side, AskError> {
        let opened = OpenedTables::new(bucket, question, span)?;
        let gathered = Gather::<SampleSums>::read(bucket, &opened.sources, question, 0)?;
        let asked = opened.asked(question, 0, &gathered)?;
        let sections = gathered.named(bucket, &opened.sources, types)?;
        let sections = sections.into_iter().map(|section| (section.key.clone(), section)).collect();
        Ok(Side { asked, sections, ledgers: opened.counted.ledgers })
    };
    let (mut before, mut after) = (side(before)?, side(after)?);
    let keys: Vec<EventKey> = before.sections.keys().chain(after.sections.keys()).cloned().collect();
    let (mut events, mut notes) = (Vec::new(), Vec::new());
    for key in std::collections::BTreeSet::from_iter(keys) {
        match (before.sections.remove(&key), after.sections.remove(&key)) {
            (Some(base), Some(new)) => events.push(of_event(
                question,
                key.clone(),
                [(base, before.ledgers.remove(&key)), (new, after.ledgers.remove(&key))],
            )),
            (base, _) => {
                let when = if base.is_some() { "before" } else { "after" };
                let EventKey { event, kind, .. } = key;
                notes.push(format!("Only {when}: {event} ({kind}). Samples of two kinds are not compared."));
            }
        }
    }
    Ok(FleetDiff { before: before.asked, after: after.asked, by: question.by.clone(), events, notes })
}

/// What was read of one of the spans.
struct Side {
    asked: FleetAsked,
    sections: BTreeMap<EventKey, NamedSection<SampleSums>>,
    ledgers: BTreeMap<EventKey, FleetLedger>,
}

fn of_event(
    question: &FleetQuestion,
    key: EventKey,
    sides: [(NamedSection<SampleSums>, Option<FleetLedger>); 2],
) -> FleetEventDiff {
    let sums = [&sides[0].0, &sides[1].0].map(total);
    let cut = [sides[0].0.cut_groups, sides[1].0.cut_groups];
    let nodes =
        [sides[0].0.nodes, sides[1].0.nodes].map(|nodes| nodes.filter(|_| question.service.is_some()));
    let mut groups: BTreeMap<Vec<Option<String>>, [SampleSums; 2]> = BTreeMap::new();
    let mut ledgers = [FleetLedger::default(), FleetLedger::default()];
    for (at, (section, ledger)) in sides.into_iter().enumerate() {
        for (values, sums) in section.groups {
            if let Some(place) = groups.entry(values).or_default().get_mut(at) {
                *place = sums;
            }
        }
        if let Some(place) = ledgers.get_mut(at) {
            *place = ledger.unwrap_or_default();
        }
    }
    let wholes = [&sums[0].spread, &sums[1].spread];
    let growth = growth((wholes[0], &ledgers[0].times), (wholes[1], &ledgers[1].times));
    let mut list: Vec<FleetDifference> =
        groups.into_iter().map(|(values, of)| difference(values, &of, wholes, &sums)).collect();
    let probabilities: Vec<Option<f64>> = list.iter().map(|group| group.p).collect();
    for (group, p) in list.iter_mut().zip(corrected(&probabilities)) {
        group.p = p;
        group.changed = p.is_some_and(|p| p <= SIGNIFICANT);
    }
    list.compact_sort_by(|a, b| {
        let size = |group: &FleetDifference| group.change.value.abs();
        b.changed.cmp(&a.changed).then(size(b).total_cmp(&size(a))).then_with(|| a.values.cmp(&b.values))
    });
    let rest = list.split_off(question.limit.min(list.len()));
    let least = sums[0].kept.min(sums[1].kept);
    let both = |at: usize| wholes.iter().all(|whole| whole.groups.get(at).is_some_and(|sum| *sum > 0));
    let node_groups = (0..crate::spread::GROUPS).filter(|at| both(*at)).count() as u32;
    let mut totals = sums.iter().zip(nodes).zip(ledgers).map(|((sums, nodes), ledger)| {
        let seconds = ledger.sampled_ns as f64 / 1e9;
        FleetTotals {
            samples: sums.samples,
            weight: sums.weight(),
            nodes,
            rate: (seconds > 0.0).then(|| sums.weight() as f64 / seconds),
            latency_avg: sums.average(),
            ledger,
        }
    });
    let none = || FleetTotals {
        samples: 0,
        weight: 0,
        nodes: None,
        rate: None,
        latency_avg: None,
        ledger: FleetLedger::default(),
    };
    let totals = [(); 2].map(|()| totals.next().unwrap_or_else(none));
    FleetEventDiff {
        event: key.event,
        unit: key.unit,
        kind: key.kind,
        totals,
        growth,
        too_few: (least < question.min_samples).then_some(question.min_samples),
        node_groups,
        left_out: [rest.len() as u64, rest.iter().filter(|group| group.changed).count() as u64],
        groups: list,
        cut,
    }
}

/// Compares a group, not corrected for the number of groups.
fn difference(
    values: Vec<Option<String>>,
    of: &[SampleSums; 2],
    wholes: [&Spread; 2],
    sums: &[SampleSums; 2],
) -> FleetDifference {
    let [before, after] = of;
    let found = share_change([&before.spread, wholes[0]], [&after.spread, wholes[1]]);
    let part = (before.kept + after.kept) as f64;
    let all = [sums[0].kept as f64, sums[1].kept as f64];
    let expected = part * all[0].min(all[1]) / (all[0] + all[1]).max(1.0);
    FleetDifference {
        values,
        samples: [before.samples, after.samples],
        before: before.spread.share_of(wholes[0]),
        after: after.spread.share_of(wholes[1]),
        change: found.change,
        p: (expected >= MIN_EXPECTED).then_some(found.p),
        changed: false,
        latency_avg: [before.average(), after.average()],
    }
}
