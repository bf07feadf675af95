//! How sure a number is: intervals of shares, percentiles from buckets, and when there is too little to say
//! anything.

use precise_common::latency;
use serde::Serialize;

/// Samples below which a view does not rank.
///
/// With 100 samples, a share of one half has a 95 % interval of ±9.6 points: two entries that differ by less
/// than that are in no order at all, and below 100 that is nearly every table.
pub const MIN_SAMPLES: u64 = 100;

/// Samples that must lie on each side of a percentile before it is given: with fewer, it is one sample's
/// latency.
pub const MIN_TAIL: f64 = 5.0;

/// Quantile of the normal distribution for 95 %, two-sided.
const Z: f64 = 1.959_963_984_540_054;

/// A part of a whole with its 95 % confidence interval. All numbers are in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Share {
    /// The part that was seen.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Share {
    /// `part` of `whole` samples, with the interval of Wilson: unlike the textbook one, it holds for small
    /// counts and for shares near 0 and 1. Nothing of nothing is 0 with the interval 0 to 1.
    pub fn wilson(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let n = whole as f64;
        let p = (part as f64 / n).min(1.0);
        let z2 = Z * Z;
        let center = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        // Rounding must not put the value outside of its own interval.
        Self { value: p, low: (center - half).clamp(0.0, p), high: (center + half).clamp(p, 1.0) }
    }

    /// The longer arm of the interval: what stands behind `±`.
    pub fn half_width(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }
}

/// A latency percentile from buckets, core cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Middle of the bucket: the value to print. At most [`latency::RELATIVE_ERROR`] off.
    pub cycles: f64,
    /// Smallest latency of the bucket.
    pub low: u64,
    /// Largest latency of the bucket.
    pub high: u64,
}

/// Counts per latency bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; latency::BUCKETS as usize], total: 0 }
    }
}

impl Histogram {
    /// Adds samples to a bucket. A bucket that does not exist is left out.
    pub fn add(&mut self, bucket: u8, samples: u64) {
        if let Some(count) = self.counts.get_mut(usize::from(bucket)) {
            *count = count.saturating_add(samples);
            self.total = self.total.saturating_add(samples);
        }
    }

    /// Samples in all buckets.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The latency that `fraction` (0..=1) of the samples do not exceed; `None` where fewer than [`MIN_TAIL`]
    /// samples lie on one side of it.
    pub fn percentile(&self, fraction: f64) -> Option<Percentile> {
        let n = self.total as f64;
        // A hair of slack: 500 × (1 − 0.99) is 5.000000000000004 or 4.999999999999996.
        if n * fraction.min(1.0 - fraction) < MIN_TAIL - 1e-9 {
            return None;
        }
        let rank = (fraction * n).ceil().max(1.0) as u64;
        let mut below = 0u64;
        let position = self.counts.iter().position(|count| {
            below = below.saturating_add(*count);
            below >= rank
        })?;
        let bucket = position as u32;
        Some(Percentile {
            cycles: latency::middle(bucket),
            low: latency::lower(bucket),
            high: latency::lower(bucket + 1) - 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    // Wilson's interval as R's `prop.test(x, n, correct = FALSE)` and statsmodels give it.
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
    fn percentiles_need_a_tail() {
        let mut histogram = Histogram::default();
        for cycles in 1..=499 {
            histogram.add(latency::bucket(cycles) as u8, 1);
        }
        assert_eq!(histogram.percentile(0.99), None);
        histogram.add(latency::bucket(500) as u8, 1);
        let p99 = histogram.percentile(0.99).unwrap();
        assert!(p99.low <= 495 && 495 <= p99.high, "{p99:?}");
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_value(part in any::<u64>(), whole in any::<u64>()) {
            let s = Share::wilson(part.min(whole), whole);
            prop_assert!(0.0 <= s.low && s.low <= s.value && s.value <= s.high && s.high <= 1.0);
        }

        #[test]
        fn a_percentile_is_as_close_as_stated(mut values in proptest::collection::vec(any::<u32>(), 10..300)) {
            let mut histogram = Histogram::default();
            for v in &values {
                histogram.add(latency::bucket(*v) as u8, 1);
            }
            values.sort_unstable();
            let exact = f64::from(values[values.len().div_ceil(2) - 1]);
            let p50 = histogram.percentile(0.5).unwrap();
            prop_assert!(p50.low as f64 <= exact && exact <= p50.high as f64);
            prop_assert!((p50.cycles - exact).abs() <= exact * latency::RELATIVE_ERROR + 1e-9);
        }
    }
}
