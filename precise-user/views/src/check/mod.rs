//! Is NEW worse than BASE by more than was allowed? For a deploy pipeline: each condition fails,
//! passes, or cannot be told.
//!
//! A number fails when it is beyond its bound for certain, and passes when it is within for
//! certain: when the whole 95 % interval of the change is. Between the two, samples do not tell,
//! and nobody is told that they did. Many groups are many chances for a false alarm: what fails is
//! corrected for their number, over all conditions (Holm). What passes needs no correction: all
//! must pass together, so that more groups make a false pass rarer (Berger's intersection-union
//! test).

pub mod csv;
mod grammar;
mod judge;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::CheckView;

pub use grammar::{Bound, Condition, Metric, Percent, Side, parse};

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, Event, Run};
use super::pairing::{self, PairError, Pairs};
use super::stats::{self, MIN_SAMPLES, TAIL};
use super::{ViewError, needs, trust};
use precise_model::keys::Key;
use precise_model::values::Value;
use precise_model::{Capture, Dimension, EventInfo};

/// Part of the samples of each capture that a pass must speak for.
const MIN_JUDGED: f64 = 0.5;

/// What became of a condition, or of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is within its bound, for certain.
    Pass,
    /// There are too few samples to tell.
    CannotTell,
    /// It is beyond its bound, for certain.
    Fail,
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::CannotTell => "cannot tell",
            Self::Fail => "fail",
        }
    }
}

/// What became of all conditions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// Where BASE was made.
    pub base: Run,
    /// Where NEW was made.
    pub new: Run,
    /// Of all of it: fail where one fails, else cannot tell where one cannot be told.
    pub verdict: Verdict,
    /// One for each condition and event, in the order of the conditions.
    pub conditions: Vec<Judgement>,
    /// Events that both have, with what is missing of them: BASE, NEW.
    pub events: Vec<[Event; 2]>,
    /// Differences of the two runs, and limits of what is measured: one sentence each.
    pub notes: Vec<String>,
}

/// What became of one condition on one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The condition, as it is written.
    pub condition: String,
    /// The event.
    pub event: String,
    /// Keys of the groups.
    pub by: Vec<Key>,
    /// What the numbers are.
    pub unit: Unit,
    /// What the changes are.
    pub change: ChangeUnit,
    /// The bound, in the unit of the change.
    pub bound: f64,
    /// The side of the bound that fails.
    pub side: Side,
    /// What became of it.
    pub verdict: Verdict,
    /// All of it in a sentence.
    pub sentence: String,
    /// Samples of BASE and NEW.
    pub samples: [u64; 2],
    /// Groups that were judged: those that fail first, then those of which nothing can be told,
    /// each by size.
    pub groups: Vec<Judged>,
    /// Groups that are too small to be judged, or that only one of the two has.
    pub left_out: LeftOut,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Events.
    Events,
    /// Events per second.
    EventsPerSecond,
    /// Parts of 1.
    Share,
    /// Core cycles.
    Cycles,
}

/// Unit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeUnit {
    /// Parts of what BASE has: 0.1 is a tenth more.
    Relative,
    /// The metric's own unit.
    Difference,
    /// No change: the value of NEW, in the metric's own unit.
    Level,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judged {
    /// One value per key.
    pub values: Vec<Value>,
    /// Samples of BASE and NEW.
    pub samples: [u64; 2],
    /// The metric in BASE.
    pub base: Option<Estimate>,
    /// The metric in NEW.
    pub new: Option<Estimate>,
    /// What is held against the bound; `None` where there is nothing to compare.
    pub change: Option<Estimate>,
    /// The probability that chance alone puts it so far beyond the bound, one-sided, corrected for
    /// the number of all groups.
    pub p: Option<f64>,
    /// What became of it.
    pub verdict: Verdict,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// What was seen; `None` for what grew from nothing.
    pub value: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end; `None` where the samples do not bound it.
    pub high: Option<f64>,
}

/// Groups that were not judged.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct LeftOut {
    /// How many.
    pub groups: u64,
    /// Their samples in BASE and NEW.
    pub samples: [u64; 2],
}

/// Why a condition cannot be asked of two captures. Each is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// They cannot be compared.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// They are not counts.
    #[error("`{condition}` cannot be evaluated: {why}. {instead}")]
    NoCount {
        /// The condition.
        condition: String,
        /// Why there is no count.
        why: String,
        /// What to do.
        instead: &'static str,
    },
    /// A value that neither of them has.
    #[error(
        "`{condition}` cannot be evaluated: no sample has the {key} {value:?}. Values in these \
        captures: {seen}."
    )]
    NoSuchValue {
        /// The condition.
        condition: String,
        /// The key.
        key: &'static str,
        /// What was asked for.
        value: String,
        /// What there is.
        seen: String,
    },
}

/// Asks the conditions.
///
/// # Errors
///
/// When the captures were not sampled in the same way, have nothing in common, or lack what a
/// condition asks for.
pub fn check(base: &Capture, new: &Capture, conditions: &[Condition]) -> Result<Check, CheckError> {
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
        // Some event has latencies, or nothing could be asked; but not one that both have.
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
    let verdict = judgements.iter().map(|j| j.verdict).max().unwrap_or(Verdict::CannotTell);
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
    Ok(Check {
        base: Run::of(base),
        new: Run::of(new),
        verdict,
        conditions: judgements,
        events: events(base, new, &pairs),
        notes: pairs.notes,
    })
}

/// The events whose samples may have latencies. Where some do have them, those of which no sample
/// has one, here or there, are left out: stores on most CPUs, which would leave every check of
/// loads and stores undecided.
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

fn events(base: &Capture, new: &Capture, pairs: &Pairs) -> Vec<[Event; 2]> {
    let (in_base, in_new) = (trust::trust(base).events, trust::trust(new).events);
    let of = |capture: &Capture, index: usize, trust: &[trust::EventTrust]| {
        Event::of(&capture.meta.events[index], trust[index].clone())
    };
    pairs.events.iter().map(|(b, n)| [of(base, *b, &in_base), of(new, *n, &in_new)]).collect()
}

/// Whether both captures recorded what a condition needs.
fn can_be_asked(base: &Capture, new: &Capture, condition: &Condition) -> Result<(), PairError> {
    let mut keys = condition.by.clone();
    if let Metric::ShareOf(key, _) = condition.metric {
        keys.push(key);
    }
    for (which, capture) in [("BASE", base), ("NEW", new)] {
        let latency: &[Dimension] = if condition.metric.is_latency() { &[Dimension::Latency] } else { &[] };
        let needs = needs::Needs::of::<CheckView>().with(latency);
        let all = needs.check(capture).and_then(|()| needs::check_keys(capture, &keys));
        all.map_err(|error: ViewError| PairError::View { which, error: Box::new(error) })?;
    }
    Ok(())
}

/// Whether the samples of an event can be counted.
fn is_count(info: &EventInfo, condition: &Condition) -> Result<(), CheckError> {
    let refuse =
        |why: String, instead| Err(CheckError::NoCount { condition: condition.to_string(), why, instead });
    if info.governed() {
        let why = format!("--overhead changed the period of {} during the run", info.name);
        return refuse(why, "Record with a fixed period: `-c`, without --overhead.");
    }
    if info.period.is_none() {
        let why = format!(
            "{} was sampled in frequency mode, so the number of samples does not tell how often it \
             happened",
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

/// Corrects the probabilities for the number of all groups, and says what became of each and of
/// each condition.
fn correct(judgements: &mut [Judgement]) {
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
                Some(p) if p <= TAIL => Verdict::Fail,
                _ if within => Verdict::Pass,
                _ => Verdict::CannotTell,
            };
        }
        judgement.groups.sort_by(|a, b| {
            let text = |g: &Judged| g.values.iter().map(Value::text).collect::<Vec<_>>();
            let first = b.verdict.cmp(&a.verdict).then(b.samples[1].cmp(&a.samples[1]));
            first.then_with(|| text(a).cmp(&text(b)))
        });
        judgement.verdict = whole(judgement);
        judgement.sentence = judge::sentence(judgement);
    }
}

/// What became of a condition: the worst of its groups, unless they speak for too little.
fn whole(judgement: &Judgement) -> Verdict {
    let worst = judgement.groups.iter().map(|group| group.verdict).max().unwrap_or(Verdict::CannotTell);
    let speaks = |i: usize| {
        let all = judgement.samples[i];
        all >= MIN_SAMPLES && (judgement.left_out.samples[i] as f64) <= (1.0 - MIN_JUDGED) * all as f64
    };
    if worst == Verdict::Pass && !(speaks(0) && speaks(1)) { Verdict::CannotTell } else { worst }
}
