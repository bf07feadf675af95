//! The change of a number from one capture to another, with its interval, and the probability that
//! the change lies beyond a bound only by chance.
//!
//! Each number has its own interval, computed by a method that fits it. The interval of the change
//! is made from the two intervals (the "method of variance estimates recovery": Zou and Donner,
//! Statistics in Medicine 27, 2008; for two shares it is Newcombe's method 10, as in
//! [`super::difference`]). This method keeps the asymmetry of the intervals, which those of
//! percentiles have. Ratios are computed from logarithms in the same way.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::{Histogram, Samples, Share};

/// The largest quantile of the normal distribution that is tried: a probability of one in 10¹⁵.
const LARGEST_Z: f64 = 8.0;

/// A measured number.
#[derive(Clone, Copy, Debug)]
pub enum MeasuredNumber<'a> {
    /// A share of all samples.
    Share {
        /// The samples of the part.
        part: Samples,
        /// All samples.
        whole: Samples,
    },
    /// A number of samples, each of which stands for a fixed amount.
    Count {
        /// The number of samples.
        samples: u64,
        /// The amount that one sample adds.
        each: f64,
    },
    /// The mean of latencies.
    Mean {
        /// The exact mean, in core cycles.
        value: f64,
        /// The same latencies in buckets, for their variance.
        histogram: &'a Histogram,
    },
    /// A percentile of latencies.
    Percentile {
        /// The percentile as a fraction, in 0..1.
        fraction: f64,
        /// The latencies.
        histogram: &'a Histogram,
    },
}

/// A number with the ends of its interval. An end may be infinite: then the samples do not bound
/// the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The observed value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl MeasuredNumber<'_> {
    /// Returns the number with an interval of `z` standard errors to each side; `None` if there are
    /// no samples.
    pub fn interval(&self, z: f64) -> Option<Interval> {
        match *self {
            Self::Share { part, whole } => (whole.count > 0).then(|| part.share_at(whole, z).into()),
            Self::Count { samples, each } => {
                // The score interval of a Poisson count. Like Wilson's interval, it is valid for
                // small counts.
                let (n, half) = (samples as f64, z * z / 2.0);
                let arm = z * (n + z * z / 4.0).sqrt();
                Some(Interval { value: n, low: (n + half - arm).max(0.0), high: n + half + arm }.scaled(each))
            }
            Self::Mean { value, histogram } => {
                let arm = z * histogram.deviation()? / histogram.total().equal().sqrt();
                Some(Interval { value, low: (value - arm).max(0.0), high: value + arm })
            }
            Self::Percentile { fraction, histogram } => histogram.smooth_percentile(fraction, z),
        }
    }
}

impl From<Share> for Interval {
    fn from(share: Share) -> Self {
        Self { value: share.value, low: share.low, high: share.high }
    }
}

impl Interval {
    fn scaled(self, by: f64) -> Self {
        Self { value: self.value * by, low: self.low * by, high: self.high * by }
    }

    fn logarithm(self) -> Self {
        Self { value: self.value.ln(), low: self.low.ln(), high: self.high.ln() }
    }
}

/// The kind of statement about two measured numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// NEW minus BASE.
    Difference,
    /// NEW divided by BASE, minus 1: 0.1 is growth by a tenth.
    Relative,
    /// NEW alone.
    Level,
}

impl Change {
    /// Returns the change with an interval of `z` standard errors to each side; `None` if there is
    /// nothing to compare.
    pub fn interval(self, base: &MeasuredNumber, new: &MeasuredNumber, z: f64) -> Option<Interval> {
        let now = new.interval(z)?;
        match self {
            Self::Level => Some(now),
            Self::Difference => Some(difference(base.interval(z)?, now)),
            Self::Relative => {
                let before = base.interval(z)?;
                if before.value <= 0.0 && now.value <= 0.0 {
                    return None;
                }
                let ratio = if before.value > 0.0 && now.value > 0.0 {
                    let log = difference(before.logarithm(), now.logarithm());
                    Interval { value: log.value.exp(), low: log.low.exp(), high: log.high.exp() }
                } else {
                    // A ratio to or from 0: the widest range that the two intervals allow.
                    Interval {
                        value: now.value / before.value,
                        low: now.low / before.high,
                        high: now.high / before.low,
                    }
                };
                Some(Interval { value: ratio.value - 1.0, low: ratio.low - 1.0, high: ratio.high - 1.0 })
            }
        }
    }

    /// Returns the one-sided probability that chance alone moves the change at least as far beyond
    /// `bound` as observed, if the true change equals `bound`. Returns 1 if the change is not
    /// beyond the bound. `above`: whether "beyond" means greater than the bound, or less.
    pub fn beyond(self, base: &MeasuredNumber, new: &MeasuredNumber, bound: f64, above: bool) -> Option<f64> {
        let clear = |z: f64| {
            let change = self.interval(base, new, z)?;
            Some(if above { change.low > bound } else { change.high < bound })
        };
        if !clear(0.0)? {
            return Some(1.0);
        }
        // Searches the largest z whose interval still leaves the bound out: intervals only grow
        // with z.
        let (mut inside, mut outside) = (0.0, LARGEST_Z);
        for _ in 0..40 {
            let middle = (inside + outside) / 2.0;
            if clear(middle)? {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Some(Normal::standard().sf(inside))
    }
}

/// Returns the difference of two numbers, with an interval from their intervals.
pub(crate) fn difference(base: Interval, new: Interval) -> Interval {
    let value = new.value - base.value;
    let down = (new.value - new.low).hypot(base.high - base.value);
    let up = (new.high - new.value).hypot(base.value - base.low);
    Interval { value, low: value - down, high: value + up }
}

#[cfg(test)]
mod tests {
    use super::super::Z;
    use super::*;
    use precise_common::latency;
    use proptest::prelude::*;

    fn histogram(values: impl IntoIterator<Item = u32>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|cycles| histogram.add(latency::bucket(cycles) as u8, 1u64));
        histogram
    }

    /// Random numbers in 0..1 from a seed (splitmix64).
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    fn share(part: u64, whole: u64) -> MeasuredNumber<'static> {
        MeasuredNumber::Share { part: part.into(), whole: whole.into() }
    }

    // The example of Newcombe's table II: 56/70 − 48/80. Katz's interval of the ratio, 1.077 to
    // 1.651, assumes normal errors of the logarithms; the tolerance covers the difference of the
    // methods.
    #[test]
    fn changes_of_shares_as_published() {
        let (base, new) = (share(48, 80), share(56, 70));
        let d = Change::Difference.interval(&base, &new, Z).unwrap();
        assert!((d.low - 0.0524).abs() < 1e-4 && (d.high - 0.3339).abs() < 1e-4, "{d:?}");
        let r = Change::Relative.interval(&base, &new, Z).unwrap();
        assert!((r.value - 1.0 / 3.0).abs() < 1e-9, "{r:?}");
        assert!((r.low - 0.08).abs() < 0.02 && (r.high - 0.66).abs() < 0.04, "{r:?}");
        let p = Change::Difference.beyond(&base, &new, 0.0, true).unwrap();
        assert!((0.001..0.01).contains(&p), "{p}");
        assert_eq!(Change::Difference.beyond(&base, &new, 0.3, true), Some(1.0));
        assert_eq!(Change::Difference.beyond(&new, &base, 0.0, true), Some(1.0));
        let mirrored = Change::Difference.beyond(&new, &base, 0.0, false).unwrap();
        assert!((mirrored - p).abs() < 1e-9);
    }

    #[test]
    fn from_nothing_and_to_nothing() {
        let none = share(0, 10_000);
        let some = share(500, 10_000);
        let grown = Change::Relative.interval(&none, &some, Z).unwrap();
        assert!(grown.low > 50.0 && grown.value.is_infinite() && grown.high.is_infinite(), "{grown:?}");
        assert!(Change::Relative.beyond(&none, &some, 0.1, true).unwrap() < 1e-6);
        let gone = Change::Relative.interval(&some, &none, Z).unwrap();
        assert!(gone.value == -1.0 && gone.low == -1.0 && gone.high < -0.9, "{gone:?}");
        assert_eq!(Change::Relative.interval(&none, &none, Z), None);
        assert_eq!(share(0, 0).interval(Z), None);
    }

    #[test]
    fn a_tail_of_few_samples_bounds_nothing() {
        let histogram = histogram(1..=200);
        let at =
            |fraction, z| MeasuredNumber::Percentile { fraction, histogram: &histogram }.interval(z).unwrap();
        assert!(at(0.99, Z).high.is_infinite() && at(0.99, Z).low > 150.0);
        assert!(at(0.5, Z).low > 80.0 && at(0.5, Z).high < 120.0, "{:?}", at(0.5, Z));
        assert!((at(0.5, 0.0).value - 100.0).abs() < 4.0);
    }

    /// Counts in how many of `runs` pairs the 99th percentile counts as grown by more than `bound`.
    /// The latency is exponential, and its scale grew by `growth`.
    fn alarms(runs: u64, growth: f64, bound: f64) -> u64 {
        let alarm = |seed: &u64| {
            let mut next = uniform(*seed);
            let mut of =
                |scale: f64| histogram((0..20_000).map(|_| (100.0 - scale * (1.0 - next()).ln()) as u32));
            let (base, new) = (of(400.0), of(400.0 * growth));
            let percentile = |histogram| MeasuredNumber::Percentile { fraction: 0.9, histogram };
            let p = Change::Relative.beyond(&percentile(&base), &percentile(&new), bound, true);
            p.unwrap() <= super::super::TAIL
        };
        (0..runs).filter(alarm).count() as u64
    }

    #[test]
    fn alarms_are_false_as_often_as_stated() {
        // The hardest case: nothing changed, and the bound is 0. The stated rate is 2.5 of 100; 200
        // runs give 5 ± 2.2.
        let false_alarms = alarms(200, 1.0, 0.0);
        assert!((1..=12).contains(&false_alarms), "{false_alarms} of 200");
        // Nothing changed, and growth by a tenth is allowed.
        assert_eq!(alarms(40, 1.0, 0.1), 0);
        // True growth by 16 % where a tenth is allowed. It is 16 % of the percentile, which has a
        // constant part.
        assert!(alarms(40, 1.18, 0.1) > 32);
    }

    proptest! {
        #[test]
        fn intervals_hold_their_value_and_grow(
            a in 1u64..5000, b in 1u64..5000, z in 0.1f64..6.0,
            values in proptest::collection::vec(1u32..100_000, 20..300),
        ) {
            let histogram = histogram(values.iter().copied());
            let value = values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
            for measured in [
                share(a.min(b), a.max(b)),
                MeasuredNumber::Count { samples: a, each: 3.0 },
                MeasuredNumber::Mean { value, histogram: &histogram },
                MeasuredNumber::Percentile { fraction: 0.5, histogram: &histogram },
                MeasuredNumber::Percentile { fraction: 0.99, histogram: &histogram },
            ] {
                let (near, far) = (measured.interval(z).unwrap(), measured.interval(z + 0.5).unwrap());
                prop_assert!(near.low <= near.value && near.value <= near.high, "{measured:?} {near:?}");
                prop_assert!(far.low <= near.low && near.high <= far.high, "{measured:?} {near:?} {far:?}");
            }
        }
    }
}
