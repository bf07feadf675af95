//! `precise fleet latency`: how long the accesses of a fleet take.

use std::sync::Arc;

use precise_common::latency::RELATIVE_ERROR;
use schemars::JsonSchema;
use serde::Serialize;

use crate::asked::{FleetAsked, OpenedTables};
use crate::bucket::FleetBucket;
use crate::census::FleetLedger;
use crate::gather::{Gather, NamedSection};
use crate::question::{AskError, FleetKey, FleetQuestion};
use crate::report::FleetLeftOut;
use crate::spread::{FleetInterval, FleetPercentile, percentile};
use crate::sums::{Gathered as _, LatencySums};
use crate::typed::NoFleetTypes;

/// How long the accesses of a fleet take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetLatency {
    /// What was asked, of which nodes, and what was read.
    #[serde(flatten)]
    pub asked: FleetAsked,
    /// The keys of the groups; none for one distribution of everything.
    pub by: Vec<FleetKey>,
    /// How much a percentile may differ from that of the same samples, since latencies are counted
    /// in buckets.
    pub relative_error: f64,
    /// One entry for each event, unit and kind.
    pub events: Vec<FleetLatencyEvent>,
}

/// The latencies of an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetLatencyEvent {
    /// The event as the user named it.
    pub event: String,
    /// Unit of weight.
    pub unit: String,
    /// What took the samples, and what its hardware filters.
    pub kind: String,
    /// What became of the event's samples on all nodes, whatever the service.
    pub ledger: FleetLedger,
    /// Of the 32 groups of nodes, those with samples. With fewer than two, intervals do not include
    /// the differences between nodes.
    pub node_groups: u32,
    /// The number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// All samples with a latency.
    pub all: FleetDistribution,
    /// The groups, those with the most weight first.
    pub groups: Vec<FleetDistribution>,
    /// What the limit left out, and what memory had no room for.
    pub left_out: FleetLeftOut,
}

/// The latencies of a group. A percentile is `None` if there are too few samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetDistribution {
    /// One value for each key; null if it is not known. None for all samples.
    pub values: Vec<Option<String>>,
    /// Samples with a latency.
    pub samples: u64,
    /// Events that they stand for.
    pub weight: u64,
    /// Share of the weight of all samples with a latency.
    pub share: FleetInterval,
    /// The latency that half of the accesses do not exceed.
    pub p50: Option<FleetPercentile>,
    /// The latency that 90 % of the accesses do not exceed.
    pub p90: Option<FleetPercentile>,
    /// The latency that 99 % of the accesses do not exceed.
    pub p99: Option<FleetPercentile>,
    /// The latency that 99.9 % of the accesses do not exceed.
    pub p999: Option<FleetPercentile>,
}

/// Returns how long the accesses of a fleet take. Latencies have no tiers.
///
/// # Errors
///
/// Returns an error if there are no tables or no latencies, or if the tables cannot be read.
pub fn fleet_latency(
    bucket: &Arc<dyn FleetBucket>,
    question: &FleetQuestion,
) -> Result<FleetLatency, AskError> {
    if question.has_types() {
        return Err(AskError::NoTypesOfLatencies);
    }
    let opened = OpenedTables::new(bucket, question, question.span)?;
    let gathered = Gather::<LatencySums>::read(bucket, &opened.sources, question, 0)?;
    let asked = opened.asked(question, 0, &gathered)?;
    let sections = gathered.named(bucket, &opened.sources, &mut NoFleetTypes)?;
    Ok(FleetLatency {
        asked,
        by: question.by.clone(),
        relative_error: RELATIVE_ERROR,
        events: sections.into_iter().map(|section| of_event(section, question, &opened)).collect(),
    })
}

fn of_event(
    section: NamedSection<LatencySums>,
    question: &FleetQuestion,
    opened: &OpenedTables,
) -> FleetLatencyEvent {
    let ledger = opened.counted.ledgers.get(&section.key).cloned().unwrap_or_default();
    let NamedSection { key, groups, cut, cut_groups, .. } = section;
    let mut total = LatencySums::default();
    let mut add = |sums: &LatencySums| total.merge(sums.clone());
    add(&cut);
    groups.iter().for_each(|(_, sums)| add(sums));
    let of = |values: &[Option<String>], sums: &LatencySums| {
        let at = |fraction| percentile(&sums.buckets, &sums.whole, fraction);
        FleetDistribution {
            values: values.to_vec(),
            samples: sums.samples,
            weight: sums.weight(),
            share: sums.whole.share_of(&total.whole),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
        }
    };
    // Without keys, the only group is that of all samples.
    let shown = if question.by.is_empty() { 0 } else { question.limit.min(groups.len()) };
    let (kept, rest) = groups.split_at(shown);
    let rest = if question.by.is_empty() { &[][..] } else { rest };
    let mut more = cut;
    rest.iter().for_each(|(_, sums)| more.merge(sums.clone()));
    FleetLatencyEvent {
        event: key.event,
        unit: key.unit,
        kind: key.kind,
        ledger,
        node_groups: total.whole.filled(),
        too_few: (total.samples < question.min_samples).then_some(question.min_samples),
        all: of(&[], &total),
        groups: kept.iter().map(|(values, sums)| of(values, sums)).collect(),
        left_out: FleetLeftOut {
            groups: (rest.len() as u64).saturating_add(cut_groups),
            samples: more.samples,
            share: more.whole.share_of(&total.whole),
        },
    }
}
