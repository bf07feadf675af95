//! When a half of the table is read before its epoch ends: a burst of samples must not find it
//! full.

use std::time::Duration;

/// How often to look at how full the tables are, if they are almost empty. A burst of 400 new keys
/// per millisecond does not fill a half of the default size (8,192 cells) before the first look.
const SELDOM: Duration = Duration::from_millis(20);
/// How often to look if a table fills. The grace period of the kernel, which reading takes, is two
/// or three ticks, so together they take about 15 ms. Page faults come at up to 700 per
/// millisecond, which is more than that: a half of the default size is full after 12 ms.
const OFTEN: Duration = Duration::from_millis(5);
/// For how long after the start of the run to look often: programs touch their memory first of all.
const BEGINNING: Duration = Duration::from_millis(200);

/// A half that would be fuller than this after [`AHEAD`] more looks is read. If 75 % of the cells
/// are used, one new key in a thousand finds no place; below that, almost none.
const FULL: f64 = 0.75;
/// For how many looks the growth is extrapolated: reading takes time too.
const AHEAD: f64 = 2.0;

/// Returns how long to wait until the next look, `elapsed` after the run began. `begun` says
/// whether a table has begun to fill.
pub(crate) fn pause(elapsed: Duration, begun: bool) -> Duration {
    if begun || elapsed < BEGINNING { OFTEN } else { SELDOM }
}

/// The growth of one table.
///
/// A table whose keys repeat stays as full as it is, and is left alone until the end of the epoch:
/// only growth makes it be read early.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filling {
    /// How full the table was at the last look, 0 to 1.
    last: f64,
}

impl Filling {
    /// Returns whether a table that is now `fill` full, 0 to 1, must be read at once.
    pub fn must_be_read(&mut self, fill: f64) -> bool {
        let growth = (fill - self.last).max(0.0);
        self.last = fill;
        fill + AHEAD * growth > FULL
    }

    /// Returns whether the table was not almost empty at the last look.
    pub fn has_begun(&self) -> bool {
        self.last > 0.05
    }

    /// Notes that the table was read, and is empty.
    pub fn was_read(&mut self) {
        self.last = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how full the table becomes at most, and how often it is read, if it fills by `rate`
    /// per look, up to `most`, where further samples have known keys.
    fn filled(rate: f64, most: f64) -> (f64, usize) {
        let (mut filling, mut fill, mut highest, mut reads) = (Filling::default(), 0.0f64, 0.0f64, 0);
        for _ in 0..100 {
            fill = (fill + rate).min(most);
            highest = highest.max(fill);
            if filling.must_be_read(fill) {
                // What arrives during the grace period is in the other half.
                fill = rate.min(most);
                filling.was_read();
                reads += 1;
            }
        }
        (highest, reads)
    }

    #[test]
    fn a_table_that_fills_is_read_in_time() {
        for rate in [0.01, 0.05, 0.1, 0.24, 0.4] {
            let (highest, reads) = filled(rate, 1.0);
            assert!(highest <= 0.85 && reads > 0, "{rate}: {highest} after {reads}");
        }
    }

    #[test]
    fn tables_are_looked_at_often_only_while_they_fill() {
        let (start, later) = (Duration::from_millis(10), Duration::from_secs(10));
        assert_eq!([(start, false), (later, true)].map(|(at, begun)| pause(at, begun)), [OFTEN; 2]);
        assert_eq!(pause(later, false), SELDOM);
        let mut filling = Filling::default();
        assert!(!filling.has_begun() && !filling.must_be_read(0.1) && filling.has_begun());
        filling.was_read();
        assert!(!filling.has_begun());
    }

    #[test]
    fn a_table_whose_keys_repeat_is_left_alone() {
        for rate in [0.001, 0.01, 0.04] {
            assert_eq!(filled(rate, 0.6).1, 0, "{rate}");
        }
        assert_eq!(filled(0.0, 1.0), (0.0, 0));
    }
}
