//! Adds up rows with equal dimensions.

use precise_model::digits::thousands;
use precise_model::{Capture, Epoch, Row};

/// Returns the sort key of a row within its epoch. Rows with equal keys have the same dimensions.
pub fn order(row: &Row) -> impl Ord + use<> {
    (
        (row.event, row.code, row.data, row.stack, row.cgroup_id, row.pid, row.tid, row.cpu),
        (row.data_src, row.outcome, row.latency_bucket, row.exact, row.width, row.page_size),
        // The same id may have its name in one epoch and not in another.
        (row.kernel, row.process, row.thread, row.cgroup),
    )
}

/// Adds up rows of the same epoch with the same dimensions, in place.
pub fn add_up(rows: &mut Vec<Row>) {
    rows.sort_unstable_by_key(|row| (row.epoch, order(row)));
    rows.dedup_by(|row, into| {
        let same = row.epoch == into.epoch && order(row) == order(into);
        if same {
            into.measures.add(&row.measures);
        }
        same
    });
}

/// Keeps the rows of a file within a limit by joining neighbouring epochs: first in pairs, then in
/// groups of four, and so on. The sums stay the same; only their time is less exact.
#[derive(Debug)]
pub(super) struct Folding {
    /// How often the epochs were joined in pairs.
    halved: u32,
    limit: usize,
}

impl Folding {
    pub fn new(limit: u64) -> Self {
        Self { halved: 0, limit: usize::try_from(limit).unwrap_or(usize::MAX) }
    }

    /// Returns the joined epoch that contains an epoch of the file.
    pub fn epoch(&self, epoch: u32) -> u32 {
        epoch >> self.halved
    }

    /// Joins epochs if there are more rows than the limit. `epochs` is the number of epochs of the
    /// file. Returns whether the rows are within the limit.
    pub fn make_room(&mut self, rows: &mut Vec<Row>, epochs: usize) -> bool {
        if rows.len() <= self.limit {
            return true;
        }
        // Rows that came since do not know those of their joined epoch.
        if self.halved > 0 {
            add_up(rows);
        }
        // Goes below the limit by a quarter, or each following batch would join epochs again.
        while rows.len() > self.limit / 4 * 3 && epochs.saturating_sub(1) >> self.halved > 0 {
            self.halved += 1;
            rows.iter_mut().for_each(|row| row.epoch >>= 1);
            add_up(rows);
        }
        rows.len() <= self.limit
    }

    /// Joins the epochs in the metadata, and adds a note about it. `claimed` is the number of rows
    /// of the file.
    pub fn finish(&self, capture: &mut Capture, claimed: u64) {
        if self.halved == 0 {
            return;
        }
        let epochs = &mut capture.meta.epochs;
        let before = epochs.len();
        let together = 1_usize << self.halved;
        *epochs = epochs
            .chunks(together)
            .filter_map(|joined| {
                Some(Epoch { start_ns: joined.first()?.start_ns, end_ns: joined.last()?.end_ns })
            })
            .collect();
        let note = format!(
            "the time axis is {} times coarser ({} instead of {}): the capture has {} rows, and at most \
             {} fit in memory",
            thousands(together as u64),
            thousands(epochs.len() as u64),
            thousands(before as u64),
            thousands(claimed),
            thousands(self.limit as u64),
        );
        capture.meta.notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::CaptureBuilder;

    fn second(number: u64) -> Epoch {
        Epoch { start_ns: number * 1_000_000_000, end_ns: (number + 1) * 1_000_000_000 }
    }

    /// Returns seven epochs, each with the same three rows.
    fn seven() -> Capture {
        let mut builder = CaptureBuilder::new();
        builder.meta().epochs = (0..7).map(second).collect();
        for epoch in 0..7 {
            for pid in 1..=3 {
                builder.cell().process(pid, "worker").epoch(epoch).samples(10);
            }
        }
        builder.build()
    }

    #[test]
    fn epochs_are_joined_until_there_is_room() {
        let mut capture = seven();
        let total: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
        let mut folding = Folding::new(12);
        assert!(folding.make_room(&mut capture.rows, 7));
        folding.finish(&mut capture, 21);
        // Joined in groups of four: 21 rows, then 12, which is at the limit and leaves no room,
        // then 6.
        assert_eq!(capture.rows.len(), 6);
        assert_eq!(capture.rows.iter().map(|row| row.measures.count).sum::<u64>(), total);
        let (first, last) = (second(0), second(6));
        assert_eq!(
            capture.meta.epochs,
            [
                Epoch { start_ns: first.start_ns, end_ns: second(3).end_ns },
                Epoch { start_ns: second(4).start_ns, end_ns: last.end_ns }
            ]
        );
        assert_eq!(folding.epoch(6), 1);
        assert_eq!(
            capture.meta.notes,
            [
                "the time axis is 4 times coarser (2 instead of 7): the capture has 21 rows, and at most 12 fit in memory"
            ]
        );
    }

    #[test]
    fn what_differs_in_more_than_time_finds_no_room() {
        let mut capture = seven();
        let mut folding = Folding::new(2);
        assert!(!folding.make_room(&mut capture.rows, 7));
        assert_eq!(capture.rows.len(), 3);
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let mut capture = seven();
        let before = capture.clone();
        let mut folding = Folding::new(21);
        assert!(folding.make_room(&mut capture.rows, 7));
        folding.finish(&mut capture, 21);
        assert_eq!(capture, before);
    }
}
