//! Intervals that include the differences between nodes.
//!
//! The nodes of a fleet differ, and those that reported are taken as a sample of all that could
//! have. They are in 32 groups by a hash of their names. What a number would be without a group
//! says how much it owes to the group: the jackknife (Wolter, Introduction to Variance Estimation,
//! §4.2, the delete-a-group form of Kott, Journal of Official Statistics 17, 2001). Its variance
//! contains all that differs between groups: nodes, times, samples by chance, and those that a
//! thinned tier kept by chance.
//!
//! An interval is the wider one of two: that of the jackknife, with Student's distribution, and
//! that of independent samples, which a few groups may understate by chance.

use schemars::JsonSchema;
use serde::Serialize;

use crate::tables::NODE_GROUPS;
use precise_model::CompactSort as _;

/// The number of groups of nodes.
pub(crate) const GROUPS: usize = NODE_GROUPS as usize;
/// The quantile of the normal distribution for 95 %, two-sided.
const Z: f64 = 1.959_963_984_540_054;
/// What an interval holds.
const HELD: f64 = 0.95;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct FleetInterval {
    /// The number.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl FleetInterval {
    /// Returns the longer arm of the interval: the number after `±`.
    pub fn half_width(&self) -> f64 {
        (self.high - self.value).max(self.value - self.low)
    }

    /// Returns whether the interval holds a number.
    pub fn holds(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }
}

/// Weights of samples by group of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The sums of each group.
    pub groups: [u64; GROUPS],
    /// The sum of the squared weights of all samples.
    pub squares: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { groups: [0; GROUPS], squares: 0.0 }
    }
}

impl Spread {
    /// Adds `count` samples of a node group that weigh `weight` together.
    pub fn add(&mut self, group: u32, count: u64, weight: u64) {
        self.add_squared(group, weight, Self::squares(count, weight));
    }

    /// Returns the sum of the squared weights of `count` samples that weigh `weight` together.
    pub fn squares(count: u64, weight: u64) -> f64 {
        (weight as f64).powi(2) / count.max(1) as f64
    }

    /// Adds samples of a node group, with their [`Self::squares`].
    pub fn add_squared(&mut self, group: u32, weight: u64, squares: f64) {
        if let Some(sum) = self.groups.get_mut(group as usize % GROUPS) {
            *sum = sum.saturating_add(weight);
        }
        self.squares += squares;
    }

    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.groups.iter_mut().zip(&other.groups) {
            *sum = sum.saturating_add(*more);
        }
        self.squares += other.squares;
    }

    pub fn sum(&self) -> u64 {
        self.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(*group))
    }

    /// Returns the number of groups that have something.
    pub fn filled(&self) -> u32 {
        self.groups.iter().filter(|sum| **sum > 0).count() as u32
    }

    /// Returns the share of a whole, with its interval.
    pub fn share_of(&self, whole: &Self) -> FleetInterval {
        let (part, all) = (self.sum() as f64, whole.sum() as f64);
        if all <= 0.0 {
            return FleetInterval { value: 0.0, low: 0.0, high: 1.0 };
        }
        let p = (part / all).clamp(0.0, 1.0);
        let alone = (equal_samples(self, whole, p), Z);
        let without = |at: usize| ratio_without(&self.groups, &whole.groups, at);
        let groups = jackknife(&[&whole.groups], p, without);
        let groups = groups.filter(|found| found.variance > 0.0 && p * (1.0 - p) > 0.0);
        let groups = groups.map(|found| (p * (1.0 - p) / found.variance, found.quantile()));
        // The one whose interval is wider.
        let (n, z) = match groups {
            Some((n, t)) if n / t.powi(2) < alone.0 / Z.powi(2) => (n, t),
            _ => alone,
        };
        wilson(p, n, z)
    }
}

/// Returns the interval of Wilson for a share that was observed among `n` equal samples.
fn wilson(p: f64, n: f64, z: f64) -> FleetInterval {
    if n.is_nan() || n <= 0.0 {
        return FleetInterval { value: p, low: 0.0, high: 1.0 };
    }
    let z2 = z * z;
    let center = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // Rounding must not put the value outside of its own interval.
    FleetInterval { value: p, low: (center - half).clamp(0.0, p), high: (center + half).clamp(p, 1.0) }
}

/// Returns the number of equal samples that would give the share `p` of `part` in `whole` the
/// variance that its samples give it (Cochran, Sampling Techniques, §6.4).
fn equal_samples(part: &Spread, whole: &Spread, p: f64) -> f64 {
    let all = (whole.sum() as f64).powi(2);
    let rest = (whole.squares - part.squares).max(0.0);
    let spread = (1.0 - p).powi(2) * part.squares + p.powi(2) * rest;
    if p * (1.0 - p) > 0.0 && spread > 0.0 { p * (1.0 - p) * all / spread } else { all / whole.squares }
}

/// Returns a ratio of sums without one of the groups; `None` if nothing is left.
fn ratio_without(part: &[u64; GROUPS], whole: &[u64; GROUPS], at: usize) -> Option<f64> {
    let left = |of: &[u64; GROUPS]| {
        of.iter().enumerate().filter(|(group, _)| *group != at).map(|(_, sum)| *sum as f64).sum::<f64>()
    };
    let all = left(whole);
    (all > 0.0).then(|| left(part) / all)
}

/// What leaving out each group of nodes showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jackknife {
    pub variance: f64,
    pub freedom: u32,
}

impl Jackknife {
    /// Returns how many standard errors an interval reaches to each side.
    pub fn quantile(self) -> f64 {
        student_quantile(HELD, self.freedom)
    }
}

/// Returns the variance of `value` by leaving out one group after the other; `without` returns the
/// number without a group. `None` if fewer than two groups have something in each of `weights`.
///
/// A group with little counts little: the degrees of freedom are those of as many groups as would
/// be as good if all were alike (Kish).
pub(crate) fn jackknife(
    weights: &[&[u64; GROUPS]],
    value: f64,
    without: impl Fn(usize) -> Option<f64>,
) -> Option<Jackknife> {
    let mut freedom = f64::INFINITY;
    for of in weights {
        let (sum, squares) = of.iter().fold((0.0, 0.0), |(sum, squares), weight| {
            (sum + *weight as f64, squares + (*weight as f64).powi(2))
        });
        freedom = freedom.min(if squares > 0.0 { sum * sum / squares } else { 0.0 } - 1.0);
    }
    let any = |at: &usize| weights.iter().any(|of| of.get(*at).is_some_and(|weight| *weight > 0));
    let (mut n, mut sum) = (0.0, 0.0);
    for at in (0..GROUPS).filter(any) {
        sum += (without(at)? - value).powi(2);
        n += 1.0;
    }
    (n >= 2.0 && freedom > 0.0).then(|| Jackknife {
        variance: (n - 1.0) / n * sum,
        freedom: (freedom.round() as u32).clamp(1, GROUPS as u32 - 1),
    })
}

/// Returns the probability that Student's t is within ±`t` (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4).
pub(crate) fn student(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut sum, mut term) = (0.0, if odd { cosine } else { 1.0 });
    let mut at = if odd { 1 } else { 0 };
    while at + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * f64::from(at + 1) / f64::from(at + 2);
        at += 2;
    }
    if odd { (angle + sine * sum) / std::f64::consts::FRAC_PI_2 } else { sine * sum }
}

/// Returns the number within which Student's t is with probability `held`.
pub(crate) fn student_quantile(held: f64, freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if student(middle, freedom) < held { low = middle } else { high = middle }
    }
    high
}

/// The difference of two shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShareChange {
    pub change: FleetInterval,
    /// The probability that chance and nodes alone make such a difference.
    pub p: f64,
}

/// Degrees of freedom with which Student's distribution is the normal one.
const MANY: u32 = 1000;

/// Returns the difference between the share of `before` and that of `after`, each a part and its
/// whole. The nodes are the same ones, so that a group is left out of both at once.
pub(crate) fn share_change(before: [&Spread; 2], after: [&Spread; 2]) -> ShareChange {
    let of = |[part, whole]: [&Spread; 2]| match whole.sum() {
        0 => 0.0,
        all => part.sum() as f64 / all as f64,
    };
    let (base, new) = (of(before), of(after));
    let value = new - base;
    let all = (before[1].sum() as f64, after[1].sum() as f64);
    let pooled = (before[0].sum() as f64 + after[0].sum() as f64) / (all.0 + all.1).max(1.0);
    let n = [before, after].map(|[part, whole]| equal_samples(part, whole, pooled));
    let alone = (pooled * (1.0 - pooled) * (1.0 / n[0] + 1.0 / n[1])).max(0.0);
    let without = |at: usize| {
        let one = |[part, whole]: [&Spread; 2]| ratio_without(&part.groups, &whole.groups, at);
        Some(one(after)? - one(before)?)
    };
    let groups = jackknife(&[&before[1].groups, &after[1].groups], value, without);
    let (half, p) = wider(value, alone, groups);
    let (low, high) = (value - half, value + half);
    ShareChange { change: FleetInterval { value, low: low.max(-1.0), high: high.min(1.0) }, p }
}

/// Returns the longer arm and the larger probability of the two variances.
fn wider(value: f64, alone: f64, groups: Option<Jackknife>) -> (f64, f64) {
    let beyond = |variance: f64, freedom: u32| match variance > 0.0 {
        true => 1.0 - student(value.abs() / variance.sqrt(), freedom),
        false => f64::from(u8::from(value == 0.0)),
    };
    let (mut half, mut p) = (Z * alone.sqrt(), beyond(alone, MANY));
    if let Some(groups) = groups {
        half = half.max(groups.quantile() * groups.variance.sqrt());
        p = p.max(beyond(groups.variance, groups.freedom));
    }
    (half, p.clamp(0.0, 1.0))
}

/// Returns the growth of a rate, 0.1 for a tenth, with its interval: `before` and `after` are
/// weights and the times, by group, in which they were sampled. `None` if one of the rates is 0.
pub(crate) fn growth(
    before: (&Spread, &[u64; GROUPS]),
    after: (&Spread, &[u64; GROUPS]),
) -> Option<FleetInterval> {
    let total = |of: &[u64; GROUPS]| of.iter().map(|sum| *sum as f64).sum::<f64>();
    let rate = |(weights, times): (&Spread, &[u64; GROUPS])| {
        let (weight, time) = (total(&weights.groups), total(times));
        (weight > 0.0 && time > 0.0).then(|| weight / time)
    };
    let value = (rate(after)? / rate(before)?).ln();
    let without = |at: usize| {
        let one = |(weights, times): (&Spread, &[u64; GROUPS])| ratio_without(&weights.groups, times, at);
        Some((one(after)? / one(before)?).ln()).filter(|found| found.is_finite())
    };
    let relative = |of: &Spread| of.squares / total(&of.groups).powi(2);
    let groups = jackknife(&[before.1, after.1], value, without);
    let (half, _) = wider(value, relative(before.0) + relative(after.0), groups);
    let of = |log: f64| log.exp() - 1.0;
    Some(FleetInterval { value: of(value), low: of(value - half), high: of(value + half) })
}

/// Returns probabilities that are corrected for their number (Holm): the one at each place says
/// whether that one is significant among all.
pub(crate) fn corrected(all: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        all.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.compact_sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut out = vec![None; all.len()];
    let (mut most, mut left) = (0.0_f64, order.len() as f64);
    for (at, p) in order {
        most = most.max(p * left).min(1.0);
        left -= 1.0;
        if let Some(place) = out.get_mut(at) {
            *place = Some(most);
        }
    }
    out
}

/// A latency percentile, in core cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetPercentile {
    /// The middle of the bucket: the value to print, within 6.3 %.
    pub cycles: f64,
    /// Smallest latency of the bucket.
    pub low: u64,
    /// Largest latency of the bucket.
    pub high: u64,
    /// The 95 % interval: from the start of one bucket to the end of another.
    pub interval: [u64; 2],
}

/// The number of samples that must be on each side of a percentile.
const MIN_TAIL: f64 = 5.0;

/// Returns the latency that `fraction` of the weight in `buckets` does not exceed; `None` if there
/// are too few samples on one side of it. `buckets` is in order.
///
/// The share of samples below the percentile has an interval as any other; its ends are
/// percentiles (Woodruff, Journal of the American Statistical Association 47, 1952).
pub(crate) fn percentile(buckets: &[(u8, Spread)], whole: &Spread, fraction: f64) -> Option<FleetPercentile> {
    use precise_common::latency;
    let all = whole.sum() as f64;
    if all <= 0.0 {
        return None;
    }
    // What is below: whole buckets, and a part of the one that the percentile is in.
    let (mut below, mut sum) = ([0.0; GROUPS], 0.0);
    let mut found = None;
    for (bucket, of) in buckets {
        let here = of.sum() as f64;
        let part = if here > 0.0 { ((fraction * all - sum) / here).clamp(0.0, 1.0) } else { 0.0 };
        below.iter_mut().zip(&of.groups).for_each(|(below, weight)| *below += part * *weight as f64);
        sum += here;
        found = Some(u32::from(*bucket));
        if sum >= fraction * all * (1.0 - 1e-12) {
            break;
        }
    }
    let bucket = found?;
    let n = all.powi(2) / whole.squares;
    if n * fraction.min(1.0 - fraction) < MIN_TAIL - 1e-9 {
        return None;
    }
    let without = |at: usize| {
        let left = all - *whole.groups.get(at)? as f64;
        let part =
            below.iter().enumerate().filter(|(group, _)| *group != at).map(|(_, sum)| sum).sum::<f64>();
        (left > 0.0).then(|| part / left)
    };
    let alone = Z * (fraction * (1.0 - fraction) / n).sqrt();
    let groups = jackknife(&[&whole.groups], fraction, without);
    let groups = groups.map_or(0.0, |found| found.quantile() * found.variance.sqrt());
    let half = alone.max(groups);
    let at = |fraction: f64| {
        let (mut sum, mut last) = (0.0, None);
        for (bucket, of) in buckets.iter().filter(|(_, of)| of.squares > 0.0) {
            sum += of.sum() as f64;
            last = Some(u32::from(*bucket));
            if sum >= fraction * all {
                break;
            }
        }
        last
    };
    let (first, last) = (at(fraction - half)?, at(fraction + half)?);
    Some(FleetPercentile {
        cycles: latency::middle(bucket),
        low: latency::lower(bucket),
        high: latency::lower(bucket + 1).saturating_sub(1),
        interval: [latency::lower(first), latency::lower(last + 1).saturating_sub(1)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1.0)
    }

    #[test]
    fn student_as_in_tables() {
        for (freedom, t) in [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (31, 2.0395), (1000, 1.9623)] {
            assert!(
                close(student_quantile(0.95, freedom), t),
                "{freedom}: {}",
                student_quantile(0.95, freedom)
            );
        }
        assert!(close(student(2.015, 5), 0.9) && close(student(63.657, 1), 0.99));
    }

    fn even(part: u64, whole: u64) -> [Spread; 2] {
        let of = |each: u64| {
            let mut spread = Spread::default();
            (0..32).for_each(|group| spread.add(group, each, each));
            spread
        };
        [of(part), of(whole)]
    }

    #[test]
    fn nodes_that_agree_give_the_interval_of_samples_and_others_a_wider_one() {
        let [part, whole] = even(30, 100);
        let share = part.share_of(&whole);
        // Wilson of 960 in 3,200.
        assert!(
            close(share.value, 0.3) && close(share.low, 0.2844) && close(share.high, 0.3161),
            "{share:?}"
        );
        // Half of the nodes do nothing else, the others nothing of it.
        let (mut part, mut whole) = (Spread::default(), Spread::default());
        for group in 0..32 {
            whole.add(group, 100, 100);
            part.add(group, 50, if group < 16 { 100 } else { 0 });
        }
        let share = part.share_of(&whole);
        assert!(share.low < 0.34 && share.high > 0.66, "{share:?}");
        // One group: only its samples are known.
        let (mut part, mut whole) = (Spread::default(), Spread::default());
        part.add(3, 30, 30);
        whole.add(3, 100, 100);
        assert!(close(part.share_of(&whole).low, 0.2189), "{:?}", part.share_of(&whole));
        assert_eq!(Spread::default().share_of(&Spread::default()).high, 1.0);
    }

    #[test]
    fn differences_of_the_same_nodes_are_paired() {
        // The nodes differ much from each other, and each changes by the same.
        let (mut before, mut after) =
            ([Spread::default(), Spread::default()], [Spread::default(), Spread::default()]);
        for group in 0..32 {
            let part = 10_000 + 2000 * u64::from(group);
            before[0].add(group, part, part);
            before[1].add(group, 100_000, 100_000);
            after[0].add(group, part + 5000, part + 5000);
            after[1].add(group, 100_000, 100_000);
        }
        let [b, a] = [&before, &after].map(|[part, whole]| [part, whole]);
        let found = share_change(b, a);
        assert!(close(found.change.value, 0.05) && found.change.low > 0.04 && found.p < 1e-6, "{found:?}");
        let same = share_change(b, b);
        assert!(same.p > 0.99 && same.change.holds(0.0), "{same:?}");
        let times = [1000; GROUPS];
        let grown = growth((b[0], &times), (a[0], &times)).unwrap();
        assert!(close(grown.value, 0.05 * 32.0 / 13.12) && grown.low > 0.1 && grown.high < 0.15, "{grown:?}");
        assert_eq!(growth((b[0], &[0; GROUPS]), (a[0], &times)), None);
    }

    // The results of R's p.adjust(…, "holm").
    #[test]
    fn holm_as_r_has_it() {
        let found = corrected(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005)]);
        let expected = [Some(0.03), Some(0.06), None, Some(0.06), Some(0.02)];
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.map(|p| (p * 1e6).round()), expected.map(|p| p * 1e6));
        }
    }

    #[test]
    fn percentiles_hold_the_middle() {
        let mut buckets = Vec::new();
        let mut whole = Spread::default();
        for bucket in 0..10 {
            let mut of = Spread::default();
            for group in 0..32 {
                of.add(group, 10, 10_000);
                whole.add(group, 10, 10_000);
            }
            buckets.push((bucket, of));
        }
        let median = percentile(&buckets, &whole, 0.5).unwrap();
        assert_eq!((median.low, median.high, median.interval), (4, 4, [4, 5]));
        assert!(percentile(&buckets, &whole, 0.99).is_some());
        assert_eq!(percentile(&buckets, &whole, 0.999), None);
        // If one group in two is slow, the median may be any.
        let (mut fast, mut slow) = (Spread::default(), Spread::default());
        (0..16).for_each(|group| fast.add(group, 1000, 1000));
        (16..32).for_each(|group| slow.add(group, 1000, 1000));
        let mut whole = fast.clone();
        whole.merge(&slow);
        let median = percentile(&[(3, fast), (9, slow)], &whole, 0.5).unwrap();
        assert_eq!((median.low, median.interval), (3, [3, 9]));
        assert_eq!(percentile(&[], &Spread::default(), 0.5), None);
    }
}
