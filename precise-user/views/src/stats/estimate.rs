//! Estimates of the total number of events behind the samples.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Weight, Z};
use precise_model::EventInfo;

/// An estimated number of events, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Estimate {
    /// The number of events that the samples stand for.
    pub value: u64,
    /// Lower end of the interval.
    pub low: u64,
    /// Upper end of the interval.
    pub high: u64,
}

impl Estimate {
    /// Estimates the number of events from samples, each of which weighs the number of events that
    /// it stands for. A sample of period p stands for itself, which is certain, and for p - 1 other
    /// events, any of which could have been sampled. Its variance is p (p - 1): 0 if every event is
    /// a sample.
    ///
    /// `slack`: the number of additional events that may be missing; at most all of them count.
    pub fn of(events: Weight, slack: f64) -> Self {
        let half = Z * (events.squares - events.sum).max(0.0).sqrt() + slack.min(events.sum);
        Self {
            value: events.sum.round() as u64,
            low: (events.sum - half).max(0.0).floor() as u64,
            high: (events.sum + half).ceil() as u64,
        }
    }

    /// Returns the longer arm of the interval relative to the value; 0 if the value is 0.
    pub fn relative_half_width(&self) -> f64 {
        let half = self.high.abs_diff(self.value).max(self.value.abs_diff(self.low));
        if self.value == 0 { 0.0 } else { half as f64 / self.value as f64 }
    }
}

/// Returns the number of events that may be missing on `cpus` CPUs if the rate of an event was
/// changed during the run; 0 otherwise. At a fixed rate, the end of a run cuts off the same from
/// all groups.
pub fn astray(event: &EventInfo, cpus: u32) -> f64 {
    if event.governed() { event.in_flight(cpus) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::{Ledger, RateChange};

    #[test]
    fn what_was_sampled_whole_is_certain() {
        let all = Estimate::of(Weight::even(1000, 1000), 0.0);
        assert_eq!(all, Estimate { value: 1000, low: 1000, high: 1000 });
        let mut some = Weight::even(1000, 1000);
        some.add(Weight::even(100 * 101, 100));
        // 100 samples of period 101: 1.96 √(100 · 101 · 100).
        assert_eq!(Estimate::of(some, 0.0), Estimate { value: 11_100, low: 9_130, high: 13_070 });
        assert_eq!(Estimate::of(Weight::default(), 50.0), Estimate::default());
    }

    #[test]
    fn each_period_may_end_unsampled_on_each_cpu() {
        let at = |period| RateChange { period: Some(period), ..RateChange::default() };
        let event = EventInfo { rates: vec![at(1), at(101), at(7)], ..EventInfo::default() };
        assert_eq!(astray(&event, 4), 4.0 * (1.0 + 101.0 + 7.0));
        assert_eq!(astray(&EventInfo::default(), 4), 0.0);
        let fixed = EventInfo { period: Some(1000), ..EventInfo::default() };
        assert_eq!((astray(&fixed, 4), fixed.in_flight(4)), (0.0, 4000.0));
        // 500,000 events a second on each of 4 CPUs, sampled 100 times a second, then 10 times.
        let ledger = Ledger { event_count: 4_000_000, enabled_ns: 8_000_000_000, ..Ledger::default() };
        let at = |hertz| RateChange { frequency: Some(hertz), ..RateChange::default() };
        let event = EventInfo { rates: vec![at(100), at(10)], ledger, ..EventInfo::default() };
        assert_eq!(astray(&event, 4), 4.0 * (5_000.0 + 50_000.0));
    }
}
