//! The distance between two distributions along a line (optimal transport).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Difference, Share, Z};

/// The number of samples at each place: an index or a line number.
pub type PlaceCounts = BTreeMap<i64, u64>;

/// The distance between two distributions along a line.
///
/// It is not known which sample of one belongs to which of the other. Of all pairings, this is the
/// one with the least total distance: smallest to smallest, and so on (the optimal transport in one
/// dimension; Villani, Topics in Optimal Transportation, §2.2). So [`Transport::least`] is a lower
/// bound of the true mean distance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Transport {
    /// The number of samples on the two sides.
    pub samples: [u64; 2],
    /// The difference of the two means. It does not depend on the pairing.
    pub shift: Difference,
    /// The mean absolute distance of the pairing with the least total distance.
    pub least: f64,
    /// The average of `least` if chance alone made the difference.
    pub by_chance: f64,
    /// The shares of the samples by the distance that this pairing moves them.
    pub bands: Vec<Band>,
}

/// A range of distances, from `from` to `to`, both included. A missing end is open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// The smallest distance; negative means backwards.
    pub from: Option<i64>,
    /// The largest distance.
    pub to: Option<i64>,
    /// The share of the samples that are moved by a distance in this range.
    pub share: Share,
}

const BANDS: [(Option<i64>, Option<i64>); 7] = [
    (None, Some(-16)),
    (Some(-15), Some(-4)),
    (Some(-3), Some(-1)),
    (Some(0), Some(0)),
    (Some(1), Some(3)),
    (Some(4), Some(15)),
    (Some(16), None),
];

/// Returns the transport from `from` to `to`; `None` if one of them has no samples.
pub fn transport(from: &PlaceCounts, to: &PlaceCounts) -> Option<Transport> {
    let count = |places: &PlaceCounts| places.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    let (n, m) = (count(from), count(to));
    if n == 0 || m == 0 {
        return None;
    }
    let (mut least, mut moved) = (0.0, [0.0; BANDS.len()]);
    for (distance, mass) in pairs(from, to, (n, m)) {
        least += mass * distance.unsigned_abs() as f64;
        let band = BANDS.iter().position(|(low, high)| {
            low.is_none_or(|low| low <= distance) && high.is_none_or(|high| distance <= high)
        });
        if let Some(sum) = band.and_then(|band| moved.get_mut(band)) {
            *sum += mass;
        }
    }
    // Both sides are samples: the variances of the two add up, which gives this effective sample
    // size.
    let sure = n as f64 * m as f64 / (n as f64 + m as f64);
    let bands = BANDS.iter().zip(moved).filter(|(_, share)| *share > 1e-9);
    let bands = bands.map(|((from, to), share)| Band { from: *from, to: *to, share: Share::of(share, sure) });
    Some(Transport {
        samples: [n, m],
        shift: shift(moments(from, n), moments(to, m)),
        least,
        by_chance: by_chance(from, to, (n, m)),
        bands: bands.collect(),
    })
}

/// Returns the pairing with the least total distance: each distance, and the part of all samples
/// that is moved by it. The computation is exact until the last division, because both sides are
/// cut into n × m pieces.
fn pairs(from: &PlaceCounts, to: &PlaceCounts, (n, m): (u64, u64)) -> Vec<(i64, f64)> {
    let whole = u128::from(n) * u128::from(m);
    let pieces = |places: &PlaceCounts, times: u64| -> Vec<(i64, u128)> {
        places.iter().map(|(place, count)| (*place, u128::from(*count) * u128::from(times))).collect()
    };
    let (from, to) = (pieces(from, m), pieces(to, n));
    let (mut from, mut to) = (from.into_iter(), to.into_iter());
    let (mut here, mut there) = (from.next(), to.next());
    let mut pairs = Vec::new();
    while let (Some((start, left)), Some((end, room))) = (here, there) {
        let mass = left.min(room);
        if mass > 0 {
            pairs.push((end.saturating_sub(start), mass as f64 / whole as f64));
        }
        here = if left > mass { Some((start, left - mass)) } else { from.next() };
        there = if room > mass { Some((end, room - mass)) } else { to.next() };
    }
    pairs
}

/// Returns the mean, and the variance of the mean.
fn moments(places: &PlaceCounts, n: u64) -> (f64, f64) {
    let n = n as f64;
    let mean = places.iter().map(|(place, count)| *place as f64 * *count as f64).sum::<f64>() / n;
    let squares = places.iter().map(|(place, count)| (*place as f64 - mean).powi(2) * *count as f64);
    (mean, squares.sum::<f64>() / n / n)
}

fn shift((from, var_from): (f64, f64), (to, var_to): (f64, f64)) -> Difference {
    let (value, half) = (to - from, Z * (var_from + var_to).sqrt());
    Difference { value, low: value - half, high: value + half }
}

/// Returns the expected mean distance between two samples of the same distribution. At each place
/// the two shares below it differ by chance: on average by √(2/π) of the standard deviation of
/// their difference.
fn by_chance(from: &PlaceCounts, to: &PlaceCounts, (n, m): (u64, u64)) -> f64 {
    let mut both = from.clone();
    for (place, count) in to {
        let sum = both.entry(*place).or_default();
        *sum = sum.saturating_add(*count);
    }
    let all = n as f64 + m as f64;
    let (mut below, mut sum) = (0.0, 0.0);
    for ((place, count), next) in both.iter().zip(both.keys().skip(1)) {
        below += *count as f64 / all;
        let spread = (below * (1.0 - below)).max(0.0) * (1.0 / n as f64 + 1.0 / m as f64);
        sum += (2.0 / std::f64::consts::PI * spread).sqrt() * next.saturating_sub(*place) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places(list: &[(i64, u64)]) -> PlaceCounts {
        list.iter().copied().collect()
    }

    #[test]
    fn everything_by_three() {
        let from = places(&[(0, 100), (5, 300)]);
        let to = places(&[(3, 50), (8, 150)]);
        let t = transport(&from, &to).unwrap();
        assert_eq!((t.samples, t.least, t.shift.value), ([400, 200], 3.0, 3.0));
        assert_eq!(t.bands.len(), 1);
        assert_eq!((t.bands[0].from, t.bands[0].to, t.bands[0].share.value), (Some(1), Some(3), 1.0));
        assert!(t.by_chance < 0.5 && t.shift.low > 2.5, "{t:?}");
    }

    // A quarter skids by one, a quarter by twenty, the rest stays.
    #[test]
    fn parts_of_it() {
        let from = places(&[(0, 50), (100, 25), (200, 25)]);
        let to = places(&[(0, 50), (101, 25), (220, 25)]);
        let t = transport(&from, &to).unwrap();
        assert!((t.least - 5.25).abs() < 1e-9, "{t:?}");
        let bands: Vec<_> = t.bands.iter().map(|b| (b.from, b.share.value)).collect();
        assert_eq!(bands, [(Some(0), 0.5), (Some(1), 0.25), (Some(16), 0.25)]);
        // The precision of 50 samples.
        assert_eq!(t.bands[0].share, Share::wilson(25, 50));
    }

    #[test]
    fn the_same_is_no_distance_and_back_is_negative() {
        let same = places(&[(1, 10), (2, 30)]);
        let t = transport(&same, &same).unwrap();
        assert_eq!((t.least, t.shift.value, t.bands.len()), (0.0, 0.0, 1));
        let back = transport(&places(&[(9, 10)]), &places(&[(2, 10)])).unwrap();
        assert_eq!((back.shift.value, back.least, back.bands[0].to), (-7.0, 7.0, Some(-4)));
        assert_eq!(transport(&same, &PlaceCounts::new()), None);
        assert_eq!(transport(&places(&[(1, 0)]), &same), None);
    }

    proptest! {
        #[test]
        fn never_less_than_the_shift_and_nothing_is_lost(
            from in proptest::collection::btree_map(-50i64..50, 0u64..1000, 1..20),
            to in proptest::collection::btree_map(any::<i64>(), any::<u32>().prop_map(u64::from), 1..20),
        ) {
            if let Some(t) = transport(&from, &to) {
                prop_assert!(t.least >= t.shift.value.abs() * (1.0 - 1e-9) - 1e-6);
                let sum: f64 = t.bands.iter().map(|b| b.share.value).sum();
                prop_assert!((sum - 1.0).abs() < 1e-6, "{}", sum);
            }
        }
    }
}
