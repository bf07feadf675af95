//! Finds the columns in which a series differs from the rest of itself, by two tests whose
//! significance comes from permutations of the columns:
//!
//! - one interval: circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler,
//!   Biostatistics 5 (2004) 557);
//! - activity that comes and goes: the largest autocorrelation ([`super::repeat`]).
//!
//! All series of a capture are tested together: each permutation is applied to all of them, and
//! the largest statistic of any series counts (Westfall and Young, 1993). Each test has half of
//! [`FALSE_ALARMS`]. So the chance that a capture whose columns are independent of each other has a
//! finding is at most [`FALSE_ALARMS`], however many series it has. Above [`BLOCKS`] columns,
//! neighbouring columns are moved together. What is too short for permutations is in
//! [`super::spike`].

use super::repeat;
use std::ops::Range;

/// The chance of a finding in a capture in which nothing changes.
pub const FALSE_ALARMS: f64 = 0.01;
/// The number of permutations.
const PERMUTATIONS: usize = 199;
/// The number of blocks of neighbouring columns that are moved. With fewer, a short interval would
/// often come together by chance.
const BLOCKS: usize = 60;
/// The shortest interval, and the shortest rest, in columns.
const SHORTEST: usize = 2;

/// The values of a series, one per column, each with its weight.
pub type Points = Vec<(f64, f64)>;

/// The columns in which a series differs from the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// Whether the series differs, by column.
    pub columns: Vec<bool>,
    /// The statistic: how far the mean of these columns is from that of the rest, in standard
    /// errors.
    pub distance: f64,
}

impl Deviation {
    /// Returns the deviation of some columns of a series.
    pub fn of(points: &Points, columns: Vec<bool>) -> Self {
        Self { distance: distance(&centred(points), &columns), columns }
    }
}

/// An interval and its statistic.
#[derive(Clone, Debug, PartialEq)]
struct Interval {
    columns: Range<usize>,
    distance: f64,
}

/// A test: the statistic of each series, and how often a permutation reached it.
struct PermutationTest {
    seen: Vec<f64>,
    exceeded: Vec<usize>,
}

impl PermutationTest {
    fn of(seen: Vec<f64>) -> Self {
        Self { exceeded: vec![0; seen.len()], seen }
    }

    /// Counts a permutation by the largest statistic of its series.
    fn count(&mut self, largest: f64) {
        for (count, seen) in self.exceeded.iter_mut().zip(&self.seen) {
            *count += usize::from(largest >= *seen);
        }
    }

    fn passes(&self, at: usize) -> bool {
        let chance = |exceeded: usize| (1 + exceeded) as f64 / (1 + PERMUTATIONS) as f64;
        self.seen.get(at).is_some_and(|seen| *seen > 0.0)
            && self.exceeded.get(at).is_some_and(|exceeded| chance(*exceeded) <= FALSE_ALARMS / 2.0)
    }
}

/// Returns the columns of each series that differ from the rest of it; `None` for the series
/// without any. All series have as many columns.
pub fn find(series: &[Points]) -> Vec<Option<Deviation>> {
    let columns = series.iter().map(Vec::len).min().unwrap_or(0);
    let centred: Vec<Points> = series.iter().map(|points| centred(points)).collect();
    let intervals: Vec<Interval> = centred.iter().map(|points| best(points)).collect();
    let mut once = PermutationTest::of(intervals.iter().map(|found| found.distance).collect());
    let mut often = PermutationTest::of(centred.iter().map(|points| repeat::statistic(points)).collect());
    let mut order = Permutations::new(columns);
    for _ in 0..PERMUTATIONS {
        let permuted = order.next();
        let (mut largest_once, mut largest_often) = (0.0f64, 0.0f64);
        for points in &centred {
            let moved: Points = permuted.iter().filter_map(|at| points.get(*at).copied()).collect();
            largest_once = largest_once.max(best(&moved).distance);
            largest_often = largest_often.max(repeat::statistic(&moved));
        }
        once.count(largest_once);
        often.count(largest_often);
    }
    let found = |(at, (interval, points)): (usize, (Interval, &Points))| {
        let values = values(points);
        let columns = match (once.passes(at), often.passes(at)) {
            (true, _) => match repeat::refined(&values, &interval.columns) {
                Some(columns) => columns,
                None if often.passes(at) => repeat::split(&values),
                None => (0..values.len()).map(|column| interval.columns.contains(&column)).collect(),
            },
            (false, true) => repeat::split(&values),
            (false, false) => return None,
        };
        Some(Deviation { distance: distance(points, &columns), columns })
    };
    intervals.into_iter().zip(&centred).enumerate().map(found).collect()
}

/// Returns the values of columns by their weighted deviations; `None` without weight.
fn values(points: &[(f64, f64)]) -> Vec<Option<f64>> {
    points.iter().map(|(deviation, weight)| (*weight > 0.0).then(|| deviation / weight)).collect()
}

/// Returns how far the mean of columns is from that of the rest.
fn distance(points: &[(f64, f64)], columns: &[bool]) -> f64 {
    let whole: f64 = points.iter().map(|(_, weight)| weight).sum();
    let inside = points.iter().zip(columns).filter(|(_, is)| **is).map(|(point, _)| point);
    let (sum, weight) = inside.fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let spread = weight * (whole - weight) / whole.max(f64::MIN_POSITIVE);
    if spread > 0.0 { sum.abs() / spread.sqrt() } else { 0.0 }
}

/// Returns the deviations from the mean in units of the series' own noise, times the weights.
fn centred(points: &[(f64, f64)]) -> Points {
    let weight: f64 = points.iter().map(|(_, weight)| weight).sum();
    let mean =
        points.iter().map(|(value, weight)| value * weight).sum::<f64>() / weight.max(f64::MIN_POSITIVE);
    let squares: f64 = points.iter().map(|(value, weight)| weight * (value - mean).powi(2)).sum();
    let noise = (squares / (points.len() as f64 - 1.0).max(1.0)).sqrt();
    let deviation = |value: f64, weight: f64| if noise > 0.0 { weight * (value - mean) / noise } else { 0.0 };
    points.iter().map(|(value, weight)| (deviation(*value, *weight), *weight)).collect()
}

/// Returns the interval with the largest distance.
fn best(points: &[(f64, f64)]) -> Interval {
    let mut sums = Vec::with_capacity(points.len() + 1);
    let (mut sum, mut weight) = (0.0, 0.0);
    sums.push((sum, weight));
    for (deviation, of) in points {
        sum += deviation;
        weight += of;
        sums.push((sum, weight));
    }
    let whole = weight;
    let mut best = Interval { columns: 0..0, distance: 0.0 };
    for (start, from) in sums.iter().enumerate() {
        for (end, to) in sums.iter().enumerate().skip(start + SHORTEST) {
            if points.len() - (end - start) < SHORTEST {
                break;
            }
            let inside = to.1 - from.1;
            let spread = inside * (whole - inside) / whole;
            if spread > 0.0 && (to.0 - from.0).abs() > best.distance * spread.sqrt() {
                best = Interval { columns: start..end, distance: (to.0 - from.0).abs() / spread.sqrt() };
            }
        }
    }
    best
}

/// Permutations of columns, always the same ones, so that an answer does not change.
struct Permutations {
    blocks: Vec<Vec<usize>>,
    state: u64,
}

impl Permutations {
    fn new(columns: usize) -> Self {
        let length = columns.div_ceil(BLOCKS).max(1);
        let all: Vec<usize> = (0..columns).collect();
        Self { blocks: all.chunks(length).map(<[usize]>::to_vec).collect(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn next(&mut self) -> Vec<usize> {
        for last in (1..self.blocks.len()).rev() {
            let other = (self.random() % (last as u64 + 1)) as usize;
            self.blocks.swap(last, other);
        }
        self.blocks.concat()
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is the same in every run, with a mean of 0 and a variance of about 1.
    fn noise(seed: u64, columns: usize) -> Vec<f64> {
        let mut order = Permutations { blocks: Vec::new(), state: seed.wrapping_mul(0x1234_5678_9abc_def1) };
        let uniform = |order: &mut Permutations| (order.random() >> 11) as f64 / (1u64 << 53) as f64;
        (0..columns).map(|_| (0..12).map(|_| uniform(&mut order)).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn an_interval_is_found_where_it_is() {
        for (from, to) in [(20, 45), (0, 10), (50, 60), (30, 36)] {
            let points = noise(7, 60).into_iter().enumerate();
            let shift = |at: usize| if (from..to).contains(&at) { 5.0 } else { 0.0 };
            let points: Points = points.map(|(at, value)| (value + shift(at), 1.0)).collect();
            let found = find(&[points])[0].clone();
            let Some(found) = found else { panic!("{from}..{to}") };
            // An interval and the rest differ alike.
            let wanted: Vec<bool> = (0..60).map(|at| (from..to).contains(&at)).collect();
            let rest: Vec<bool> = wanted.iter().map(|is| !is).collect();
            assert!(found.columns == wanted || found.columns == rest, "{from} {to}: {found:?}");
        }
    }

    #[test]
    fn what_comes_and_goes_is_found() {
        let shapes: [fn(usize) -> bool; 3] =
            [|at| at % 15 < 5, |at| (9..18).contains(&at) || (36..48).contains(&at), |at| at % 10 == 0];
        for (shape, is) in shapes.into_iter().enumerate() {
            let points = noise(11 + shape as u64, 60).into_iter().enumerate();
            let points: Points =
                points.map(|(at, value)| (value + if is(at) { 8.0 } else { 0.0 }, 1.0)).collect();
            let Some(found) = find(&[points])[0].clone() else { panic!("{shape}") };
            let wanted: Vec<bool> = (0..60).map(is).collect();
            assert_eq!(found.columns, wanted, "{shape}");
        }
    }

    #[test]
    fn noise_is_no_change() {
        let alarms = (1..=100).filter(|seed| {
            let series: Vec<Points> = (0..6)
                .map(|at| noise(seed * 100 + at, 60).into_iter().map(|value| (value, 1.0)).collect())
                .collect();
            find(&series).iter().any(Option::is_some)
        });
        assert!(alarms.count() <= 4, "1 of 100 is expected");
    }

    #[test]
    fn a_series_without_values_has_no_interval() {
        assert_eq!(find(&[]), Vec::new());
        assert_eq!(find(&[vec![(1.0, 0.0); 20], vec![(2.0, 1.0); 20]]), [None, None]);
        assert_eq!(find(&[vec![(1.0, 1.0)]]), [None]);
    }
}
