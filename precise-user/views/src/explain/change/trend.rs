//! Rates that rise or fall steadily in the whole run.
//!
//! [`super::interval`] finds that such a series differs from itself; this says how. A straight line
//! (least squares) through the rates of the columns must explain them better than one part of the
//! run that differs from the rest, and its ends must be apart by [`thresholds::CHANGE`]. So the
//! chance of a false alarm is that of the interval.

use super::around::Said;
use super::series::{Timeline, User};
use super::when::When;
use crate::explain::{FindingUnit, Number, thresholds};
use precise_model::digits::thousands;

/// The rate of a column: the middle of its time in seconds, samples per second, measured seconds.
struct Rate {
    at: f64,
    rate: f64,
    weight: f64,
}

/// Returns what to say of a user whose rate changes steadily; `None` if it does not, or if it is
/// explained better by a change in the columns `when`.
pub fn said(line: &Timeline, user: &User, when: &When) -> Option<Said> {
    let rates = rates(line, user);
    let (slope, middle) = fit(&rates)?;
    let at = |time: f64| middle.rate + slope * (time - middle.at);
    let (start, end) = (line.columns.first()?.start, line.columns.last()?.end);
    let [first, last] = [start, end].map(|ns| at(ns as f64 / 1e9));
    // A line that falls below 0 is no rate.
    if first <= 0.0 || last <= 0.0 {
        return None;
    }
    let times = last / first;
    let far = times >= thresholds::CHANGE || times <= thresholds::CHANGE.recip();
    let residual: f64 = rates.iter().map(|of| of.weight * (of.rate - at(of.at)).powi(2)).sum();
    if !far || residual >= of_step(line, user, when) {
        return None;
    }
    let verb = if times > 1.0 { "rose" } else { "fell" };
    let moved = format!(
        "{verb} steadily, from {} to {} a second",
        thousands(first.round() as u64),
        thousands(last.round() as u64)
    );
    Some(Said {
        number: Some(Number::counted(FindingUnit::Times, times)),
        threshold: thresholds::CHANGE,
        says: format!("the rate at the start: the samples of {} {moved}", user.name),
        short: format!("the samples of {} {moved}", user.name),
    })
}

fn rates(line: &Timeline, user: &User) -> Vec<Rate> {
    let columns = line.columns.iter().zip(&line.seconds).zip(&user.cells);
    let measured = columns.filter(|((_, seconds), _)| **seconds > 0.0);
    measured
        .map(|((column, seconds), cell)| Rate {
            at: (column.start as f64 + column.end as f64) / 2e9,
            rate: cell.weight / seconds,
            weight: *seconds,
        })
        .collect()
}

/// Returns the slope of the straight line through rates, and a point of it; `None` if there are
/// fewer than two.
fn fit(rates: &[Rate]) -> Option<(f64, Rate)> {
    let weight: f64 = rates.iter().map(|of| of.weight).sum();
    let mean =
        |value: &dyn Fn(&Rate) -> f64| rates.iter().map(|of| of.weight * value(of)).sum::<f64>() / weight;
    let middle = Rate { at: mean(&|of| of.at), rate: mean(&|of| of.rate), weight };
    let spread: f64 = rates.iter().map(|of| of.weight * (of.at - middle.at).powi(2)).sum();
    let moves = rates.iter().map(|of| of.weight * (of.at - middle.at) * (of.rate - middle.rate)).sum::<f64>();
    (spread > 0.0).then(|| (moves / spread, middle))
}

/// Returns what is left unexplained if a user has one rate in a part of the run, and another one in
/// the rest.
fn of_step(line: &Timeline, user: &User, when: &When) -> f64 {
    let part = |inside: bool| {
        let columns = line.seconds.iter().zip(&user.cells).enumerate();
        let chosen = columns.filter(|(at, (seconds, _))| when.contains(*at) == inside && **seconds > 0.0);
        let chosen: Vec<(f64, f64)> =
            chosen.map(|(_, (seconds, cell))| (cell.weight / seconds, *seconds)).collect();
        let seconds: f64 = chosen.iter().map(|(_, seconds)| seconds).sum();
        let mean = chosen.iter().map(|(rate, seconds)| rate * seconds).sum::<f64>() / seconds.max(1e-9);
        chosen.iter().map(|(rate, seconds)| seconds * (rate - mean).powi(2)).sum::<f64>()
    };
    part(true) + part(false)
}

#[cfg(test)]
mod tests {
    use super::super::series::ColumnSums;
    use super::*;

    /// A user with these samples in each second.
    fn timeline(samples: impl Iterator<Item = f64>) -> Timeline {
        let of = |weight| {
            let mut sums = ColumnSums::default();
            sums.weight = weight;
            sums
        };
        let cells: Vec<ColumnSums> = samples.map(of).collect();
        let second = |at: u64| at * 1_000_000_000..(at + 1) * 1_000_000_000;
        Timeline {
            columns: (0..cells.len() as u64).map(second).collect(),
            seconds: vec![1.0; cells.len()],
            users: vec![User { name: "/db".into(), cells }],
            others: 0,
            of_others: 0.0,
        }
    }

    fn said_of(samples: impl Iterator<Item = f64>) -> Option<String> {
        let line = timeline(samples);
        let half = When((0..line.columns.len()).map(|at| at >= line.columns.len() / 2).collect());
        Some(said(&line, line.users.first()?, &half)?.says)
    }

    #[test]
    fn a_steady_fall_is_one_and_a_step_is_not() {
        let fell = said_of((0..60).map(|at| 1000.0 - 500.0 * (f64::from(at) + 0.5) / 60.0));
        let says = "the rate at the start: the samples of /db fell steadily, from 1,000 to 500 a second";
        assert_eq!(fell.as_deref(), Some(says));
        assert!(
            said_of((0..60).map(|at| f64::from(100 + at * 10))).is_some_and(|says| says.contains("rose"))
        );
        assert_eq!(said_of((0..60).map(|at| if at < 30 { 1000.0 } else { 700.0 })), None);
        assert_eq!(said_of((0..60).map(|at| 1000.0 - f64::from(at))), None);
        assert_eq!(said_of(std::iter::empty()), None);
    }
}
