//! `precise fleet report`: where the samples of a fleet are.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::asked::{FleetAsked, OpenedTables};
use crate::bucket::FleetBucket;
use crate::census::FleetLedger;
use crate::gather::{Gather, NamedSection};
use crate::question::{AskError, FleetKey, FleetQuestion, FleetTier};
use crate::spread::FleetInterval;
use crate::sums::{Gathered as _, SampleSums};
use crate::typed::FleetTypes;

/// Where the samples of a fleet are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetReport {
    /// What was asked, of which nodes, and what was read.
    #[serde(flatten)]
    pub asked: FleetAsked,
    /// The keys of the groups.
    pub by: Vec<FleetKey>,
    /// One entry for each event, unit and kind: rows of different ones are never added up.
    pub events: Vec<FleetEvent>,
}

/// The samples of an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEvent {
    /// The event as the user named it.
    pub event: String,
    /// Unit of weight.
    pub unit: String,
    /// What took the samples, and what its hardware filters.
    pub kind: String,
    /// What became of the event's samples on all nodes, whatever the service.
    pub ledger: FleetLedger,
    /// Nodes with samples of the service; of a thinned tier, at least this many. `None` if all
    /// services were asked for.
    pub nodes: Option<u64>,
    /// Samples; of a thinned tier, an estimate.
    pub samples: u64,
    /// Samples that were read.
    pub samples_read: u64,
    /// Events that the samples stand for.
    pub weight: u64,
    /// Share of the weight whose type is known, of what accesses memory. Present if groups are made
    /// by type or field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<FleetInterval>,
    /// Mean latency of the samples, core cycles; `None` if they have none.
    pub latency_avg: Option<f64>,
    /// Largest latency, core cycles.
    pub latency_max: Option<u32>,
    /// Of the 32 groups of nodes, those with samples. With fewer than two, intervals do not include
    /// the differences between nodes.
    pub node_groups: u32,
    /// The number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// The groups, those with the most weight first.
    pub groups: Vec<FleetGroup>,
    /// What the limit left out.
    pub left_out: FleetLeftOut,
    /// What was left out since memory is bounded.
    pub cut: Option<FleetCut>,
}

/// Samples with the same values of the keys.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetGroup {
    /// One value for each key; null if it is not known.
    pub values: Vec<Option<String>>,
    /// Samples; of a thinned tier, an estimate.
    pub samples: u64,
    /// Samples that were read.
    pub samples_read: u64,
    /// Events that the samples stand for.
    pub weight: u64,
    /// Share of the event's weight.
    pub share: FleetInterval,
    /// Mean latency of the samples, core cycles; `None` if they have none.
    pub latency_avg: Option<f64>,
    /// Largest latency, core cycles.
    pub latency_max: Option<u32>,
}

/// The groups that a limit left out.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct FleetLeftOut {
    /// Number of groups.
    pub groups: u64,
    /// Their samples.
    pub samples: u64,
    /// Their share of the event's weight.
    pub share: FleetInterval,
}

/// Groups for which memory had no room. Their samples are in all totals.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetCut {
    /// How often a group was left out. One may have come back and be counted again.
    pub groups: u64,
    /// At most this share of the event's weight may be missing from a group that is shown.
    pub most: f64,
}

/// Returns where the samples of a fleet are. `types` is only asked if a key is of types. `clock`
/// returns the time since some start; only [`FleetTier::Within`] asks it.
///
/// # Errors
///
/// Returns an error if there are no tables or no samples, or if the tables cannot be read.
pub fn fleet_report(
    bucket: &Arc<dyn FleetBucket>,
    question: &FleetQuestion,
    types: &mut dyn FleetTypes,
    mut clock: impl FnMut() -> Duration,
) -> Result<FleetReport, AskError> {
    let opened = OpenedTables::new(bucket, question, question.span)?;
    let mut read = |tier: u8| answer(bucket, question, &opened, tier, types);
    // Neither hours nor instructions have tiers.
    let whole = question.has(FleetKey::Hour) || question.has_types();
    let tiers = if whole { 0 } else { opened.sources.highest_tier() };
    let rows = |tier: u8| opened.rows(question, tier);
    // All samples may take fewer rows than some of them: where nodes do not matter, days have them
    // by group of nodes.
    let highest = (0..=tiers).min_by_key(|tier| (rows(*tier), *tier)).unwrap_or(0);
    match question.tier {
        FleetTier::Exact => read(0),
        FleetTier::Good(half) => {
            for tier in (1..=highest).rev().filter(|tier| rows(*tier) < rows(0)) {
                match read(tier) {
                    Ok(report) if widest(&report) <= half => return Ok(report),
                    // A thin tier may have none of a few samples.
                    Ok(_) | Err(AskError::NoSamples { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            read(0)
        }
        FleetTier::Within(most) => {
            let start = clock();
            let thin = read(highest);
            let spent = clock().saturating_sub(start);
            // A tier takes as long as it has rows.
            let time = |tier: u8| spent.mul_f64((rows(tier) as f64 / rows(highest).max(1) as f64).min(1e9));
            match (0..highest).find(|tier| spent.saturating_add(time(*tier)) <= most) {
                Some(tier) => read(tier),
                None => thin,
            }
        }
    }
}

/// Returns the longest arm of the intervals of shares that are shown.
fn widest(report: &FleetReport) -> f64 {
    let few = report.events.iter().any(|event| event.too_few.is_some());
    let groups = report.events.iter().flat_map(|event| &event.groups);
    let widest = groups.map(|group| group.share.half_width()).fold(0.0, f64::max);
    if few { f64::INFINITY } else { widest }
}

fn answer(
    bucket: &Arc<dyn FleetBucket>,
    question: &FleetQuestion,
    opened: &OpenedTables,
    tier: u8,
    types: &mut dyn FleetTypes,
) -> Result<FleetReport, AskError> {
    let gathered = Gather::<SampleSums>::read(bucket, &opened.sources, question, tier)?;
    let asked = opened.asked(question, tier, &gathered)?;
    let sections = gathered.named(bucket, &opened.sources, types)?;
    let events = sections.into_iter().map(|section| of_event(section, question, opened)).collect();
    Ok(FleetReport { asked, by: question.by.clone(), events })
}

/// Returns the sums of all rows of a section.
pub(crate) fn total(section: &NamedSection<SampleSums>) -> SampleSums {
    let mut total = section.cut.clone();
    section.groups.iter().for_each(|(_, sums)| total.merge(sums.clone()));
    total
}

fn of_event(
    section: NamedSection<SampleSums>,
    question: &FleetQuestion,
    opened: &OpenedTables,
) -> FleetEvent {
    let total = total(&section);
    let ledger = opened.counted.ledgers.get(&section.key).cloned().unwrap_or_default();
    let NamedSection { key, groups, cut, cut_groups, cut_weight, nodes, typed } = section;
    let typed = typed.map(|(typed, accesses)| typed.spread.share_of(&accesses.spread));
    let timed = |sums: &SampleSums| (sums.timed > 0).then_some(sums.latency_max);
    let group = |(values, sums): &(Vec<Option<String>>, SampleSums)| FleetGroup {
        values: values.clone(),
        samples: sums.samples,
        samples_read: sums.kept,
        weight: sums.weight(),
        share: sums.spread.share_of(&total.spread),
        latency_avg: sums.average(),
        latency_max: timed(sums),
    };
    let shown = question.limit.min(groups.len());
    let (kept, rest) = groups.split_at(shown);
    let mut more = cut.clone();
    rest.iter().for_each(|(_, sums)| more.merge(sums.clone()));
    let left_out = FleetLeftOut {
        groups: (rest.len() as u64).saturating_add(cut_groups),
        samples: more.samples,
        share: more.spread.share_of(&total.spread),
    };
    // A group that has several functions or nodes of one name may lack something of each.
    let by = |key| question.has(key);
    let several =
        by(FleetKey::Function) || by(FleetKey::Module) || by(FleetKey::Node) && !by(FleetKey::Cluster);
    let missing = if several { cut.weight() } else { cut_weight };
    let most = missing as f64 / (total.weight() as f64).max(1.0);
    FleetEvent {
        event: key.event,
        unit: key.unit,
        kind: key.kind,
        ledger,
        nodes: nodes.filter(|_| question.service.is_some()),
        samples: total.samples,
        samples_read: total.kept,
        weight: total.weight(),
        typed,
        latency_avg: total.average(),
        latency_max: timed(&total),
        node_groups: total.spread.filled(),
        too_few: (total.kept < question.min_samples).then_some(question.min_samples),
        groups: kept.iter().map(group).collect(),
        left_out,
        cut: (cut_groups > 0).then_some(FleetCut { groups: cut_groups, most }),
    }
}

/// Returns the answer of a tier.
#[cfg(test)]
pub(crate) fn of_tier(bucket: &Arc<dyn FleetBucket>, question: &FleetQuestion, tier: u8) -> FleetReport {
    let opened = OpenedTables::new(bucket, question, question.span).unwrap();
    answer(bucket, question, &opened, tier, &mut crate::typed::NoFleetTypes).unwrap()
}
