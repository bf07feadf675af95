//! Joins rows that have become equal because parts of them were left out.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use precise_common::ledger::Counter;
use rustc_hash::FxBuildHasher;

use crate::{EventInfo, Measures, Meta, Row};

/// The number of rows after which joining goes on only if it is worth it.
const TRIED: u64 = 32 * 1024;
/// The part of the rows that must have found another one for that.
const WORTH: u64 = 4;

/// Adds rows to a list, those that are equal to a row in the list to that row.
///
/// Rows are joined only if no answer can tell: what is known of each sample stays known. So all
/// samples of both rows have the same latency, and stand for the same number of events on average.
#[derive(Debug)]
pub struct Joining {
    /// The rows that others can be joined with, by their hash: the place in the list, and the
    /// number of events that a sample stands for.
    places: HashTable<(u32, u64)>,
    /// Whether rows of an event may be joined.
    events: Vec<bool>,
    tried: u64,
    joined: u64,
}

impl Joining {
    /// Returns what joins rows of a capture, or, if not `wanted`, none.
    pub fn of(meta: &Meta, wanted: bool) -> Self {
        // The rows of a governed event differ in their weights, and the rows of a full table are
        // counted.
        let may =
            |event: &EventInfo| wanted && !event.governed() && event.ledger.counter(Counter::TableFull) == 0;
        let events = meta.events.iter().map(may).collect();
        Self { places: HashTable::new(), events, tried: 0, joined: 0 }
    }

    /// Returns whether any rows are joined.
    pub fn is_on(&self) -> bool {
        self.events.contains(&true)
    }

    /// Adds a row that comes `times` times.
    pub fn add_repeated(&mut self, rows: &mut Vec<Row>, mut row: Row, times: u64) {
        let measures = &mut row.measures;
        if self.may(row.event) && even_period(measures).is_some() {
            measures.count = measures.count.saturating_mul(times);
            measures.period_sum = measures.period_sum.saturating_mul(times);
            measures.latency_sum = measures.latency_sum.saturating_mul(times);
            self.add(rows, row);
        } else {
            (0..times).for_each(|_| self.add(rows, row));
        }
    }

    fn may(&self, event: u16) -> bool {
        self.events.get(usize::from(event)) == Some(&true)
    }

    /// Adds a row.
    pub fn add(&mut self, rows: &mut Vec<Row>, row: Row) {
        match self.found(rows, &row) {
            Some(place) => match rows.get_mut(place as usize) {
                Some(same) => same.measures.add(&row.measures),
                None => rows.push(row),
            },
            None => rows.push(row),
        }
    }

    /// Returns the place of a row to which this one can be added. Otherwise the row's own place at
    /// the end of the list is remembered.
    fn found(&mut self, rows: &[Row], row: &Row) -> Option<u32> {
        if !self.may(row.event) {
            return None;
        }
        let period = even_period(&row.measures)?;
        let own = dimensions(row);
        let hash = |own: &Row, period: u64| FxBuildHasher.hash_one((own, period));
        let same = |(place, other): &(u32, u64)| {
            *other == period && rows.get(*place as usize).is_some_and(|row| dimensions(row) == own)
        };
        let hashed = hash(&own, period);
        self.tried += 1;
        if let Some((place, _)) = self.places.find(hashed, same) {
            self.joined += 1;
            return Some(*place);
        }
        if self.tried > TRIED && self.joined < self.tried / WORTH {
            self.stop();
            return None;
        }
        let again = |(place, period): &(u32, u64)| {
            rows.get(*place as usize).map_or(hashed, |row| hash(&dimensions(row), *period))
        };
        self.places.insert_unique(hashed, (u32::try_from(rows.len()).ok()?, period), again);
        None
    }

    /// Joins no more rows.
    pub fn stop(&mut self) {
        self.events.clear();
        self.places = HashTable::new();
    }

    /// Forgets the rows so far, for a list whose rows have moved.
    pub fn forget(&mut self) {
        self.places.clear();
    }
}

/// Returns the number of events that each sample of a row stands for; `None` if the row does not
/// tell, or does not tell the latency of each.
fn even_period(measures: &Measures) -> Option<u64> {
    let Measures { count, period_sum, latency_sum, latency_max } = *measures;
    let each = u64::from(latency_max).checked_mul(count)?;
    (count > 0 && latency_sum == each && period_sum.is_multiple_of(count)).then(|| period_sum / count)
}

/// Returns a row with the measures that rows must share to be joined.
fn dimensions(row: &Row) -> Row {
    let latency_max = row.measures.latency_max;
    Row { measures: Measures { latency_max, ..Measures::default() }, ..*row }
}

#[cfg(test)]
mod tests {
    use super::Joining;
    use crate::testing::CaptureBuilder;
    use crate::{Capture, Measures, RateChange, Row};
    use precise_common::ledger::Counter;

    /// Returns the rows of a capture, joined.
    fn joined(capture: &Capture) -> Vec<Measures> {
        let mut rows: Vec<Row> = Vec::new();
        let mut joining = Joining::of(&capture.meta, true);
        capture.rows.iter().for_each(|row| joining.add(&mut rows, *row));
        rows.iter().map(|row| row.measures).collect()
    }

    fn capture(latencies: &[u32]) -> Capture {
        let mut made = CaptureBuilder::new();
        for latency in latencies {
            made.cell().samples(1).latency(*latency);
        }
        made.build()
    }

    #[test]
    fn rows_are_joined_if_nothing_is_lost() {
        let rows = joined(&capture(&[7, 9, 7, 7]));
        assert_eq!(
            rows.iter().map(|row| (row.count, row.latency_sum)).collect::<Vec<_>>(),
            [(3, 21), (1, 9)]
        );
        // The latencies of two samples are not known, only their sum and the larger one.
        let mut of_two = capture(&[7, 7, 7]);
        of_two.rows[1].measures.count = 2;
        assert_eq!(joined(&of_two).len(), 2);
        // They stand for different numbers of events.
        let mut of_periods = capture(&[7, 7, 7]);
        of_periods.rows[1].measures.period_sum += 1;
        assert_eq!(joined(&of_periods).len(), 2);
    }

    #[test]
    fn rows_that_are_counted_or_weighed_stay_apart() {
        let mut full = capture(&[7, 7]);
        full.meta.events[0].ledger.counters.set(Counter::TableFull, 1);
        assert_eq!(joined(&full).len(), 2);
        let mut governed = capture(&[7, 7]);
        governed.meta.events[0].rates = vec![RateChange::default()];
        assert_eq!(joined(&governed).len(), 2);
    }

    #[test]
    fn joining_ends_where_rows_differ() {
        let mut made = CaptureBuilder::new();
        for pid in 0..40_000 {
            made.cell().samples(1).process(pid, "a");
        }
        let capture = made.build();
        let (mut rows, mut joining) = (Vec::new(), Joining::of(&capture.meta, true));
        capture.rows.iter().for_each(|row| joining.add(&mut rows, *row));
        assert_eq!(rows, capture.rows);
        assert!(joining.events.is_empty() && joining.places.is_empty());
    }
}
