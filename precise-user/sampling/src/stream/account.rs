//! Accounts for the samples of a streaming run, from the event to the last line of output.

use crate::kernel::sampler::Delivery;
use precise_common::ledger::Fate;
use precise_model::EventInfo;

/// The sample counts of one event.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Account {
    /// The event: what the kernel granted, and the program's ledger.
    pub event: EventInfo,
    /// Counts of the samples that passed the filter.
    pub delivery: Delivery,
    /// The number of samples that the sink accepted.
    pub written: u64,
    /// The number of samples read from the ring that were no longer wanted: they came after the
    /// limit was reached, or after the reader had closed the output.
    pub left: u64,
    /// The number of samples read from the ring that could not be decoded.
    pub malformed: u64,
    /// The number of samples read from the ring that were not written when the run had to end. The
    /// last of them may be in the output nevertheless, if its reader was slow.
    pub cut: u64,
}

/// A fate of samples after the program, with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The fate.
    pub fate: Fate,
    /// The name of the fate.
    pub what: &'static str,
    /// The number of samples with this fate.
    pub samples: u64,
    /// The meaning, for people.
    pub meaning: &'static str,
}

impl Account {
    /// Returns the number of samples that passed the filter and were lost because the ring was
    /// full.
    pub fn lost(&self) -> u64 {
        self.delivery.streamed.saturating_sub(self.delivery.read).min(self.delivery.lost)
    }

    /// Returns the number of samples in the ring that the program never saw and the filter never
    /// checked. A PEBS buffer that is drained at the wrong moment writes its records directly to
    /// the ring, bypassing every program.
    pub fn unfiltered(&self) -> u64 {
        self.delivery.read.saturating_sub(self.delivery.streamed)
    }

    /// Returns the fates of samples after the program, in the order of their path. Together with
    /// the counters of the ledger, they account for all samples of the run.
    pub fn rows(&self) -> [AccountRow; 6] {
        let row = |fate, what, samples, meaning| AccountRow { fate, what, samples, meaning };
        [
            row(Fate::Kept, "written", self.written, "passed and written"),
            row(Fate::Discarded, "lost", self.lost(), "passed, but the ring was full"),
            // These samples were not rejected by the filter, but by the user's limit or by a closed
            // output.
            row(
                Fate::Rejected,
                "left",
                self.left,
                "arrived after the limit of the run was reached, or after the reader had gone",
            ),
            row(Fate::Discarded, "malformed", self.malformed, "read from the ring, but cannot be decoded"),
            row(
                Fate::Discarded,
                "cut off",
                self.cut,
                "passed, but not written when the run had to end: naming was stuck, or nobody read",
            ),
            // These samples are not a separate fate: they are among those written, left or
            // malformed.
            row(Fate::Measure, "unfiltered", self.unfiltered(), "written, but unknown to the program"),
        ]
    }

    /// Returns the number of samples that were taken and lost: before the program, in it, or after
    /// it.
    pub fn lost_total(&self) -> u64 {
        let after = self.rows().into_iter().filter(|row| row.fate.is_loss());
        after.fold(self.event.ledger.lost_total(), |sum, row| sum.saturating_add(row.samples))
    }

    /// Returns the number of samples without a row or counter. Anything but 0 is a bug.
    pub fn unaccounted(&self) -> i64 {
        let came = i128::from(self.delivery.streamed) + i128::from(self.unfiltered());
        let ended = self.rows().into_iter().filter(|row| row.fate.ends() || row.fate.is_loss());
        let ended: i128 = ended.map(|row| i128::from(row.samples)).sum();
        let sum = i128::from(self.event.ledger.unaccounted()) + came - ended;
        sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns whether every sample that the program saw is known to be rejected, written or lost.
    pub fn closes(&self) -> bool {
        self.unaccounted() == 0
    }

    /// Returns whether every sample that should have been written was written.
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
        // One of the records lost at the full ring was not a sample.
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
        (account.left, account.cut) = (500, 88);
        assert!(account.closes());
        assert_eq!(account.lost_total(), 90);
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
