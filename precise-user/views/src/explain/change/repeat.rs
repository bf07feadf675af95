//! Activity that comes and goes: whether a series does, and in which columns it is there.

use precise_model::CompactSort as _;
use std::ops::Range;

/// The shortest stretch that is told apart within or outside of an interval, in columns, if it is
/// far enough from the noise: [`FAR`] or [`VERY_FAR`] times of it.
const STRETCH: usize = 3;
const FAR: f64 = 3.0;
const SHORT_STRETCH: usize = 2;
const VERY_FAR: f64 = 4.0;

/// Returns the largest autocorrelation of deviations (times their weights) at any distance up to a
/// third of the columns. Activity that lasts for some columns, or comes back after some, makes it
/// large.
pub fn statistic(points: &[(f64, f64)]) -> f64 {
    let squares: f64 = points.iter().map(|(deviation, _)| deviation * deviation).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let at = |lag: usize| {
        let pairs = points.iter().zip(points.iter().skip(lag));
        let sum: f64 = pairs.map(|((a, _), (b, _))| a * b).sum();
        // Without the factor, long distances would have fewer pairs.
        sum / squares * points.len() as f64 / (points.len() - lag) as f64
    };
    (1..=points.len() / 3).map(at).fold(0.0, f64::max)
}

/// Returns the columns above (or below) the threshold that divides the values best (Otsu, IEEE
/// Transactions on Systems, Man, and Cybernetics 9 (1979) 62): the side with fewer columns.
pub fn split(values: &[Option<f64>]) -> Vec<bool> {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.compact_sort_by(f64::total_cmp);
    let (count, sum) = (sorted.len() as f64, sorted.iter().sum::<f64>());
    let (mut below, mut best, mut threshold) = (0.0, 0.0, f64::INFINITY);
    for (at, pair) in (1..).zip(sorted.windows(2)) {
        let [low, high] = pair else { continue };
        below += low;
        let part = f64::from(at);
        let gap = below / part - (sum - below) / (count - part);
        let between = part * (count - part) * gap * gap;
        if between > best && high > low {
            (best, threshold) = (between, (low + high) / 2.0);
        }
    }
    let above: Vec<bool> = values.iter().map(|value| value.is_some_and(|value| value > threshold)).collect();
    let many = above.iter().filter(|is| **is).count() * 2 > sorted.len();
    match many {
        true => values.iter().map(|value| value.is_some_and(|value| value <= threshold)).collect(),
        false => above,
    }
}

/// Returns an interval without the stretches in it that are like the rest, and with those of the
/// rest that are like it; `None` if the interval is not like itself.
pub fn refined(values: &[Option<f64>], interval: &Range<usize>) -> Option<Vec<bool>> {
    let inside = |at: &usize| interval.contains(at);
    let middle = |wanted: bool| {
        let of = values.iter().enumerate().filter(|(at, _)| inside(at) == wanted);
        median(of.filter_map(|(_, value)| *value).collect())
    };
    let (own, rest) = (middle(true)?, middle(false)?);
    let mut columns: Vec<bool> = (0..values.len()).map(|at| inside(&at)).collect();
    let halves = spread(values, &split(values));
    let apart = (own - rest).abs();
    if apart * 2.0 < halves {
        return None;
    }
    let noise = noise(values);
    let shortest = match apart / noise.max(f64::MIN_POSITIVE) {
        times if times >= VERY_FAR => SHORT_STRETCH,
        times if times >= FAR => STRETCH,
        _ => return Some(columns),
    };
    let own_side = |value: &Option<f64>| value.map(|value| (value * 2.0 > own + rest) == (own > rest));
    let sides: Vec<Option<bool>> = values.iter().map(own_side).collect();
    let mut start = 0;
    while start < sides.len() {
        let side = sides[start];
        let end = (start..sides.len()).find(|at| sides[*at] != side).unwrap_or(sides.len());
        if let Some(side) = side
            && end - start >= shortest
        {
            columns[start..end].fill(side);
        }
        start = end;
    }
    Some(columns)
}

/// Returns how far the medians of some columns and of the others are apart.
fn spread(values: &[Option<f64>], columns: &[bool]) -> f64 {
    let of = |wanted: bool| {
        let chosen = values.iter().zip(columns).filter(|(_, is)| **is == wanted);
        median(chosen.filter_map(|(value, _)| *value).collect())
    };
    of(true).zip(of(false)).map_or(0.0, |(a, b)| (a - b).abs())
}

/// Returns the standard deviation of values by the differences of neighbours, of which few are
/// steps.
fn noise(values: &[Option<f64>]) -> f64 {
    /// The median of the absolute values of a normal distribution with a deviation of 1.
    const MEDIAN: f64 = 0.674_49;
    let steps = values.windows(2).filter_map(|pair| Some((pair[1]? - pair[0]?).abs()));
    median(steps.collect()).unwrap_or(0.0) / MEDIAN / 2f64.sqrt()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.compact_sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
