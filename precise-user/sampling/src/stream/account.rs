//! Where the samples of a streaming run went, from the event to the last line.

use crate::kernel::sampler::Delivery;
use precise_common::ledger::Fate;
use precise_model::EventInfo;

/// One event's samples.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Account {
    /// What was granted, and the program's ledger.
    pub event: EventInfo,
    /// What became of those that passed.
    pub delivery: Delivery,
    /// Samples that the sink took.
    pub written: u64,
    /// Samples that came out of the ring and were not needed any more: behind the last one that was
    /// asked for, or after the reader had gone.
    pub left: u64,
    /// Samples that came out of the ring and could not be decoded.
    pub malformed: u64,
}

/// A fate of samples after the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The fate.
    pub fate: Fate,
    /// Its name.
    pub what: &'static str,
    /// The number of samples.
    pub samples: u64,
    /// Its meaning, for people.
    pub meaning: &'static str,
}

impl Account {
    /// Samples that passed the filter and found no room in the ring.
    pub fn lost(&self) -> u64 {
        self.delivery.streamed.saturating_sub(self.delivery.read).min(self.delivery.lost)
    }

    /// Samples that came out of the ring although the program had not seen them, and so without
    /// having been filtered: a PEBS buffer that is drained in the wrong moment hands its records
    /// past every program.
    pub fn unfiltered(&self) -> u64 {
        self.delivery.read.saturating_sub(self.delivery.streamed)
    }

    /// The fates of samples after the program, in the order of their way. With the counters of the
    /// ledger, these are all samples of the run.
    pub fn rows(&self) -> [AccountRow; 5] {
        let row = |fate, what, samples, meaning| AccountRow { fate, what, samples, meaning };
        [
            row(Fate::Kept, "written", self.written, "passed and written"),
            row(Fate::Discarded, "lost", self.lost(), "passed, but the ring was full"),
            // Not by the filter, but by the limit that the user gave, or by a reader that has gone.
            row(
                Fate::Rejected,
                "left",
                self.left,
                "arrived after the limit of the run was reached, or after the reader had gone",
            ),
            row(Fate::Discarded, "malformed", self.malformed, "read from the ring, but cannot be decoded"),
            // They did not arrive, and are among those that were written, left or malformed.
            row(Fate::Measure, "unfiltered", self.unfiltered(), "written, but unknown to the program"),
        ]
    }

    /// Samples that were taken and lost: before the program, in it, or after it.
    pub fn lost_total(&self) -> u64 {
        let after = self.rows().into_iter().filter(|row| row.fate.is_loss());
        after.fold(self.event.ledger.lost_total(), |sum, row| sum.saturating_add(row.samples))
    }

    /// Samples that no row and no counter accounts for. Zero, or a bug.
    pub fn unaccounted(&self) -> i64 {
        let came = i128::from(self.delivery.streamed) + i128::from(self.unfiltered());
        let ended = self.rows().into_iter().filter(|row| row.fate.ends() || row.fate.is_loss());
        let ended: i128 = ended.map(|row| i128::from(row.samples)).sum();
        let sum = i128::from(self.event.ledger.unaccounted()) + came - ended;
        sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether every sample that was seen is known to have been rejected, written, or lost.
    pub fn closes(&self) -> bool {
        self.unaccounted() == 0
    }

    /// Whether a sample that should have been written was not.
    pub fn is_complete(&self) -> bool {
        self.closes() && self.lost_total() == 0 && self.unfiltered() == 0
    }
}

#[cfg(test)]
mod tests {
    use precise_common::ledger::Counter;

    use super::*;
    use precise_model::Ledger;

    fn account(delivery: Delivery, written: u64) -> Account {
        let ledger = Ledger {
            counters: [(Counter::Seen, 1000), (Counter::Streamed, delivery.streamed)].into(),
            rejected: vec![("addr".into(), 1000 - delivery.streamed)],
            ..Ledger::default()
        };
        Account {
            event: EventInfo { ledger, ..EventInfo::default() },
            delivery,
            written,
            ..Account::default()
        }
    }

    #[test]
    fn everything_that_passed_was_written() {
        let account = account(Delivery { streamed: 600, read: 600, lost: 0 }, 600);
        assert!(account.is_complete());
    }

    #[test]
    fn what_the_kernel_says_it_lost_is_accounted_for() {
        let full = account(Delivery { streamed: 600, read: 500, lost: 100 }, 500);
        assert!(full.closes() && !full.is_complete());
        assert_eq!((full.lost(), full.unaccounted()), (100, 0));
        // A record that was no sample found no room either.
        let more = account(Delivery { streamed: 600, read: 500, lost: 101 }, 500);
        assert_eq!((more.lost(), more.unaccounted()), (100, 0));
        let silent = account(Delivery { streamed: 600, read: 500, lost: 99 }, 500);
        assert_eq!((silent.lost(), silent.unaccounted()), (99, 1));
    }

    #[test]
    fn what_was_read_is_written_or_left_or_malformed() {
        let mut account = account(Delivery { streamed: 600, read: 600, lost: 0 }, 10);
        assert_eq!(account.unaccounted(), 590);
        (account.left, account.malformed) = (588, 2);
        assert!(account.closes() && !account.is_complete());
    }

    #[test]
    fn every_loss_of_the_program_makes_an_account_incomplete() {
        for counter in Counter::ALL.iter().filter(|counter| counter.fate().is_loss()) {
            let mut account = account(Delivery { streamed: 600, read: 600, lost: 0 }, 600);
            account.event.ledger.counters.set(Counter::Seen, 1005);
            account.event.ledger.counters.set(*counter, 5);
            assert_eq!((account.unaccounted(), account.lost_total()), (0, 5), "{counter:?}");
            assert!(!account.is_complete(), "{counter:?}");
        }
        let mut account = account(Delivery { streamed: 600, read: 600, lost: 0 }, 600);
        account.event.ledger.lost = 5;
        assert!(account.closes() && !account.is_complete());
    }

    #[test]
    fn what_came_past_the_program_is_said() {
        let account = account(Delivery { streamed: 600, read: 601, lost: 0 }, 601);
        assert_eq!((account.unfiltered(), account.unaccounted()), (1, 0));
        assert!(!account.is_complete());
    }
}
