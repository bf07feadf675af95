//! Parts of a run: the columns of a change.

use std::ops::Range;

use super::series::Timeline;

/// Two parts of a run are the same if they share this part of the time that either has.
const SAME: f64 = 0.6;
/// The number of intervals that are spelled out.
const SPELLED_OUT: usize = 3;

/// A part of a run: whether it has a column, by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When(pub Vec<bool>);

impl When {
    pub fn contains(&self, column: usize) -> bool {
        self.0.get(column).copied().unwrap_or(false)
    }

    /// Returns the rest of the run.
    pub fn rest(&self) -> Self {
        Self(self.0.iter().map(|is| !is).collect())
    }

    /// Returns the columns that both parts have.
    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| *a && *b).collect())
    }

    /// Returns the intervals of columns, in order of time.
    fn intervals(&self) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        for column in (0..self.0.len()).filter(|column| self.contains(*column)) {
            match all.last_mut().filter(|last| last.end == column) {
                Some(last) => last.end = column + 1,
                None => all.push(column..column + 1),
            }
        }
        all
    }
}

impl Timeline {
    /// Returns the measured time of a part of the run, in seconds.
    pub fn length(&self, when: &When) -> f64 {
        let chosen = self.seconds.iter().enumerate().filter(|(column, _)| when.contains(*column));
        chosen.map(|(_, seconds)| seconds).sum()
    }

    /// Returns the rest of the run instead of a part that has more of the time than the rest.
    pub fn unusual(&self, when: When) -> When {
        if self.length(&when) > self.seconds.iter().sum::<f64>() / 2.0 { when.rest() } else { when }
    }

    /// Returns whether two parts of the run are nearly the same.
    pub fn same(&self, a: &When, b: &When) -> bool {
        let both = self.length(&a.and(b));
        let either = self.length(a) + self.length(b) - both;
        either > 0.0 && both / either >= SAME
    }

    /// Returns a part of the run in words: `from 20.0 s to 45.0 s`.
    pub fn words(&self, when: &When) -> String {
        let ends = |columns: &Range<usize>| {
            let (first, last) = (self.columns.get(columns.start)?, self.columns.get(columns.end.max(1) - 1)?);
            Some((first.start, last.end))
        };
        let intervals: Vec<(u64, u64)> = when.intervals().iter().filter_map(ends).collect();
        let one = |ends: &(u64, u64)| interval(*ends);
        match intervals.as_slice() {
            [] => String::new(),
            few if few.len() <= SPELLED_OUT => few.iter().map(one).collect::<Vec<_>>().join(" and "),
            [first, .., last] => format!(
                "in {} intervals between {} and {} ({:.1} s in all, the first {})",
                intervals.len(),
                seconds(first.0),
                seconds(last.1),
                self.length(when),
                one(first)
            ),
            [only] => one(only),
        }
    }
}

/// Returns an interval in words: in milliseconds if it ends within the first second.
fn interval((start, end): (u64, u64)) -> String {
    if end < 1_000_000_000 {
        return format!("from {:.0} ms to {:.0} ms", start as f64 / 1e6, end as f64 / 1e6);
    }
    format!("from {} to {}", seconds(start), seconds(end))
}

fn seconds(ns: u64) -> String {
    match ns {
        0..10_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn short_times_are_in_milliseconds() {
        assert_eq!(interval((305_000_000, 308_400_000)), "from 305 ms to 308 ms");
        assert_eq!(interval((0, 6_000_000_000)), "from 0.00 s to 6.00 s");
        assert_eq!(interval((20_000_000_000, 45_040_000_000)), "from 20.0 s to 45.0 s");
    }
}
