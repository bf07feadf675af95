//! Histograms of latencies, and the percentiles computed from them.

use precise_common::latency;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, Normal};

use super::{Interval, MIN_TAIL, Samples, TAIL, Weight, Z, share::equal_samples};

/// The number of samples on the smaller side of a percentile from which on the normal distribution
/// approximates the binomial one.
const NORMAL: f64 = 500.0;

/// A latency percentile computed from buckets, in core cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Percentile {
    /// The middle of the bucket: the value to print. It differs by at most
    /// [`latency::RELATIVE_ERROR`] from the percentile of these samples.
    pub cycles: f64,
    /// Smallest latency of the bucket.
    pub low: u64,
    /// Largest latency of the bucket.
    pub high: u64,
    /// The 95 % interval of the percentile of all accesses, sampled or not: from the start of one
    /// bucket to the end of another.
    pub interval: [u64; 2],
}

impl Percentile {
    /// Limits the percentile to `most`, the largest latency of any sample. The middle and the end
    /// of a bucket may lie above it.
    pub fn at_most(self, most: u32) -> Self {
        let [from, to] = self.interval;
        let top = u64::from(most).max(from);
        Self { cycles: self.cycles.min(most.into()), interval: [from, to.min(top)], ..self }
    }
}

/// A histogram of samples by latency bucket.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Histogram {
    /// The buckets with samples, in order; most groups have few.
    buckets: Vec<(u8, Bin)>,
    total: Samples,
}

/// The content of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
struct Bin {
    samples: Samples,
    /// The sum of the latencies in core cycles, each multiplied by the weight of its sample.
    latency: f64,
}

impl Histogram {
    /// Adds samples to a bucket. Ignores a bucket that does not exist.
    pub fn add(&mut self, bucket: u8, samples: impl Into<Samples>) {
        let samples = samples.into();
        self.add_bin(bucket, Bin { samples, latency: latency::middle(bucket.into()) * samples.weight.sum });
    }

    /// Adds samples to a bucket; `latency` is the sum of their latencies, each multiplied by the
    /// weight of its sample.
    pub fn add_known(&mut self, bucket: u8, samples: Samples, latency: f64) {
        self.add_bin(bucket, Bin { samples, latency });
    }

    fn add_bin(&mut self, bucket: u8, bin: Bin) {
        if u32::from(bucket) >= latency::BUCKETS || bin.samples.count == 0 {
            return;
        }
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => {
                let sum = &mut self.buckets[at].1;
                sum.samples.add(bin.samples);
                sum.latency += bin.latency;
            }
            Err(at) => {
                if self.buckets.is_empty() {
                    // Most groups of millions have one sample.
                    self.buckets.reserve_exact(1);
                }
                self.buckets.insert(at, (bucket, bin));
            }
        }
        self.total.add(bin.samples);
    }

    /// Adds all samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        other.buckets.iter().for_each(|(bucket, bin)| self.add_bin(*bucket, *bin));
    }

    /// Returns the samples of all buckets together.
    pub fn total(&self) -> Samples {
        self.total
    }

    /// Returns the number and the samples of each bucket that is not empty, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, Samples)> {
        self.buckets.iter().map(|(bucket, bin)| (u32::from(*bucket), bin.samples))
    }

    /// Returns the latency that `fraction` (0..=1) of the samples do not exceed, with its interval
    /// from order statistics; `None` if fewer than [`MIN_TAIL`] samples lie on one side of it.
    pub fn percentile(&self, fraction: f64) -> Option<Percentile> {
        let ranks = self.ranked(fraction)?;
        // Tolerance for rounding: 500 × (1 − 0.99) is 5.000000000000004 or 4.999999999999996.
        if ranks.n * fraction.min(1.0 - fraction) < MIN_TAIL - 1e-9 {
            return None;
        }
        let bucket = ranks.bucket(fraction * ranks.n)?;
        let (first, last) = ranks.around(TAIL, Z)?;
        let (first, last) = (first.max(1) as f64, (last as f64).min(ranks.n));
        Some(Percentile {
            cycles: latency::middle(bucket),
            low: latency::lower(bucket),
            high: latency::lower(bucket + 1) - 1,
            interval: [latency::lower(ranks.bucket(first)?), latency::lower(ranks.bucket(last)? + 1) - 1],
        })
    }

    /// Returns the percentile as a number that moves smoothly, for comparisons. The samples of
    /// a bucket are taken as evenly spread around their mean, which is known, as far as the bucket
    /// reaches to both sides. If all samples have the same latency at an end of the bucket, the
    /// result is exact. The interval reaches `z` standard errors to each side; with too few samples
    /// for that, its upper end is infinite and its lower end is 0. `None` if there are no samples.
    pub fn smooth_percentile(&self, fraction: f64, z: f64) -> Option<Interval> {
        let ranks = self.ranked(fraction)?;
        let (first, last) = ranks.around(Normal::standard().sf(z), z)?;
        let value = ranks.latency(fraction * ranks.n)?;
        let low = if first < 1 { 0.0 } else { ranks.latency(first as f64 - 1.0)?.min(value) };
        let high = if last as f64 > ranks.n { f64::INFINITY } else { ranks.latency(last as f64)?.max(value) };
        Some(Interval { value, low, high })
    }

    /// Returns the standard deviation of the latencies in core cycles, including the spread within
    /// buckets; `None` if there are not enough samples.
    pub fn deviation(&self) -> Option<f64> {
        let (n, weight) = (self.total.equal(), self.total.weight.sum);
        let mean =
            self.buckets().map(|(b, samples)| latency::middle(b) * samples.weight.sum).sum::<f64>() / weight;
        let squares = self.buckets().map(|(b, samples)| {
            let width = (latency::lower(b + 1) - latency::lower(b) - 1) as f64;
            ((latency::middle(b) - mean).powi(2) + width * width / 12.0) * samples.weight.sum
        });
        (n > 1.0).then(|| (squares.sum::<f64>() / weight * (n / (n - 1.0))).sqrt())
    }

    /// Returns the samples as if all had the same weight; `None` if there are none.
    fn ranked(&self, fraction: f64) -> Option<Ranked<'_>> {
        let Samples { count, weight } = self.total;
        if count == 0 || weight.sum.is_nan() || weight.sum <= 0.0 {
            return None;
        }
        let n = if self.total.are_even() {
            count as f64
        } else {
            let mut below = Weight::default();
            for (_, samples) in self.buckets() {
                if below.sum >= fraction * weight.sum {
                    break;
                }
                below.add(samples.weight);
            }
            // The effective number cannot exceed the number of samples.
            equal_samples(below, weight).min(count as f64)
        };
        Some(Ranked { histogram: self, fraction, n, scale: n / weight.sum })
    }
}

/// The samples of a histogram in ascending order, as if all had the same weight. With unequal
/// weights their number is the effective sample size for the part of the weight below a percentile
/// (Woodruff, Journal of the American Statistical Association 47, 1952). If each sample weighs 1,
/// they are the samples themselves.
struct Ranked<'a> {
    histogram: &'a Histogram,
    fraction: f64,
    n: f64,
    scale: f64,
}

impl Ranked<'_> {
    /// Returns the ranks between which the true percentile lies, except with probability `tail` on
    /// each side.
    fn around(&self, tail: f64, z: f64) -> Option<(u64, u64)> {
        ranks(self.n.round() as u64, self.fraction, tail, z)
    }

    /// Returns the bucket of the sample of rank `rank`; the smallest sample has rank 1.
    fn bucket(&self, rank: f64) -> Option<u32> {
        let mut below = 0.0;
        let mut last = None;
        for (bucket, samples) in self.histogram.buckets() {
            below += samples.weight.sum * self.scale;
            last = Some(bucket);
            if below >= rank - 1e-9 {
                break;
            }
        }
        last
    }

    /// Returns the latency below which `rank` samples lie.
    fn latency(&self, rank: f64) -> Option<f64> {
        let mut below = 0.0;
        let mut last = None;
        for (bucket, bin) in &self.histogram.buckets {
            let here = bin.samples.weight.sum * self.scale;
            // Latencies are integers, so a bucket reaches half a cycle beyond its first and last.
            let bucket = u32::from(*bucket);
            let (from, to) = (latency::lower(bucket) as f64 - 0.5, latency::lower(bucket + 1) as f64 - 0.5);
            let mean = (bin.latency / bin.samples.weight.sum).clamp(from + 0.5, to - 0.5);
            let (from, to) = (from.max(2.0 * mean - to), to.min(2.0 * mean - from));
            let part = ((rank - below).max(0.0) / here).min(1.0);
            last = Some((from + (to - from) * part).max(0.0));
            below += here;
            if below >= rank {
                break;
            }
        }
        last
    }
}

/// Returns the ranks of the samples between which the true percentile lies, except with probability
/// `tail` on each side (`z` is the matching quantile of the normal distribution). The number of the
/// `n` samples below the percentile has a binomial distribution, whatever the latencies are (David
/// and Nagaraja, Order Statistics, §7.1). A rank is 0, or more than `n`, if no sample is far enough
/// out.
fn ranks(n: u64, fraction: f64, tail: f64, z: f64) -> Option<(u64, u64)> {
    let mean = n as f64 * fraction;
    let (first, last) = if mean.min(n as f64 - mean) < NORMAL {
        let binomial = Binomial::new(fraction, n).ok()?;
        (binomial.inverse_cdf(tail), binomial.inverse_cdf(1.0 - tail).saturating_add(1))
    } else {
        let half = z * (mean * (1.0 - fraction)).sqrt();
        ((mean - half).floor() as u64, (mean + half).ceil() as u64 + 1)
    };
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // From the binomial sums in exact fractions. The first two are in every table of the median.
    #[test]
    fn ranks_as_in_tables() {
        let ranks = |n, fraction| ranks(n, fraction, TAIL, Z);
        assert_eq!(ranks(20, 0.5), Some((6, 15)));
        assert_eq!(ranks(100, 0.5), Some((40, 61)));
        assert_eq!(ranks(100, 0.9), Some((84, 96)));
        assert_eq!(ranks(500, 0.99), Some((490, 500)));
        assert_eq!(ranks(200, 0.99), Some((195, 201)));
        // 10,000 ± 1.96 × 70.7.
        assert_eq!(ranks(20_000, 0.5), Some((9861, 10_140)));
    }

    #[test]
    fn percentiles_need_a_tail() {
        let mut histogram = Histogram::default();
        for cycles in 1..=499 {
            histogram.add(latency::bucket(cycles) as u8, 1u64);
        }
        assert_eq!(histogram.percentile(0.99), None);
        histogram.add(latency::bucket(500) as u8, 1u64);
        let p99 = histogram.percentile(0.99).unwrap();
        assert!(p99.low <= 495 && 495 <= p99.high, "{p99:?}");
        assert!(p99.interval[0] <= 490 && p99.interval[1] >= 500, "{p99:?}");
        assert_eq!(p99.at_most(500).interval[1], 500);
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    // Half of the accesses are fast and half are slow; the fast ones were sampled ten times as
    // often.
    #[test]
    fn samples_that_weigh_more_count_more() {
        let mut histogram = Histogram::default();
        histogram.add(latency::bucket(10) as u8, Samples::each(10_000, 100.0));
        histogram.add(latency::bucket(1000) as u8, Samples::each(1000, 1000.0));
        let at = |fraction| histogram.percentile(fraction).unwrap();
        assert!(at(0.49).high == 10 && at(0.51).low > 900 && at(0.9).low > 900, "{:?}", at(0.9));
        // 50 ± 1.6 %: the precision of 3636 equal samples, not of 11,000 (0.9).
        assert!(at(0.48).interval == [10, 10] && at(0.487).interval[1] > 900, "{:?}", at(0.487));
        assert_eq!(histogram.percentile(0.999), None, "5 of 3636 would have to lie above it");
        let smooth = histogram.smooth_percentile(0.5, Z).unwrap();
        assert!(smooth.low < 12.0 && smooth.high > 900.0, "{smooth:?}");
        let even = histogram.deviation().unwrap();
        assert!((even - 495.0).abs() < 10.0, "{even}");
    }

    // 255 is the last latency of a bucket; 256 and 287 are the first and last of the next.
    #[test]
    fn neighbours_in_two_buckets_are_neighbours() {
        let all = |cycles: u32| {
            let mut histogram = Histogram::default();
            let samples = Samples::from(600);
            histogram.add_known(latency::bucket(cycles) as u8, samples, 600.0 * f64::from(cycles));
            histogram.smooth_percentile(0.99, Z).unwrap()
        };
        assert_ne!(latency::bucket(255), latency::bucket(256));
        assert_eq!(latency::bucket(256), latency::bucket(287));
        for cycles in [255, 256, 287] {
            let percentile = all(cycles);
            assert!((percentile.value - f64::from(cycles)).abs() <= 0.5, "{cycles}: {percentile:?}");
        }
    }

    proptest! {
        #[test]
        fn a_percentile_is_as_close_as_stated(mut values in proptest::collection::vec(any::<u32>(), 10..300)) {
            let mut histogram = Histogram::default();
            for v in &values {
                histogram.add(latency::bucket(*v) as u8, 1u64);
            }
            values.sort_unstable();
            let exact = f64::from(values[values.len().div_ceil(2) - 1]);
            let p50 = histogram.percentile(0.5).unwrap();
            prop_assert!(p50.low as f64 <= exact && exact <= p50.high as f64);
            prop_assert!((p50.cycles - exact).abs() <= exact * latency::RELATIVE_ERROR + 1e-9);
            prop_assert!(p50.interval[0] <= p50.low && p50.high <= p50.interval[1]);
        }
    }
}
