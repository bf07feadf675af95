//! Shares: parts of a whole with their confidence intervals.

use schemars::JsonSchema;
use serde::Serialize;

use super::Z;

/// A part of a whole with its 95 % confidence interval. All numbers are in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Share {
    /// The observed part.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Share {
    /// Returns the share of `part` in `whole` samples, with the Wilson interval. Unlike the
    /// textbook interval, it is valid for small counts and for shares near 0 and 1. If `whole` is
    /// 0, the share is 0 with the interval 0 to 1.
    pub fn wilson(part: u64, whole: u64) -> Self {
        Self::of(part as f64 / whole as f64, whole as f64)
    }

    /// Returns the share of `part` in `whole` for samples of different weights (their latencies,
    /// for example). One heavy sample makes such a share less certain than many light ones.
    ///
    /// The interval is Wilson's for the effective sample size: the number of equal samples that
    /// would give the share the same variance, which is that of a ratio of two sums (Cochran,
    /// Sampling Techniques, §6.4).
    pub fn weighted(part: Weight, whole: Weight) -> Self {
        Self::weighted_at(part, whole, Z)
    }

    /// Returns the weighted share with an interval of `z` standard errors to each side.
    pub fn weighted_at(part: Weight, whole: Weight, z: f64) -> Self {
        if whole.sum <= 0.0 {
            return Self::at(0.0, 0.0, z);
        }
        let p = (part.sum / whole.sum).clamp(0.0, 1.0);
        Self::at(p, equal_samples(part, whole), z)
    }

    /// Returns a share of `value` that was observed among `n` equal samples; `n` need not be an
    /// integer.
    pub fn of(value: f64, n: f64) -> Self {
        Self::at(value, n, Z)
    }

    /// Returns the share with an interval of `z` standard errors to each side.
    pub fn at(value: f64, n: f64, z: f64) -> Self {
        if n.is_nan() || n <= 0.0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let p = value.clamp(0.0, 1.0);
        let z2 = z * z;
        let center = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        // Rounding must not put the value outside of its own interval.
        Self { value: p, low: (center - half).clamp(0.0, p), high: (center + half).clamp(p, 1.0) }
    }

    /// Returns the longer arm of the interval: the number after `±`.
    pub fn half_width(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }
}

/// Returns the effective sample size: the number of equal samples that would give the share of
/// `part` in `whole` the same variance.
pub(crate) fn equal_samples(part: Weight, whole: Weight) -> f64 {
    let p = (part.sum / whole.sum).clamp(0.0, 1.0);
    let rest = (whole.squares - part.squares).max(0.0);
    let spread = (1.0 - p).powi(2) * part.squares + p.powi(2) * rest;
    if p * (1.0 - p) > 0.0 && spread > 0.0 {
        p * (1.0 - p) * whole.sum.powi(2) / spread
    } else {
        whole.sum.powi(2) / whole.squares
    }
}

/// The weight of some samples together.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Weight {
    /// The sum of the weights.
    pub sum: f64,
    /// The sum of the squared weights.
    pub squares: f64,
}

impl Weight {
    /// Returns the weight of samples of which only the sum and the largest are known. The squares
    /// add up to at most the product of these two, so an interval may be too wide, but not too
    /// narrow.
    pub fn at_most(sum: u64, largest: u32) -> Self {
        Self { sum: sum as f64, squares: sum as f64 * f64::from(largest) }
    }

    /// Returns the weight with each sample's weight multiplied by `times`.
    pub fn times(self, times: f64) -> Self {
        Self { sum: self.sum * times, squares: self.squares * times * times }
    }

    /// Returns the weight of `count` samples that weigh the same.
    pub fn even(sum: u64, count: u64) -> Self {
        Self { sum: sum as f64, squares: (sum as f64).powi(2) / count.max(1) as f64 }
    }

    /// Adds other samples.
    pub fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    // Wilson's interval as R's `prop.test(x, n, correct = FALSE)` and statsmodels compute it.
    #[test]
    fn wilson_as_published() {
        let s = Share::wilson(50, 100);
        assert!(close(s.low, 0.40383) && close(s.high, 0.59617), "{s:?}");
        let s = Share::wilson(0, 10);
        assert!(close(s.low, 0.0) && close(s.high, 0.27753), "{s:?}");
        let s = Share::wilson(81, 263);
        assert!(close(s.low, 0.25527) && close(s.high, 0.36618), "{s:?}");
        assert_eq!(Share::wilson(0, 0), Share { value: 0.0, low: 0.0, high: 1.0 });
    }

    #[test]
    fn equal_weights_are_counts_and_one_heavy_sample_is_not() {
        let whole = Weight::even(100 * 7, 100);
        let share = Share::weighted(Weight::even(30 * 7, 30), whole);
        let counted = Share::wilson(30, 100);
        assert!(close(share.low, counted.low) && close(share.high, counted.high), "{share:?} {counted:?}");
        // Half of all cycles are in one sample: there could as well have been none such, or two.
        let mut whole = Weight::even(1000, 100);
        whole.add(Weight::at_most(1000, 1000));
        let share = Share::weighted(Weight::at_most(1000, 1000), whole);
        assert!(share.low < 0.2 && share.high > 0.8, "{share:?}");
        assert_eq!(Share::weighted(Weight::default(), Weight::default()).high, 1.0);
        let all = Share::weighted(whole, whole);
        assert!(all.value == 1.0 && all.low < 0.6, "one sample is half of it: {all:?}");
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_value(part in any::<u64>(), whole in any::<u64>(), largest in any::<u32>()) {
            let within = |s: Share| 0.0 <= s.low && s.low <= s.value && s.value <= s.high && s.high <= 1.0;
            prop_assert!(within(Share::wilson(part.min(whole), whole)));
            let mut all = Weight::at_most(part, largest);
            all.add(Weight::even(whole, part));
            prop_assert!(within(Share::weighted(Weight::at_most(part, largest), all)));
        }
    }
}
