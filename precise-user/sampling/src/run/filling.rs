//! When a half of the table is read before its epoch ends: a burst of samples must not find it
//! full.

use std::time::Duration;

use super::pace::most_per_second;
use crate::kernel::event::{Rate, Trigger};

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

/// How often to look at least, at tables that cannot fill before.
const LEAST: Duration = Duration::from_secs(1);
/// How often to look at a table while it fills at its fastest.
const LOOKS: u32 = 4;

/// The most samples per second of a hardware event on a CPU: the kernel stops an event that takes
/// more until its next tick (`__perf_event_account_interrupt`). This is the limit at boot
/// (`kernel.perf_event_max_sample_rate`), which the kernel itself only lowers.
const UNTHROTTLED: f64 = 100_000.0;

/// Returns the least time in which the samples of an event take `cells` new cells on a CPU; `None`
/// if nothing limits how often it happens. `inherited`: each task has an event of its own, and the
/// kernel's limit for itself.
pub(crate) fn fills_in(trigger: Trigger, rate: Rate, inherited: bool, cells: usize) -> Option<Duration> {
    let most = match trigger {
        Trigger::Timer => most_per_second(rate, trigger, inherited)?,
        Trigger::Hardware if !inherited => UNTHROTTLED,
        Trigger::Hardware | Trigger::Kernel => return None,
    };
    Some(Duration::from_secs_f64(cells as f64 / most))
}

/// The growth of one table.
///
/// A table whose keys repeat stays as full as it is, and is left alone until the end of the epoch:
/// only growth makes it be read early.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filling {
    /// How full the table was at the last look, 0 to 1.
    last: f64,
    /// The least time in which it fills; `None` if it is not known.
    fills_in: Option<Duration>,
}

impl Filling {
    /// Starts with an empty table, which takes at least `fills_in` to fill, if that is known.
    pub fn new(fills_in: Option<Duration>) -> Self {
        Self { last: 0.0, fills_in }
    }

    /// Returns how long to wait until the next look at this table, `elapsed` after the run began.
    pub fn pause(&self, elapsed: Duration) -> Duration {
        match self.fills_in {
            Some(fills_in) => (fills_in / LOOKS).clamp(OFTEN, LEAST),
            None if self.has_begun() || elapsed < BEGINNING => OFTEN,
            None => SELDOM,
        }
    }

    /// Returns whether a table that is now `fill` full, 0 to 1, must be read at once.
    pub fn must_be_read(&mut self, fill: f64) -> bool {
        let growth = (fill - self.last).max(0.0);
        self.last = fill;
        fill + AHEAD * growth > FULL
    }

    /// Returns whether the table was not almost empty at the last look.
    fn has_begun(&self) -> bool {
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
        let mut filling = Filling::default();
        assert_eq!([start, later].map(|at| filling.pause(at)), [OFTEN, SELDOM]);
        assert!(!filling.must_be_read(0.1));
        assert_eq!(filling.pause(later), OFTEN);
        filling.was_read();
        assert_eq!(filling.pause(later), SELDOM);
    }

    #[test]
    fn tables_that_cannot_fill_are_left_alone() {
        let pause = |trigger, rate, cells| {
            Filling::new(fills_in(trigger, rate, false, cells)).pause(Duration::from_millis(10))
        };
        assert_eq!(pause(Trigger::Timer, Rate::Frequency(999), 8192), LEAST);
        assert_eq!(pause(Trigger::Timer, Rate::Period(100_000), 8192), Duration::from_micros(204_800));
        assert_eq!(pause(Trigger::Hardware, Rate::Frequency(999), 8192), Duration::from_micros(20_480));
        assert_eq!(pause(Trigger::Timer, Rate::Period(100_000), 64), OFTEN);
        assert_eq!(pause(Trigger::Kernel, Rate::Frequency(999), 8192), OFTEN);
        let tasks = |trigger| fills_in(trigger, Rate::Frequency(999), true, 8192);
        assert!(tasks(Trigger::Timer).is_some() && tasks(Trigger::Hardware).is_none());
        // It is read in time at its fastest.
        let (highest, reads) = filled(1.0 / f64::from(LOOKS), 1.0);
        assert!(highest <= 0.85 && reads > 0, "{highest} after {reads}");
    }

    #[test]
    fn a_table_whose_keys_repeat_is_left_alone() {
        for rate in [0.001, 0.01, 0.04] {
            assert_eq!(filled(rate, 0.6).1, 0, "{rate}");
        }
        assert_eq!(filled(0.0, 1.0), (0.0, 0));
    }
}
