//! Finds the interval in which a series differs from the rest of itself: circular binary
//! segmentation (Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5 (2004) 557), with its
//! significance by permutation of the columns.
//!
//! All series of a capture are tested together: each permutation is applied to all of them, and
//! the largest statistic of any series counts (Westfall and Young, 1993). So the chance that a
//! capture without any change has a finding is at most [`FALSE_ALARMS`], however many series it
//! has. Neighbouring columns are moved together, because activity that lasts a few columns is no
//! change.

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

/// An interval that differs from the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The columns of the interval.
    pub columns: Range<usize>,
    /// The statistic: how far the mean of the interval is from that of the rest, in standard
    /// errors.
    pub distance: f64,
}

/// Returns the interval of each series that differs from the rest of it; `None` for the series
/// without one. All series have as many columns.
pub fn find(series: &[Points]) -> Vec<Option<Found>> {
    let columns = series.iter().map(Vec::len).min().unwrap_or(0);
    let centred: Vec<Points> = series.iter().map(|points| centred(points)).collect();
    let found: Vec<Found> = centred.iter().map(|points| best(points)).collect();
    let mut exceeded = vec![0usize; series.len()];
    let mut order = Order::new(columns);
    for _ in 0..PERMUTATIONS {
        let permuted = order.next();
        let largest = centred
            .iter()
            .map(|points| {
                best(&permuted.iter().filter_map(|at| points.get(*at).copied()).collect::<Points>())
            })
            .fold(0.0, |most: f64, found| most.max(found.distance));
        for (count, found) in exceeded.iter_mut().zip(&found) {
            *count += usize::from(largest >= found.distance);
        }
    }
    let chance = |exceeded: usize| (1 + exceeded) as f64 / (1 + PERMUTATIONS) as f64;
    found
        .into_iter()
        .zip(exceeded)
        .map(|(found, exceeded)| (found.distance > 0.0 && chance(exceeded) <= FALSE_ALARMS).then_some(found))
        .collect()
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
fn best(points: &[(f64, f64)]) -> Found {
    let mut sums = Vec::with_capacity(points.len() + 1);
    let (mut sum, mut weight) = (0.0, 0.0);
    sums.push((sum, weight));
    for (deviation, of) in points {
        sum += deviation;
        weight += of;
        sums.push((sum, weight));
    }
    let whole = weight;
    let mut best = Found { columns: 0..0, distance: 0.0 };
    for (start, from) in sums.iter().enumerate() {
        for (end, to) in sums.iter().enumerate().skip(start + SHORTEST) {
            if points.len() - (end - start) < SHORTEST {
                break;
            }
            let inside = to.1 - from.1;
            let spread = inside * (whole - inside) / whole;
            if spread > 0.0 && (to.0 - from.0).abs() > best.distance * spread.sqrt() {
                best = Found { columns: start..end, distance: (to.0 - from.0).abs() / spread.sqrt() };
            }
        }
    }
    best
}

/// Permutations of columns, always the same ones, so that an answer does not change.
struct Order {
    blocks: Vec<Vec<usize>>,
    state: u64,
}

impl Order {
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
        let mut order = Order { blocks: Vec::new(), state: seed.wrapping_mul(0x1234_5678_9abc_def1) };
        let uniform = |order: &mut Order| (order.random() >> 11) as f64 / (1u64 << 53) as f64;
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
            let rest = [0..from, to..60];
            assert!(found.columns == (from..to) || rest.contains(&found.columns), "{from} {to}: {found:?}");
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
