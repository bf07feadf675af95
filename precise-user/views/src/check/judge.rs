//! The evaluation of one condition on one event: its groups, their numbers, and their change.

use rustc_hash::FxHashMap;

use super::{
    ChangeUnit, CheckError, Condition, ConditionResult, ConditionVerdict, Judged, LeftOut, Metric,
    MetricBound, MetricEstimate, MetricUnit, Side,
};
use crate::about;
use crate::grouping::Sum;
use crate::pairing::{GroupsByText, named, named_if};
use crate::stats::{Change, Interval, MIN_SAMPLES, MeasuredNumber, Samples, Z};
use precise_model::digits::{percent_change, percent_to, thousands};
use precise_model::keys::Key;
use precise_model::values::{RawValue, Value};
use precise_model::{Capture, CompactSort as _, Row};

/// The largest number of values that an error lists.
const LISTED: usize = 12;

/// Returns the groups of both captures with their numbers. Probabilities are not corrected yet, and
/// there is no verdict yet.
pub(crate) fn judge(
    base: (&Capture, usize),
    new: (&Capture, usize),
    condition: &Condition,
) -> ConditionResult {
    let (a, b) = (OfCapture::of(base, condition), OfCapture::of(new, condition));
    let (unit, change, bound) = units(condition);
    let kind = match change {
        ChangeUnit::Relative => Change::Relative,
        ChangeUnit::Difference => Change::Difference,
        ChangeUnit::Level => Change::Level,
    };
    let mut names: Vec<(&Vec<String>, &Vec<Value>)> =
        a.all.iter().map(|(text, (values, _))| (text, values)).collect();
    names.extend(
        b.all.iter().filter(|(text, _)| !a.all.contains_key(*text)).map(|(text, (values, _))| (text, values)),
    );
    let (mut groups, mut left_out) = (Vec::new(), LeftOut::default());
    for (text, values) in names {
        let samples = [a.samples(text), b.samples(text)];
        // A share can be compared with an empty group; a percentile of an empty group does not
        // exist.
        let enough = match (&condition.metric, change) {
            (_, ChangeUnit::Level) => samples[1] >= MIN_SAMPLES,
            (Metric::Count | Metric::Rate | Metric::Share, _) => samples.iter().any(|n| *n >= MIN_SAMPLES),
            (Metric::ShareOf(..) | Metric::Mean | Metric::Percentile(_), _) => {
                samples.iter().all(|n| *n >= MIN_SAMPLES)
            }
        };
        if !enough {
            left_out.groups += 1;
            for (sum, count) in left_out.samples.iter_mut().zip(samples) {
                *sum = sum.saturating_add(count);
            }
            continue;
        }
        let pair = (a.measured(text), b.measured(text));
        let estimate = |measured: &Option<MeasuredNumber>| {
            measured.as_ref().and_then(|m| m.interval(Z)).map(MetricEstimate::of)
        };
        let both = match (&pair.0, &pair.1) {
            (Some(base), Some(new)) => Some((base, new)),
            (None, Some(new)) if change == ChangeUnit::Level => Some((new, new)),
            _ => None,
        };
        let above = condition.side == Side::Above;
        groups.push(Judged {
            values: values.clone(),
            samples,
            base: estimate(&pair.0),
            new: estimate(&pair.1),
            change: both.and_then(|(base, new)| kind.interval(base, new, Z)).map(MetricEstimate::of),
            p: both.and_then(|(base, new)| kind.beyond(base, new, bound, above)),
            verdict: ConditionVerdict::CannotTell,
        });
    }
    ConditionResult {
        condition: condition.to_string(),
        event: a.capture.meta.events[a.event].name.clone(),
        by: condition.by.clone(),
        unit,
        change,
        bound,
        side: condition.side,
        verdict: ConditionVerdict::CannotTell,
        sentence: String::new(),
        samples: [a.whole.measures.count, b.whole.measures.count],
        groups,
        left_out,
    }
}

fn units(condition: &Condition) -> (MetricUnit, ChangeUnit, f64) {
    let unit = match condition.metric {
        Metric::Count => MetricUnit::Events,
        Metric::Rate => MetricUnit::EventsPerSecond,
        Metric::Share | Metric::ShareOf(..) => MetricUnit::Share,
        Metric::Mean | Metric::Percentile(_) => MetricUnit::Cycles,
    };
    match condition.bound {
        MetricBound::Relative(bound) => (unit, ChangeUnit::Relative, bound),
        MetricBound::Difference(bound) => (unit, ChangeUnit::Difference, bound),
        MetricBound::Level(bound) => (unit, ChangeUnit::Level, bound),
    }
}

/// The groups of one of the two captures.
struct OfCapture<'a> {
    capture: &'a Capture,
    event: usize,
    condition: &'a Condition,
    all: GroupsByText,
    whole: Sum,
    /// For `share(key == value)`: the samples that have the value.
    matching: GroupsByText,
}

impl<'a> OfCapture<'a> {
    fn of((capture, event): (&'a Capture, usize), condition: &'a Condition) -> Self {
        let (all, whole) = named(capture, event, &condition.by);
        let matching = match &condition.metric {
            Metric::ShareOf(key, value) => {
                let mut values = MetricValues::new(capture, *key);
                named_if(capture, event, &condition.by, |row| values.of(row).eq_ignore_ascii_case(value)).0
            }
            _ => GroupsByText::default(),
        };
        Self { capture, event, condition, all, whole, matching }
    }

    fn sum(&self, text: &[String]) -> Option<&Sum> {
        self.all.get(text).map(|(_, sum)| sum)
    }

    /// Returns the number of samples of a group that the metric is computed from.
    fn samples(&self, text: &[String]) -> u64 {
        let Some(sum) = self.sum(text) else { return 0 };
        if self.condition.metric.is_latency() { sum.timed.count } else { sum.samples.count }
    }

    /// Returns the metric of a group; `None` if the group does not have it.
    fn measured(&self, text: &[String]) -> Option<MeasuredNumber<'_>> {
        let sum = self.sum(text);
        let count = sum.map_or(0, |sum| sum.measures.count);
        match &self.condition.metric {
            Metric::Count => Some(MeasuredNumber::Count { samples: count, each: self.period()? }),
            Metric::Rate => {
                let seconds = about::duration(&self.capture.meta.epochs) as f64 / 1e9;
                (seconds > 0.0)
                    .then_some(MeasuredNumber::Count { samples: count, each: self.period()? / seconds })
            }
            Metric::Share => Some(Self::share(sum, Some(&self.whole))),
            Metric::ShareOf(..) => Some(Self::share(self.matching.get(text).map(|(_, sum)| sum), sum)),
            Metric::Mean => {
                let sum = sum?;
                Some(MeasuredNumber::Mean { value: sum.average()?, histogram: sum.histogram.as_ref()? })
            }
            Metric::Percentile(percent) => Some(MeasuredNumber::Percentile {
                fraction: percent.fraction(),
                histogram: sum?.histogram.as_ref()?,
            }),
        }
    }

    /// Returns a share of a whole.
    fn share(part: Option<&Sum>, whole: Option<&Sum>) -> MeasuredNumber<'static> {
        let samples = |sum: Option<&Sum>| sum.map_or_else(Samples::default, |sum| sum.samples);
        MeasuredNumber::Share { part: samples(part), whole: samples(whole) }
    }

    fn period(&self) -> Option<f64> {
        self.capture.meta.events[self.event].period.map(|period| period as f64)
    }
}

impl MetricEstimate {
    fn of(interval: Interval) -> Self {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self { value: finite(interval.value), low: interval.low, high: finite(interval.high) }
    }
}

/// The values of a key in the rows, as text. Each value is converted once.
struct MetricValues<'a> {
    capture: &'a Capture,
    key: Key,
    known: FxHashMap<RawValue, String>,
}

impl<'a> MetricValues<'a> {
    fn new(capture: &'a Capture, key: Key) -> Self {
        Self { capture, key, known: FxHashMap::default() }
    }

    fn of(&mut self, row: &Row) -> &str {
        let atom = RawValue::of(self.capture, row, self.key);
        self.known.entry(atom).or_insert_with(|| atom.value(self.capture, self.key).text())
    }
}

/// Checks that some sample has the value of a `share(key == value)`: a condition on a value that
/// does not exist would always pass.
pub(crate) fn is_seen(
    captures: [&Capture; 2],
    events: &[(usize, usize)],
    condition: &Condition,
    key: Key,
    value: &str,
) -> Result<(), CheckError> {
    let mut seen: FxHashMap<String, u64> = FxHashMap::default();
    for (which, capture) in captures.into_iter().enumerate() {
        let mut values = MetricValues::new(capture, key);
        let ours = |row: &&Row| {
            let event = usize::from(row.event);
            events.iter().any(|pair| [pair.0, pair.1][which] == event)
        };
        for row in capture.rows.iter().filter(ours) {
            let text = values.of(row);
            if text.eq_ignore_ascii_case(value) {
                return Ok(());
            }
            let count = seen.entry(text.to_owned()).or_default();
            *count = count.saturating_add(row.measures.count);
        }
    }
    let mut seen: Vec<_> = seen.into_iter().collect();
    seen.compact_sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let more = if seen.len() > LISTED { " and others" } else { "" };
    let names: Vec<_> = seen.into_iter().take(LISTED).map(|(text, _)| text).collect();
    let list = if names.is_empty() { "no samples".to_owned() } else { names.join(", ") + more };
    Err(CheckError::NoSuchValue {
        condition: condition.to_string(),
        key: key.name(),
        value: value.to_owned(),
        seen: list,
    })
}

/// Returns the result of a condition in words.
pub(crate) fn sentence(judgement: &ConditionResult) -> String {
    let ConditionResult { condition, event, groups, left_out, samples, .. } = judgement;
    let count = |verdict: ConditionVerdict| groups.iter().filter(|group| group.verdict == verdict).count();
    let whole = judgement.by.is_empty();
    let among = |n: usize| format!("{} of {} groups", thousands(n as u64), thousands(groups.len() as u64));
    let worst = groups.first().map(|group| describe(judgement, group)).unwrap_or_default();
    let what = match judgement.verdict {
        ConditionVerdict::Fail if whole => format!("fails on {event}: {worst}"),
        ConditionVerdict::Fail => {
            format!("fails on {event} for {}; worst: {worst}", among(count(ConditionVerdict::Fail)))
        }
        ConditionVerdict::Pass if whole => format!("passes on {event}: {worst}"),
        ConditionVerdict::Pass => {
            format!("passes on {event} for all {} groups that were judged", thousands(groups.len() as u64))
        }
        ConditionVerdict::CannotTell if groups.is_empty() && samples.iter().any(|n| *n < MIN_SAMPLES) => {
            format!(
                "cannot be judged on {event}: both captures need at least {MIN_SAMPLES} samples (they have \
             {} and {})",
                thousands(samples[0]),
                thousands(samples[1])
            )
        }
        ConditionVerdict::CannotTell if groups.is_empty() => {
            let timed = if judgement.unit == MetricUnit::Cycles { " with a latency" } else { "" };
            format!("cannot be judged on {event}: no group has {MIN_SAMPLES} samples{timed} in both captures")
        }
        ConditionVerdict::CannotTell if count(ConditionVerdict::CannotTell) == 0 => format!(
            "cannot be judged on {event}: the groups with enough samples hold less than half of all \
             samples, and {} groups with too few hold the rest",
            thousands(left_out.groups)
        ),
        ConditionVerdict::CannotTell if whole => {
            let more = groups.first().and_then(|group| judgement.times(group));
            let more = more
                .map_or_else(String::new, |n| format!("; about {n} times as many samples would be enough"));
            format!("cannot be judged on {event}: {worst}{more}")
        }
        ConditionVerdict::CannotTell => {
            format!(
                "cannot be judged on {event} for {}; worst: {worst}",
                among(count(ConditionVerdict::CannotTell))
            )
        }
    };
    format!("{condition} {what}")
}

/// Returns the numbers of one group in words.
fn describe(judgement: &ConditionResult, group: &Judged) -> String {
    let name = group.values.iter().map(Value::text).collect::<Vec<_>>().join(", ");
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let value = |estimate: &Option<MetricEstimate>| {
        estimate.and_then(|e| e.value).map_or_else(|| "nothing".to_owned(), |v| judgement.unit.words(v))
    };
    let change = group
        .change
        .map_or_else(|| "nothing to compare".to_owned(), |change| judgement.change_words(&change));
    match judgement.change {
        ChangeUnit::Level => format!("{name}{change}"),
        _ => format!("{name}from {} to {}, {change}", value(&group.base), value(&group.new)),
    }
}

impl MetricUnit {
    /// Formats a value with its unit.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Events => format!("{} events", thousands(value.round() as u64)),
            Self::EventsPerSecond => format!("{} events/s", thousands(value.round() as u64)),
            Self::Share => percent_to(value, 2),
            Self::Cycles => format!("{} core cycles", thousands(value.round() as u64)),
        }
    }
}

impl ConditionResult {
    /// Formats a change, or an end of its interval, with its unit.
    pub fn change_number(&self, value: f64) -> String {
        match (self.change, self.unit) {
            (ChangeUnit::Relative, _) => percent_change(value, 1),
            (ChangeUnit::Difference, MetricUnit::Share) => format!("{:+.2}pp", 100.0 * value),
            (ChangeUnit::Difference, _) => format!("{value:+.0}"),
            (ChangeUnit::Level, MetricUnit::Share) => percent_to(value, 2),
            (ChangeUnit::Level, _) => format!("{value:.0}"),
        }
    }

    /// Returns the factor by which to raise the number of samples so that it is clear on which side
    /// of the bound the group is, if the true change is the observed one. `None` if the factor
    /// would be above 100, or is not known.
    pub fn times(&self, group: &Judged) -> Option<u64> {
        let change = group.change.filter(|_| group.verdict == ConditionVerdict::CannotTell)?;
        let (value, to_bound) = (change.value?, self.bound - change.value?);
        let arm = if to_bound > 0.0 { change.high? - value } else { value - change.low };
        // Intervals shrink with the square root of the samples.
        let times = (arm / to_bound).powi(2).ceil();
        (2.0..=100.0).contains(&times).then_some(times as u64)
    }

    fn change_words(&self, change: &MetricEstimate) -> String {
        let value = change.value.map_or_else(|| "grew from 0".to_owned(), |v| self.change_number(v));
        let high = change.high.map_or_else(|| "no upper limit".to_owned(), |high| self.change_number(high));
        format!("{value} ({} to {high})", self.change_number(change.low))
    }
}
