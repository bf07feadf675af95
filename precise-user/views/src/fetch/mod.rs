//! `precise fetch`: finds the code that starves the front end. Each AMD fetch sample contains the
//! complete outcome of a fetch; each Intel event reports one fact, for retired instructions. Both
//! are shown in the same table, and facts that a machine does not report are unknown.
//!
//! A fetch that misses the instruction cache leaves the decoder without work:
//!
//! ```
//! use precise_common::ibs::OutcomeBits as Bits;
//! use precise_model::testing::CaptureBuilder;
//! use precise_model::{Outcome, PmuKind, TaggedOf};
//! use precise_views::fetch::{FetchFact, FetchOptions, fetch};
//!
//! let mut made = CaptureBuilder::new();
//! let event = &mut made.meta().events[0];
//! (event.pmu, event.tagged) = (PmuKind::IbsFetch, Some(TaggedOf::Fetch));
//! let good = Bits::COMPLETED | Bits::PHYSICAL_VALID;
//! for (function, samples, latency, bits) in
//!     [("sum", 300, 5, good), ("parse", 100, 45, good | Bits::IC_MISS)]
//! {
//!     let cell = made.cell().samples(samples).latency(latency);
//!     cell.code(0x1000, "/bin/app", function, "", 0).row().outcome = Some(Outcome::Fetch(bits));
//! }
//!
//! let result = fetch(&made.build(), &FetchOptions::default())?;
//!
//! let misses = result.sections[0].facts.iter().find(|known| known.fact == FetchFact::IcMiss);
//! assert_eq!(misses.and_then(|known| known.samples), Some(100));
//! // `parse` has a quarter of the fetches, but 4,500 of the 6,000 cycles that fetches took.
//! let parse = &result.sections[0].groups[0];
//! assert_eq!((parse.values[0].text(), parse.share.value), ("parse".to_owned(), 0.75));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::Fetches;

use std::collections::BTreeMap;

use precise_common::ibs::OutcomeBits as Bits;
use precise_common::latency;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::again::Again;
use super::grouping::{Grouping, Sum};
use super::needs::{self, Needs};
use super::stats::{MIN_SAMPLES, Samples, Share, Weight};
use super::{ViewError, trust};
use precise_model::CpuId;
use precise_model::Preset;
use precise_model::digits::counted;
use precise_model::keys::{Key, Sort};
use precise_model::values::{RawValue, Value};
use precise_model::{Capture, Dimension, EventInfo, Outcome, PmuKind, Row};

/// Options for `precise fetch`.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchOptions {
    /// Group keys; `None` groups by function.
    pub by: Option<Vec<Key>>,
    /// Number of groups to keep.
    pub limit: usize,
    /// Minimum number of samples for a ranking.
    pub min_samples: u64,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self { by: None, limit: 20, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise fetch`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FetchView {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Group keys.
    pub by: Vec<Key>,
    /// One section per IBS event, and one for all front-end events of Intel.
    pub sections: Vec<FetchTable>,
}

/// What the samples are, and therefore what shares are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FetchBasis {
    /// Fetches with any outcome. Shares are fractions of the attempted fetches.
    Fetches,
    /// Retired instructions that followed a front-end problem. Each event is a basis of its own,
    /// and rates are unknown.
    Retired,
}

/// One table of the view.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FetchTable {
    /// The events of the table. Only a table of Intel events has several.
    pub events: Vec<EventSummary>,
    /// What the samples of these events are.
    pub basis: FetchBasis,
    /// Number of all samples.
    pub samples: u64,
    /// The facts that are known about all samples.
    pub facts: Vec<KnownFact>,
    /// Groups by key, those that the front end waited for longest first.
    pub groups: Vec<FetchGroup>,
    /// Number of groups that the limit left out.
    pub left_out: usize,
    /// Number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

precise_model::catalogue! {
    /// A fact about the outcome of a fetch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FetchFact: (&'static str, &'static str) {
        /// The fetch was not killed.
        Attempted => ("attempted", "attempted"),
        /// The fetch was delivered to the decoder.
        Completed => ("completed", "completed"),
        /// The fetch was attempted but not delivered.
        Aborted => ("aborted", "aborted"),
        /// The fetch was abandoned before it reached the ITLB and the cache.
        Killed => ("killed", "killed"),
        /// The fetch waited for 16 cycles or more.
        Waited => ("waited 16 cycles or more", "waited_16"),
        /// The fetch missed the op cache (Intel: DSB).
        OpCacheMiss => ("op cache miss", "op_cache_miss"),
        /// The fetch missed the instruction cache.
        IcMiss => ("instruction cache miss", "ic_miss"),
        /// The fetch also missed the L2 cache.
        L2Miss => ("L2 miss", "l2_miss"),
        /// The fetch also missed the L3 cache.
        L3Miss => ("L3 miss", "l3_miss"),
        /// The fetch missed the first-level ITLB.
        ItlbMiss => ("ITLB miss", "itlb_miss"),
        /// The fetch also missed the second-level TLB, which causes a page walk.
        ItlbWalk => ("ITLB page walk", "itlb_walk"),
    }
}

impl FetchFact {
    /// Returns the fact in words.
    pub const fn words(self) -> &'static str {
        self.entry().0
    }

    /// Returns the fact's column name in CSV.
    pub const fn column(self) -> &'static str {
        self.entry().1
    }

    /// Returns the fact that an Intel event reports (Intel's event lists, FRONTEND_RETIRED). `None`
    /// if the table has no column for it.
    pub fn of_event(name: &str) -> Option<Self> {
        let (_, what) = name.split_once("frontend_retired.")?;
        let what = what.split([':', '/']).next().unwrap_or_default();
        Some(match what {
            "latency_ge_16" => Self::Waited,
            "dsb_miss" | "any_dsb_miss" => Self::OpCacheMiss,
            "l1i_miss" => Self::IcMiss,
            "l2_miss" => Self::L2Miss,
            "itlb_miss" => Self::ItlbMiss,
            "stlb_miss" => Self::ItlbWalk,
            _ => return None,
        })
    }

    /// Returns whether the fact is true of a fetch; `None` if the sample or its CPU does not tell.
    fn of_fetch(self, bits: Bits, row: &Row, basis: &OfIbs) -> Option<bool> {
        Some(match self {
            Self::Killed => bits.killed(),
            Self::Attempted => !bits.killed(),
            Self::Completed => bits.has(Bits::COMPLETED),
            Self::Aborted => !bits.killed() && !bits.has(Bits::COMPLETED),
            Self::Waited if !basis.buckets => return None,
            Self::Waited => {
                !bits.killed() && row.latency_bucket.is_some_and(|bucket| latency::lower(bucket.into()) >= 16)
            }
            Self::IcMiss if bits.has(Bits::UNKNOWN) => return None,
            Self::IcMiss => bits.has(Bits::IC_MISS),
            Self::L2Miss => bits.has(Bits::FETCH_L2_MISS),
            Self::OpCacheMiss | Self::L3Miss if basis.zen4 != Some(true) => return None,
            Self::OpCacheMiss => !bits.killed() && bits.has(Bits::OP_CACHE_MISS),
            Self::L3Miss => bits.has(Bits::FETCH_L3_MISS),
            Self::ItlbMiss => bits.has(Bits::ITLB_L1_MISS),
            Self::ItlbWalk => bits.has(Bits::ITLB_L2_MISS),
        })
    }
}

/// A fact about all samples of a section or of a group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KnownFact {
    /// The fact.
    pub fact: FetchFact,
    /// Number of samples for which the fact is true; `None` if it is unknown.
    pub samples: Option<u64>,
    /// Fraction of the attempted fetches; for the facts killed and attempted, fraction of all
    /// fetches. With Intel events: `None` for all samples, and for a group its fraction of the
    /// event's samples.
    pub share: Option<Share>,
    /// Number of events that these samples stand for. Only with Intel events.
    pub period_sum: Option<u64>,
}

/// The fetches of one group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FetchGroup {
    /// One value per group key.
    pub values: Vec<Value>,
    /// The group's fraction of the time that fetches took. Without latencies it is the fraction of
    /// samples; on Intel, of the leading event's samples.
    pub share: Share,
    /// The known facts.
    pub facts: Vec<KnownFact>,
    /// Average latency of the group's attempted fetches, in core cycles; `None` if it is unknown.
    pub average: Option<f64>,
}

/// Properties of an IBS event that are the same for all of its samples.
struct OfIbs {
    buckets: bool,
    zen4: Option<bool>,
}

fn is_fetch(info: &EventInfo) -> bool {
    info.fields.outcome && info.pmu == PmuKind::IbsFetch
}

/// Returns the fetches of a capture.
///
/// # Errors
///
/// Returns an error if the capture lacks the outcomes of fetches. The message names the command
/// that records them.
pub fn fetch(capture: &Capture, options: &FetchOptions) -> Result<FetchView, ViewError> {
    let by = options.by.clone().unwrap_or_else(|| vec![Key::Function]);
    let infos = &capture.meta.events;
    let retired: Vec<(usize, FetchFact)> = infos
        .iter()
        .enumerate()
        .filter_map(|(index, info)| Some((index, FetchFact::of_event(&info.name)?)))
        .collect();
    // Outcomes of branches or of ops are not outcomes of fetches: grouping by them does not help.
    let of_others = infos.iter().any(|info| info.fields.outcome) && !infos.iter().any(is_fetch);
    if retired.is_empty() && of_others {
        return Err(no_fetches(capture));
    }
    let outcome: &[Dimension] = if retired.is_empty() { &[Dimension::Outcome] } else { &[] };
    Needs::of::<Fetches>().with(outcome).and(&by).check(capture)?;
    needs::coarse(capture, &by)?;
    let trust = trust::trust(capture);
    let event = |index: usize| EventSummary::of(&infos[index], trust.events[index].clone());
    let of_ibs = infos.iter().enumerate().filter(|(_, info)| is_fetch(info));
    let mut sections: Vec<_> =
        of_ibs.map(|(index, _)| fetches(capture, options, &by, index, event(index))).collect();
    if !retired.is_empty() {
        let events = retired.iter().map(|(index, _)| event(*index)).collect();
        sections.push(of_retired(capture, options, &by, &retired, events));
    }
    if sections.is_empty() {
        return Err(no_fetches(capture));
    }
    Ok(FetchView { run: Run::of(capture), by, sections })
}

fn no_fetches(capture: &Capture) -> ViewError {
    let names: Vec<_> = capture.meta.events.iter().map(|info| info.name.as_str()).collect();
    ViewError::NoSuchSamples {
        view: "`precise fetch`".to_owned(),
        what: "the outcomes of fetches".to_owned(),
        events: names.join(", "),
        again: Again::record(capture, Preset::Fetch.name(), &[]),
    }
}

/// Numbers of samples by fact. A fact becomes unknown as soon as one sample does not report it.
#[derive(Clone, Default)]
struct Tally {
    facts: BTreeMap<FetchFact, Option<Samples>>,
    sum: Sum,
    /// Latencies of the attempted fetches.
    latency: Weight,
}

impl Tally {
    fn add(&mut self, fact: FetchFact, holds: Option<bool>, samples: Samples) {
        let sum = self.facts.entry(fact).or_insert_with(|| Some(Samples::default()));
        *sum = match (*sum, holds) {
            (Some(sum), Some(true)) => Some(sum.and(samples)),
            (sum, Some(false)) => sum,
            _ => None,
        };
    }

    fn get(&self, fact: FetchFact) -> Option<Samples> {
        self.facts.get(&fact).copied().flatten()
    }

    fn known(&self) -> Vec<KnownFact> {
        let all = self.sum.samples;
        let attempted = self.get(FetchFact::Attempted);
        let of = |fact| match fact {
            FetchFact::Killed | FetchFact::Attempted => Some(all),
            _ => attempted,
        };
        let known = |fact| {
            let samples = self.get(fact);
            let share = samples.zip(of(fact)).map(|(part, whole)| part.share_of(whole));
            KnownFact { fact, samples: samples.map(|samples| samples.count), share, period_sum: None }
        };
        FetchFact::ALL.into_iter().map(known).collect()
    }

    fn average(&self) -> Option<f64> {
        let attempted = self.get(FetchFact::Attempted).filter(|attempted| attempted.count > 0)?;
        Some(self.latency.sum / attempted.weight.sum)
    }
}

fn fetches(
    capture: &Capture,
    options: &FetchOptions,
    by: &[Key],
    index: usize,
    event: EventSummary,
) -> FetchTable {
    let grouping = grouping(capture, by, index, options);
    let weighing = grouping.weighing();
    let basis = OfIbs {
        buckets: weighing.buckets,
        zen4: capture.meta.machine.cpu_id.as_ref().map(CpuId::ibs_tells_ccx),
    };
    let (mut groups, mut all) = (FxHashMap::<Vec<RawValue>, Tally>::default(), Tally::default());
    let mut without = 0u64;
    for row in grouping.rows() {
        let Some(Outcome::Fetch(bits)) = row.outcome else {
            without = without.saturating_add(row.measures.count);
            continue;
        };
        let bits = Bits(bits);
        for tally in [groups.entry(grouping.key(row)).or_default(), &mut all] {
            for fact in FetchFact::ALL {
                tally.add(fact, fact.of_fetch(bits, row, &basis), weighing.samples(row));
            }
            tally.sum.add(row, weighing);
            if !bits.killed() {
                tally.latency.add(weighing.latency(row));
            }
        }
    }
    let samples = all.sum.samples.count;
    let timed = event.has_latency && all.latency.sum > 0.0;
    let too_few = (samples < options.min_samples).then_some(options.min_samples);
    let mut groups: Vec<_> = if too_few.is_some() { Vec::new() } else { groups.into_iter().collect() };
    let weight = |tally: &Tally| (if timed { tally.latency.sum } else { 0.0 }, tally.sum.samples.weight.sum);
    sort(&mut groups, capture, weight);
    let kept = options.limit.min(groups.len());
    let left_out = groups.len() - kept;
    let group = |(key, tally): (Vec<RawValue>, Tally)| FetchGroup {
        values: grouping.values(&key),
        share: if timed {
            Share::weighted(tally.latency, all.latency)
        } else {
            tally.sum.samples.share_of(all.sum.samples)
        },
        facts: tally.known(),
        average: tally.average().filter(|_| timed),
    };
    let groups = groups.into_iter().take(kept).map(group).collect();
    let mut notes = Vec::new();
    if all.get(FetchFact::IcMiss).is_none() && samples > 0 {
        notes.push(
            "Whether a fetch missed the instruction cache is unknown on Zen 3 (erratum 1238).".to_owned(),
        );
    }
    if all.get(FetchFact::OpCacheMiss).is_none() && samples > 0 {
        notes.push(
            "Misses of the op cache and of the L3 cache are reported only by Zen 4 and later.".to_owned(),
        );
    }
    if without > 0 {
        notes.push(format!(
            "Not in the tables: {} without an outcome of the fetch.",
            counted(without, "sample")
        ));
    }
    if capture.meta.events[index].hardware_filter.l3_miss_only {
        notes.push(
            "The hardware kept only fetches that missed the L3 cache: shares are relative to these."
                .to_owned(),
        );
    }
    FetchTable {
        events: vec![event],
        basis: FetchBasis::Fetches,
        samples,
        facts: all.known(),
        groups,
        left_out,
        too_few,
        notes,
    }
}

fn of_retired(
    capture: &Capture,
    options: &FetchOptions,
    by: &[Key],
    retired: &[(usize, FetchFact)],
    events: Vec<EventSummary>,
) -> FetchTable {
    let mut groups: FxHashMap<Vec<RawValue>, Tally> = FxHashMap::default();
    let mut totals: BTreeMap<FetchFact, (Samples, u64)> = BTreeMap::new();
    for (index, fact) in retired {
        let grouping = grouping(capture, by, *index, options);
        let total = totals.entry(*fact).or_default();
        let weighing = grouping.weighing();
        for row in grouping.rows() {
            let samples = weighing.samples(row);
            *total = (total.0.and(samples), total.1.saturating_add(row.measures.period_sum));
            groups.entry(grouping.key(row)).or_default().add(*fact, Some(true), samples);
        }
    }
    let samples: Samples = totals.values().map(|(samples, _)| *samples).sum();
    // The fact that groups are ranked by: long waits, if they were recorded.
    let leading =
        totals.keys().copied().find(|fact| *fact == FetchFact::Waited).or(totals.keys().next().copied());
    let lead = |tally: &Tally| leading.and_then(|fact| tally.get(fact)).unwrap_or_default();
    let leading_total = leading.and_then(|fact| totals.get(&fact)).map(|(samples, _)| *samples);
    let leading_total = leading_total.unwrap_or_default();
    let too_few = (leading_total.count < options.min_samples).then_some(options.min_samples);
    let mut groups: Vec<_> = if too_few.is_some() { Vec::new() } else { groups.into_iter().collect() };
    let all = |tally: &Tally| tally.facts.values().flatten().copied().sum::<Samples>();
    sort(&mut groups, capture, |tally| (lead(tally).weight.sum, all(tally).weight.sum));
    let kept = options.limit.min(groups.len());
    let left_out = groups.len() - kept;
    let names = grouping(capture, by, retired.first().map_or(0, |(index, _)| *index), options);
    let groups = groups.into_iter().take(kept).map(|(key, tally)| FetchGroup {
        values: names.values(&key),
        share: lead(&tally).share_of(leading_total),
        facts: FetchFact::ALL
            .into_iter()
            .map(|fact| {
                // If an event was recorded but has no sample in this group, its count is 0.
                let total = totals.get(&fact).map(|(samples, _)| *samples);
                let samples = total.map(|_| tally.get(fact).unwrap_or_default());
                let share = samples.zip(total).map(|(part, whole)| part.share_of(whole));
                KnownFact { fact, samples: samples.map(|samples| samples.count), share, period_sum: None }
            })
            .collect(),
        average: None,
    });
    let groups = groups.collect();
    let facts = FetchFact::ALL.into_iter().map(|fact| {
        let (samples, period_sum) = totals.get(&fact).copied().unzip();
        KnownFact { fact, samples: samples.map(|samples| samples.count), share: None, period_sum }
    });
    let notes = vec![
        "Intel counts instructions that retired after a front-end event, not fetches: how many fetches \
         were attempted, completed, aborted or killed, and how long they took, is unknown. The others \
         are separate events, and none of their counts is a part of another."
            .to_owned(),
        several(capture).to_owned(),
    ];
    FetchTable {
        events,
        basis: FetchBasis::Retired,
        samples: samples.count,
        facts: facts.collect(),
        groups,
        left_out,
        too_few,
        notes,
    }
}

/// Returns how to record several events of fetches on Intel.
fn several(capture: &Capture) -> &'static str {
    if capture.meta.origin.is_some() {
        return "Record several events: `perf record -e \
                frontend_retired.latency_ge_16:P,frontend_retired.l1i_miss:P`, and import that.";
    }
    "Record several events: `precise record -e \
     frontend_retired.latency_ge_16,frontend_retired.l1i_miss`; `precise list` shows those that this machine \
     has."
}

fn grouping<'a>(capture: &'a Capture, by: &'a [Key], event: usize, options: &FetchOptions) -> Grouping<'a> {
    Grouping { capture, event, by, sort: Sort::Samples, limit: None, min_samples: options.min_samples }
}

/// Sorts by weight, largest first; groups of equal weight by their keys.
fn sort(groups: &mut [(Vec<RawValue>, Tally)], capture: &Capture, weight: impl Fn(&Tally) -> (f64, f64)) {
    groups.sort_by(|(key_a, a), (key_b, b)| {
        let keys = key_a.iter().zip(key_b).map(|(a, b)| a.compare(b, capture));
        let (a, b) = (weight(a), weight(b));
        let first = b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
        first.then_with(|| keys.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then))
    });
}
