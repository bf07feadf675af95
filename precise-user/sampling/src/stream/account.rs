//! Where the samples of a streaming run went, from the event to the last line.

use crate::kernel::sampler::Delivery;
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
    /// Samples that came out of the ring and were not needed any more: behind the last one that was asked for, or after
    /// the reader had gone.
    pub left: u64,
    /// Samples that came out of the ring and could not be decoded.
    pub malformed: u64,
}

impl Account {
    /// Samples that passed the filter and found no room in the ring.
    pub fn lost(&self) -> u64 {
        self.delivery.streamed.saturating_sub(self.delivery.read).min(self.delivery.lost)
    }

    /// Samples that came out of the ring although the program had not seen them, and so without having been filtered: a
    /// PEBS buffer that is drained in the wrong moment hands its records past every program.
    pub fn unfiltered(&self) -> u64 {
        self.delivery.read.saturating_sub(self.delivery.streamed)
    }

    /// Samples that no counter accounts for. Zero, or a bug.
    pub fn unaccounted(&self) -> i64 {
        let Delivery { streamed, read, .. } = self.delivery;
        let nowhere = i128::from(streamed.saturating_sub(read)) - i128::from(self.lost());
        let unwritten =
            i128::from(read) - i128::from(self.written) - i128::from(self.left) - i128::from(self.malformed);
        let sum = i128::from(self.event.ledger.unaccounted()) + nowhere + unwritten;
        sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether every sample that was seen is known to have been rejected, written, or lost.
    pub fn closes(&self) -> bool {
        self.unaccounted() == 0
    }

    /// Whether a sample that should have been written was not.
    pub fn is_complete(&self) -> bool {
        self.closes() && self.lost() == 0 && self.malformed == 0 && self.unfiltered() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::Ledger;

    fn account(delivery: Delivery, written: u64) -> Account {
        let counters = [("seen", 1000), ("streamed", delivery.streamed)];
        let ledger = Ledger {
            counters: counters.map(|(name, count)| (name.to_owned(), count)).into(),
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
    fn what_came_past_the_program_is_said() {
        let account = account(Delivery { streamed: 600, read: 601, lost: 0 }, 601);
        assert_eq!((account.unfiltered(), account.unaccounted()), (1, 0));
        assert!(!account.is_complete());
    }
}
