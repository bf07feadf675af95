//! Short bursts: one or two columns that differ from all others by far.
//!
//! A permutation puts any two columns side by side too often for [`super::interval`] to find them.
//! The test here is that for outliers (Grubbs, *Technometrics* 11 (1969) 1): the distance of the
//! columns from the others in units of the others' own noise, by Student's distribution, times the
//! number of places and series (Bonferroni). It needs values that are nearly normal, so it is for
//! series of averages and of counts, and the smallest counts are left out.

use super::interval::Points;
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use std::ops::Range;

/// The chance of a finding in a capture in which nothing changes.
pub const FALSE_ALARMS: f64 = 0.001;
/// The longest burst that this test is for, in columns: one more is found by permutations.
const LONGEST: usize = 2;
/// The number of columns that a series must have values in, so that its noise is known.
const FEWEST: usize = 12;

/// A series, and what its columns need for a value that counts.
pub struct TestedSeries<'a> {
    pub points: &'a Points,
    /// The smallest weight of a burst.
    pub least_weight: f64,
    /// The smallest variance that chance causes, for a weight of 1.
    pub least_variance: f64,
}

/// Returns the burst of each series; `None` for the series without any. The first and the last
/// column are no bursts: a run begins and ends.
pub fn find(series: &[TestedSeries<'_>]) -> Vec<Option<Range<usize>>> {
    let tests: usize = series.iter().map(|series| LONGEST * series.points.len()).sum();
    let chance = FALSE_ALARMS / tests.max(1) as f64;
    series.iter().map(|series| burst(series, chance)).collect()
}

fn burst(series: &TestedSeries<'_>, chance: f64) -> Option<Range<usize>> {
    let last = series.points.len().saturating_sub(1);
    let places = (1..last).flat_map(|start| (1..=LONGEST).map(move |length| start..start + length));
    let far = places.filter(|place| place.end <= last).filter_map(|place| {
        let (distance, freedom) = distance(series, &place)?;
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        (2.0 * student.sf(distance) <= chance).then_some((place, distance))
    });
    far.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(place, _)| place)
}

/// Returns how far some columns are from the others in standard errors, and the degrees of freedom
/// of the noise; `None` if there is too little for an answer.
fn distance(series: &TestedSeries<'_>, place: &Range<usize>) -> Option<(f64, f64)> {
    let points = || series.points.iter().enumerate();
    let others = || points().filter(|(at, _)| !place.contains(at)).map(|(_, point)| *point);
    let own = points().filter(|(at, _)| place.contains(at)).map(|(_, point)| *point);
    let (value, weight) = mean(own)?;
    let (usual, rest) = mean(others())?;
    let measured = others().filter(|(value, weight)| *weight > 0.0 && *value != 0.0).count();
    // A user that is seldom there has no usual value.
    if weight < series.least_weight || measured < FEWEST.max(series.points.len() / 2) {
        return None;
    }
    let columns = others().filter(|(_, weight)| *weight > 0.0).count() as f64;
    let squares: f64 = others().map(|(value, weight)| weight * (value - usual).powi(2)).sum();
    let variance = (squares / (columns - 1.0)).max(series.least_variance);
    let error = (variance * (weight.recip() + rest.recip())).sqrt();
    (error > 0.0).then(|| ((value - usual).abs() / error, columns - 1.0))
}

/// Returns the weighted mean of points, and their weight.
fn mean(points: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    let (sum, weight) =
        points.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
    (weight > 0.0).then(|| (sum / weight, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of three dice, which are nearly normal.
    fn dice(seed: u64, columns: u64) -> Points {
        let die = |at: u64| {
            let mixed = (seed * 1_000_003 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % 6
        };
        (0..columns).map(|at| ((die(3 * at) + die(3 * at + 1) + die(3 * at + 2)) as f64, 1.0)).collect()
    }

    fn found(points: &Points, least_weight: f64) -> Option<Range<usize>> {
        let series = TestedSeries { points, least_weight, least_variance: 0.25 };
        find(&[series]).into_iter().next().flatten()
    }

    #[test]
    fn one_or_two_columns_are_found() {
        for burst in [30..31, 30..32, 1..2, 57..59] {
            let mut points = dice(7, 60);
            points[burst.clone()].iter_mut().for_each(|(value, _)| *value += 40.0);
            assert_eq!(found(&points, 0.0), Some(burst));
        }
    }

    #[test]
    fn noise_and_ends_and_few_samples_are_no_bursts() {
        assert!((1..200).all(|seed| found(&dice(seed, 60), 0.0).is_none()));
        for end in [0, 59] {
            let mut points = dice(7, 60);
            points[end].0 += 40.0;
            assert_eq!(found(&points, 0.0), None);
        }
        let mut points = dice(7, 60);
        points[30].0 += 40.0;
        assert_eq!(found(&points, 20.0), None);
        assert_eq!(found(&vec![(0.0, 0.0); 60], 0.0), None);
    }
}
