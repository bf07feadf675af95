//! Checks whether NEW is worse than BASE by more than allowed, for a deploy pipeline: each
//! condition fails, passes, or cannot be decided.
//!
//! A number fails if it is significantly beyond its bound. It passes if the whole 95 % interval of
//! the change is within the bound. Otherwise there are too few samples, and the result is "cannot
//! tell". Many groups are many chances for a false alarm, so failures are corrected for the number
//! of groups over all conditions (Holm). Passes need no correction: all groups must pass together,
//! so more groups make a false pass rarer (Berger's intersection-union test).
//!
//! With few samples, neither "worse" nor "not worse" may be certain. The verdict then says so:
//!
//! ```
//! use precise_model::{Capture, testing::CaptureBuilder};
//! use precise_views::check::{ConditionVerdict, check, parse};
//!
//! /// Latencies from 100 to 198 cycles, times `factor`; `samples` of each.
//! fn capture(samples: u64, factor: u32) -> Capture {
//!     let mut made = CaptureBuilder::new();
//!     for step in 0..50 {
//!         made.cell().samples(samples).latency(factor * (100 + 2 * step));
//!     }
//!     made.build()
//! }
//!
//! // The check fails if the mean latency of NEW is more than 2 % above that of BASE.
//! let condition = [parse("mean(latency) > +2%")?];
//! assert_eq!(check(&capture(400, 1), &capture(400, 2), &condition)?.verdict, ConditionVerdict::Fail);
//! assert_eq!(check(&capture(400, 1), &capture(400, 1), &condition)?.verdict, ConditionVerdict::Pass);
//! // 200 samples of each capture: the 95 % interval of the change reaches beyond the bound.
//! let few = check(&capture(4, 1), &capture(4, 1), &condition)?;
//! assert_eq!(few.verdict, ConditionVerdict::CannotTell);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod csv;
mod grammar;
mod judge;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::CheckView;

pub use grammar::{Condition, Metric, MetricBound, Percent, Side, parse};

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::pairing::{self, PairError, Pairs};
use super::stats::{self, MIN_SAMPLES, TAIL};
use super::{ViewError, needs, trust};
use precise_model::keys::Key;
use precise_model::values::Value;
use precise_model::{Capture, CompactSort as _, Dimension, EventInfo};

/// The part of the samples of each capture that must be judged for a pass.
const MIN_JUDGED: f64 = 0.5;

/// The verdict on a condition, or on one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionVerdict {
    /// The whole 95 % interval is within the bound.
    Pass,
    /// There are too few samples to decide.
    CannotTell,
    /// The number is significantly beyond the bound.
    Fail,
}

impl ConditionVerdict {
    /// Returns the verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::CannotTell => "cannot tell",
            Self::Fail => "fail",
        }
    }
}

/// The results of all conditions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckReport {
    /// The run of BASE.
    pub base: Run,
    /// The run of NEW.
    pub new: Run,
    /// The overall verdict: fail if one condition fails, else cannot tell if one cannot be decided,
    /// else pass.
    pub verdict: ConditionVerdict,
    /// The results, one for each condition and event, in the order of the conditions.
    pub conditions: Vec<ConditionResult>,
    /// The events that both captures have, with their trust: BASE, NEW.
    pub events: Vec<[EventSummary; 2]>,
    /// Differences of the two runs, and limits of the measurement: one sentence each.
    pub notes: Vec<String>,
}

/// The result of one condition on one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConditionResult {
    /// The condition as it is written.
    pub condition: String,
    /// The name of the event.
    pub event: String,
    /// The keys of the groups.
    pub by: Vec<Key>,
    /// The unit of the metric.
    pub unit: MetricUnit,
    /// The unit of the changes.
    pub change: ChangeUnit,
    /// The bound, in the unit of the change.
    pub bound: f64,
    /// The side of the bound that fails.
    pub side: Side,
    /// The verdict on the condition.
    pub verdict: ConditionVerdict,
    /// The result as a sentence.
    pub sentence: String,
    /// The numbers of samples of BASE and NEW.
    pub samples: [u64; 2],
    /// The groups that were judged: those that fail first, then those that cannot be decided, each
    /// by size.
    pub groups: Vec<Judged>,
    /// The groups that were not judged: they have too few samples, or only one capture has them.
    pub left_out: LeftOut,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetricUnit {
    /// Events.
    Events,
    /// Events per second.
    EventsPerSecond,
    /// Parts of 1.
    Share,
    /// Core cycles.
    Cycles,
}

/// The unit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeUnit {
    /// Relative to BASE: 0.1 is a tenth more.
    Relative,
    /// The metric's own unit.
    Difference,
    /// Not a change: the value of NEW, in the metric's own unit.
    Level,
}

/// The result of one group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judged {
    /// The values of the keys, one per key.
    pub values: Vec<Value>,
    /// The numbers of samples of BASE and NEW.
    pub samples: [u64; 2],
    /// The metric in BASE.
    pub base: Option<MetricEstimate>,
    /// The metric in NEW.
    pub new: Option<MetricEstimate>,
    /// The change that is compared with the bound; `None` if there is nothing to compare.
    pub change: Option<MetricEstimate>,
    /// The one-sided probability that chance alone puts the change at least as far beyond the
    /// bound, corrected for the number of all groups.
    pub p: Option<f64>,
    /// The verdict on the group.
    pub verdict: ConditionVerdict,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricEstimate {
    /// The observed value; `None` for a relative growth from 0.
    pub value: Option<f64>,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval; `None` if the samples do not bound it.
    pub high: Option<f64>,
}

/// The groups that were not judged.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The number of groups.
    pub groups: u64,
    /// The numbers of their samples in BASE and NEW.
    pub samples: [u64; 2],
}

/// The reason why a condition cannot be evaluated on two captures, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The captures cannot be compared.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The samples of an event do not give a count.
    #[error("`{condition}` cannot be evaluated: {why}. {instead}")]
    NoCount {
        /// The condition.
        condition: String,
        /// The reason why there is no count.
        why: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// Neither capture has the value.
    #[error(
        "`{condition}` cannot be evaluated: no sample has the {key} {value:?}. Values in these \
        captures: {seen}."
    )]
    NoSuchValue {
        /// The condition.
        condition: String,
        /// The name of the key.
        key: &'static str,
        /// The value in the condition.
        value: String,
        /// The values that the captures have.
        seen: String,
    },
}

/// Evaluates the conditions.
///
/// # Errors
///
/// Returns an error if the captures have no event in common, were not sampled in the same way, or
/// lack the data that a condition needs.
pub fn check(base: &Capture, new: &Capture, conditions: &[Condition]) -> Result<CheckReport, CheckError> {
    let mut pairs = pairing::pairs(base, new, &[])?;
    let mut judgements = Vec::new();
    for condition in conditions {
        can_be_asked(base, new, condition)?;
        let asked = if condition.metric.is_latency() {
            with_latency(base, new, &pairs.events)
        } else {
            pairs.events.clone()
        };
        for (b, n) in &asked {
            let info = &base.meta.events[*b];
            if matches!(condition.metric, Metric::Count | Metric::Rate) {
                is_count(info, condition)?;
                is_count(&new.meta.events[*n], condition)?;
            }
            judgements.push(judge::judge((base, *b), (new, *n), condition));
        }
        // Some event has latencies, otherwise the condition would have been refused before; but
        // none that both captures have.
        if asked.is_empty() {
            let names =
                |c: &Capture| c.meta.events.iter().map(|e| e.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(PairError::NoCommonEvent { base: names(base), new: names(new) }.into());
        }
        if let Metric::ShareOf(key, value) = &condition.metric {
            judge::is_seen([base, new], &pairs.events, condition, *key, value)?;
        }
    }
    correct(&mut judgements);
    let verdict = judgements.iter().map(|j| j.verdict).max().unwrap_or(ConditionVerdict::CannotTell);
    if conditions.iter().any(|condition| condition.metric.is_latency()) {
        let asked = with_latency(base, new, &pairs.events);
        let left_out = pairs.events.iter().filter(|pair| !asked.contains(pair));
        let left_out: Vec<_> = left_out.map(|(b, _)| base.meta.events[*b].name.as_str()).collect();
        if !left_out.is_empty() {
            pairs.notes.push(format!(
                "No sample of {} has a latency, so conditions on latencies do not cover it.",
                left_out.join(", ")
            ));
        }
        let limits = pairs.events.iter().flat_map(|(b, _)| about::latency_limits(&base.meta.events[*b]));
        let limits: Vec<_> = limits.collect();
        pairs.notes.extend(limits);
    }
    Ok(CheckReport {
        base: Run::of(base),
        new: Run::of(new),
        verdict,
        conditions: judgements,
        events: events(base, new, &pairs),
        notes: pairs.notes,
    })
}

/// Returns the events whose samples may have latencies. If some events do have latencies, it leaves
/// out the events without any latency in both captures: stores on most CPUs, for example, which
/// would leave every check of loads and stores undecided.
fn with_latency(base: &Capture, new: &Capture, events: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let timed = |capture: &Capture, index: usize| {
        let rows = capture.rows.iter().filter(|row| usize::from(row.event) == index);
        rows.into_iter().any(|row| row.latency_bucket.is_some())
    };
    let may = |(b, _): &(usize, usize)| base.meta.events[*b].fields.latency;
    let may: Vec<_> = events.iter().copied().filter(may).collect();
    let has = |(b, n): &(usize, usize)| timed(base, *b) || timed(new, *n);
    let has: Vec<_> = may.iter().copied().filter(has).collect();
    if has.is_empty() { may } else { has }
}

fn events(base: &Capture, new: &Capture, pairs: &Pairs) -> Vec<[EventSummary; 2]> {
    let (in_base, in_new) = (trust::trust(base).events, trust::trust(new).events);
    let of = |capture: &Capture, index: usize, trust: &[trust::EventTrust]| {
        EventSummary::of(&capture.meta.events[index], trust[index].clone())
    };
    pairs.events.iter().map(|(b, n)| [of(base, *b, &in_base), of(new, *n, &in_new)]).collect()
}

/// Checks that both captures recorded the data that a condition needs.
fn can_be_asked(base: &Capture, new: &Capture, condition: &Condition) -> Result<(), PairError> {
    let keys = condition.keys();
    for (which, capture) in [("BASE", base), ("NEW", new)] {
        let latency: &[Dimension] = if condition.metric.is_latency() { &[Dimension::Latency] } else { &[] };
        let needs = needs::Needs::of::<CheckView>().with(latency);
        let all = needs.check(capture).and_then(|()| needs::check_keys(capture, &keys));
        all.map_err(|error: ViewError| PairError::View { which, error: Box::new(error) })?;
    }
    Ok(())
}

/// Checks that the number of samples of an event gives a count of events.
fn is_count(info: &EventInfo, condition: &Condition) -> Result<(), CheckError> {
    let refuse =
        |why: String, instead| Err(CheckError::NoCount { condition: condition.to_string(), why, instead });
    if info.governed() {
        let why = format!("--overhead changed the period of {} during the run", info.name);
        return refuse(why, "Record with a fixed period: `-c`, without --overhead.");
    }
    if info.period.is_none() {
        let why = format!(
            "{} was sampled in frequency mode, so the number of samples does not tell how often it happened",
            info.name
        );
        return refuse(why, "Record with a fixed period (`-c`).");
    }
    if info.hardware_filter.is_active() {
        let why = format!("the hardware filtered the samples of {}, which skews their number", info.name);
        return refuse(why, "Use a share or a latency, or record an event without ldlat and l3missonly.");
    }
    Ok(())
}

/// Corrects the probabilities for the number of all groups, and sets the verdict of each group and
/// each condition.
fn correct(judgements: &mut [ConditionResult]) {
    let mut all: Vec<_> =
        judgements.iter_mut().flat_map(|j| &mut j.groups).filter_map(|g| g.p.as_mut()).collect();
    let corrected = stats::holm(&all.iter().map(|p| **p).collect::<Vec<_>>());
    all.iter_mut().zip(corrected).for_each(|(p, better)| **p = better);
    for judgement in judgements {
        for group in &mut judgement.groups {
            let within = group.change.is_some_and(|change| match judgement.side {
                Side::Above => change.high.is_some_and(|high| high <= judgement.bound),
                Side::Below => change.low >= judgement.bound,
            });
            group.verdict = match group.p {
                Some(p) if p <= TAIL => ConditionVerdict::Fail,
                _ if within => ConditionVerdict::Pass,
                _ => ConditionVerdict::CannotTell,
            };
        }
        judgement.groups.compact_sort_by(|a, b| {
            let text = |g: &Judged| g.values.iter().map(Value::text).collect::<Vec<_>>();
            let first = b.verdict.cmp(&a.verdict).then(b.samples[1].cmp(&a.samples[1]));
            first.then_with(|| text(a).cmp(&text(b)))
        });
        judgement.verdict = whole(judgement);
        judgement.sentence = judge::sentence(judgement);
    }
}

/// Returns the verdict on a condition: the worst of its groups, except that a pass needs enough
/// judged samples.
fn whole(judgement: &ConditionResult) -> ConditionVerdict {
    let worst =
        judgement.groups.iter().map(|group| group.verdict).max().unwrap_or(ConditionVerdict::CannotTell);
    let speaks = |i: usize| {
        let all = judgement.samples[i];
        all >= MIN_SAMPLES && (judgement.left_out.samples[i] as f64) <= (1.0 - MIN_JUDGED) * all as f64
    };
    if worst == ConditionVerdict::Pass && !(speaks(0) && speaks(1)) {
        ConditionVerdict::CannotTell
    } else {
        worst
    }
}
