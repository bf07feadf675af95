//! How many events each capture has, how many per second, and what changed in them. A program that
//! does more of everything has the same shares as before.

use schemars::JsonSchema;
use serde::Serialize;

use crate::about;
use crate::grouping::Sum;
use crate::render::number::duration;
use crate::stats::{Change, Estimate, Interval, MeasuredNumber, Z, astray};
use precise_model::Capture;
use precise_model::digits::{percent_change, percent_to, thousands};

/// The number of events in a capture, and its length.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventTotals {
    /// Number of events that the samples of the capture stand for. Lost samples are not among them.
    pub events: Estimate,
    /// Length of the run, in nanoseconds.
    pub duration_ns: u64,
    /// Events per second; `None` if the length is unknown.
    pub per_second: Option<f64>,
}

/// The relative change of a number from BASE to NEW: 0.5 is half as many more. With its 95 %
/// interval, as far as sampling is concerned.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Growth {
    /// The observed change.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval; `None` if the samples do not bound it.
    pub high: Option<f64>,
    /// Whether the interval does not contain 0.
    pub changed: bool,
}

/// One of the two captures: its events, as equal samples.
struct Side {
    totals: EventTotals,
    samples: u64,
    each: f64,
}

impl Side {
    fn of(capture: &Capture, event: usize, whole: &Sum) -> Self {
        let (info, weight) = (&capture.meta.events[event], whole.events());
        let duration_ns = about::duration(&capture.meta.epochs);
        let seconds = duration_ns as f64 / 1e9;
        // With unequal periods: as many equal samples as would be as certain.
        let equal = if weight.squares > 0.0 { weight.sum * weight.sum / weight.squares } else { 0.0 };
        Self {
            totals: EventTotals {
                events: Estimate::of(weight, astray(info, capture.meta.machine.cpus)),
                duration_ns,
                per_second: (seconds > 0.0).then(|| weight.sum / seconds),
            },
            samples: equal.round() as u64,
            each: if equal > 0.0 { weight.sum / equal.round().max(1.0) } else { 0.0 },
        }
    }

    fn measured(&self, each: f64) -> MeasuredNumber<'static> {
        MeasuredNumber::Count { samples: self.samples, each: self.each * each }
    }
}

/// Returns the totals of both captures, the growth of the number of events, and that of the rate;
/// `None` where there is nothing to compare.
pub(super) fn totals(
    (base, b, of_base): (&Capture, usize, &Sum),
    (new, n, of_new): (&Capture, usize, &Sum),
) -> ([EventTotals; 2], Option<Growth>, Option<Growth>) {
    let (base, new) = (Side::of(base, b, of_base), Side::of(new, n, of_new));
    let growth = |each: [f64; 2]| {
        let (base, new) = (base.measured(each[0]), new.measured(each[1]));
        Change::Relative.interval(&base, &new, Z).and_then(Growth::of)
    };
    let seconds = [&base, &new].map(|side| side.totals.duration_ns as f64 / 1e9);
    let known = seconds.iter().all(|seconds| *seconds > 0.0);
    let (events, rate) = (growth([1.0; 2]), known.then(|| growth(seconds.map(f64::recip))).flatten());
    ([base.totals, new.totals], events, rate)
}

impl Growth {
    fn of(interval: Interval) -> Option<Self> {
        let Interval { value, low, high } = interval;
        let bounded = high.is_finite().then_some(high);
        (value.is_finite() && low.is_finite()).then_some(Self {
            value,
            low,
            high: bounded,
            changed: low > 0.0 || high < 0.0,
        })
    }

    /// Returns the change with its interval: `+49.9% (+47.3% to +52.5%)`.
    pub(super) fn text(&self) -> String {
        let one = |value: f64| percent_change(value, 1);
        let high = self.high.map_or_else(|| "unknown".to_owned(), one);
        format!("{} ({} to {high})", one(self.value), one(self.low))
    }

    /// Returns what NEW has: `49.9% more page faults`.
    fn words(&self, unit: &str) -> String {
        match (self.changed, self.value > 0.0) {
            (false, _) => format!("no significantly different number of {unit}"),
            (true, true) if self.value >= 1.0 => format!("{:.1} times as many {unit}", 1.0 + self.value),
            (true, more) => {
                let how = if more { "more" } else { "fewer" };
                format!("{} {how} {unit}", percent_to(self.value.abs(), 1))
            }
        }
    }
}

/// Returns the conclusion about the totals in one sentence; `None` if there is nothing to compare.
pub(super) fn words(unit: &str, events: Option<&Growth>, rate: Option<&Growth>) -> Option<String> {
    let events = events?;
    let first = events.words(unit);
    Some(match rate {
        None => format!("NEW has {first}."),
        Some(rate) if !events.changed && !rate.changed => {
            format!("No significant change in the number of {unit}, in total and per second.")
        }
        Some(rate) => format!("NEW has {first} in total, and {} per second.", rate.words(unit)),
    })
}

/// Formats a number of events. Time has its own unit.
pub(super) fn amount(events: f64, unit: &str) -> String {
    if unit == "ns" { duration(events.max(0.0) as u64) } else { thousands(events.round().max(0.0) as u64) }
}

/// Returns the name of the events in a sentence and a table.
pub(super) fn unit_name(unit: &str) -> &str {
    match unit {
        "" => "events",
        "ns" => "nanoseconds of CPU time",
        unit => unit,
    }
}
