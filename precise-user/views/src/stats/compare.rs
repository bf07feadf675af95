//! Tests for differences between two captures: whether they are real or chance.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::{Histogram, Interval, Samples, Share, change, share::equal_samples};
use precise_model::CompactSort as _;

/// The number of samples that each of the four cells of a comparison must expect if nothing
/// changed. Below it, the normal distribution does not approximate the true one (Cochran 1954).
const MIN_EXPECTED: f64 = 5.0;

/// Returns the probability that chance alone makes two shares, `(part, whole)` each, differ at
/// least as much as these: the two-sided z-test of two proportions. With unequal weights it uses
/// the effective sample size that gives each share the same variance. `None` if there are too few
/// samples.
pub fn shares(base: (Samples, Samples), new: (Samples, Samples)) -> Option<f64> {
    let equal = |(part, whole): (Samples, Samples)| match whole.are_even() {
        true => (part.count as f64, whole.count as f64),
        false => {
            let equal = equal_samples(part.weight, whole.weight);
            (equal * (part.weight.sum / whole.weight.sum).clamp(0.0, 1.0), equal)
        }
    };
    proportions(equal(base), equal(new))
}

fn proportions(base: (f64, f64), new: (f64, f64)) -> Option<f64> {
    let pooled = (base.0 + new.0) / (base.1 + new.1);
    let least = base.1.min(new.1) * pooled.min(1.0 - pooled);
    if least.is_nan() || least < MIN_EXPECTED {
        return None;
    }
    let spread = (pooled * (1.0 - pooled) * (1.0 / base.1 + 1.0 / new.1)).sqrt();
    two_sided((new.0 / new.1 - base.0 / base.1) / spread)
}

/// A difference with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The observed difference.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Returns the difference of two shares of independent samples, with the interval that Newcombe
/// makes of two Wilson intervals (Statistics in Medicine 17, 1998, method 10).
pub fn difference(base: Share, new: Share) -> Difference {
    let Interval { value, low, high } = change::difference(base.into(), new.into());
    Difference { value, low, high }
}

/// The shift of latencies from one capture to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyShift {
    /// The probability that an access of the new capture takes longer than one of the base. Ties
    /// count half, so 0.5 means no change.
    pub slower: f64,
    /// The probability that chance alone makes a shift at least as large as this.
    pub p: f64,
}

/// Returns the result of the Mann-Whitney test of two histograms: two-sided, by the normal
/// distribution with the correction for ties, which buckets make. The test uses only the order of
/// latencies, so one huge latency weighs no more than another. `None` if there are too few samples.
pub fn latencies(base: &Histogram, new: &Histogram) -> Option<LatencyShift> {
    // With unequal weights: the effective sample size (Kish).
    let equal = |histogram: &Histogram| {
        let total = histogram.total();
        let scale = total.scale();
        (total.equal(), move |samples: Samples| samples.weight.sum * scale)
    };
    let ((m, of_base), (n, of_new)) = (equal(base), equal(new));
    if m.min(n) < 2.0 * MIN_EXPECTED {
        return None;
    }
    let mut base = base.buckets().map(|(bucket, samples)| (bucket, of_base(samples))).peekable();
    let (mut wins, mut below, mut ties) = (0.0, 0.0, 0.0);
    let tie = |t: f64| t * t * t - t;
    for (bucket, samples) in new.buckets() {
        let count = of_new(samples);
        while let Some((_, earlier)) = base.next_if(|(other, _)| *other < bucket) {
            below += earlier;
            ties += tie(earlier);
        }
        let same = base.next_if(|(other, _)| *other == bucket).map_or(0.0, |(_, same)| same);
        wins += count * (below + same / 2.0);
        below += same;
        ties += tie(same + count);
    }
    ties += base.map(|(_, later)| tie(later)).sum::<f64>();
    let all = m + n;
    let spread = (m * n / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)))).max(0.0).sqrt();
    let shift = wins - m * n / 2.0;
    // All samples are in one bucket, so there is no difference.
    let p = if spread > 0.0 { two_sided(shift / spread)? } else { 1.0 };
    Some(LatencyShift { slower: wins / (m * n), p })
}

/// Corrects probabilities for their number by Holm's method: if those up to 0.05 count as real, at
/// most 5 % of comparisons contain even one mistake.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.compact_sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((p.len() - rank) as f64 * p[index]).min(1.0);
        corrected[index] = least;
    }
    corrected
}

/// Returns the probability that a standard normal variable is at least as far from 0 as `z`.
fn two_sided(z: f64) -> Option<f64> {
    let p = 2.0 * Normal::standard().sf(z.abs());
    p.is_finite().then_some(p)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of Newcombe's table II: 56/70 − 48/80.
    #[test]
    fn differences_as_published() {
        let d = difference(Share::wilson(48, 80), Share::wilson(56, 70));
        assert!((d.value - 0.2).abs() < 1e-9, "{d:?}");
        assert!((d.low - 0.0524).abs() < 1e-4 && (d.high - 0.3339).abs() < 1e-4, "{d:?}");
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    // The results of R's prop.test(c(15, 30), c(100, 100), correct = FALSE), and of (45, 55).
    #[test]
    fn shares_as_r_has_it() {
        let of = |base: u64, new: u64, all: u64| shares((base.into(), all.into()), (new.into(), all.into()));
        assert!(close(of(15, 30, 100).unwrap(), 0.011_085));
        assert!(close(of(45, 55, 100).unwrap(), 0.157_299));
        assert_eq!(of(1, 3, 100), None, "too few");
        assert_eq!(of(0, 0, 0), None);
        assert_eq!(of(100, 100, 100), None, "no difference can be seen");
    }

    #[test]
    fn weights_that_are_equal_are_counts_and_heavy_samples_are_fewer() {
        let of = |part, whole, each| (Samples::each(part, each), Samples::each(whole, each));
        let weighted = shares(of(15, 100, 7.0), of(30, 100, 1.0)).unwrap();
        assert!(close(weighted, 0.011_085), "{weighted}");
        // The same shares, with half of the weight in a tenth of the samples.
        let heavy = |part: u64, whole: u64| {
            let of = |n: u64| Samples::each(9 * n, 1.0).and(Samples::each(n, 9.0));
            (of(part), of(whole))
        };
        let less = shares(heavy(15, 100), heavy(30, 100)).unwrap();
        let even = shares((150.into(), 1000.into()), (300.into(), 1000.into())).unwrap();
        assert!(less > 1e6 * even, "{less} {even}");
        assert_eq!(shares(Default::default(), Default::default()), None);
    }

    fn histogram(values: &[u8]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|bucket| histogram.add(*bucket, 1u64));
        histogram
    }

    // The results of R's wilcox.test(new, base, exact = FALSE, correct = FALSE). Below 16 cycles
    // each value has its own bucket.
    #[test]
    fn mann_and_whitney_as_r_has_it() {
        let base: Vec<u8> = (1..=10).collect();
        let shifted: Vec<u8> = (4..=13).collect();
        let shift = latencies(&histogram(&base), &histogram(&shifted)).unwrap();
        // U = 100 - 49/2 = 75.5: z = 25.5 / sqrt(100/12 × (21 - 42/380)).
        assert!(close(shift.slower, 0.755) && close(shift.p, 0.053_272), "{shift:?}");
        let apart: Vec<u8> = (20..30).collect();
        let shift = latencies(&histogram(&base), &histogram(&apart)).unwrap();
        assert!(close(shift.slower, 1.0) && close(shift.p, 0.000_157), "{shift:?}");
        let back = latencies(&histogram(&apart), &histogram(&base)).unwrap();
        assert!(close(back.slower, 0.0) && back.p == shift.p, "{back:?}");
        let same = latencies(&histogram(&[7; 50]), &histogram(&[7; 60])).unwrap();
        assert_eq!((same.slower, same.p), (0.5, 1.0));
        assert_eq!(latencies(&histogram(&[1; 9]), &histogram(&base)), None);
    }

    // The results of R's p.adjust(…, "holm").
    #[test]
    fn holm_as_r_has_it() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, theirs) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!(close(*ours, theirs), "{corrected:?}");
        }
        assert!(holm(&[]).is_empty());
    }
}
