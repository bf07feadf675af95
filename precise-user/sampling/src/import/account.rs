//! Counts each event's samples by what happened to them: the ledger of an imported capture.

use precise_common::{cell::Class, ledger::Counter};

use super::sample::KeptFacts;
use precise_model::Ledger;

/// `PERF_FORMAT_LOST`: at the end, perf records how many of the event's records were lost.
const FORMAT_LOST: u64 = 16;

/// The sample counts of one event.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportAccount {
    /// The number of samples in the file.
    pub samples: u64,
    /// The number of these samples that could not be decoded as their event describes them.
    pub unreadable: u64,
    /// The number of samples that perf's own filter rejected in the kernel. They are not in the
    /// file.
    pub filtered: u64,
    /// The number of records that were lost because the ring was full, according to the ring.
    pub lost_in_ring: u64,
    /// The number of records that were lost because the ring was full, according to the event at
    /// the end.
    pub lost_of_event: u64,
    /// The number of samples that the hardware or its driver dropped.
    pub lost_by_driver: u64,
    /// The number of times that the event was throttled.
    pub throttled: u64,
    period: u64,
    exact: u64,
    in_guest: u64,
    no_address: u64,
    no_data_source: u64,
    no_latency: u64,
    no_raw: u64,
}

impl ImportAccount {
    /// Counts a sample that goes into the capture.
    pub fn keep(&mut self, facts: &KeptFacts) {
        self.period = self.period.saturating_add(facts.period);
        self.exact += u64::from(facts.key.class & Class::EXACT != 0);
        self.in_guest += u64::from(facts.in_guest);
        self.no_address += u64::from(facts.lacks.address);
        self.no_data_source += u64::from(facts.lacks.data_source);
        self.no_latency += u64::from(facts.lacks.latency);
        self.no_raw += u64::from(facts.lacks.raw);
    }

    /// Returns the number of samples that are in the capture.
    pub fn kept(&self) -> u64 {
        self.samples.saturating_sub(self.unreadable)
    }

    /// Returns the ledger. A file does not contain the event's own counter, so there is no
    /// coverage.
    pub fn ledger(&self, read_format: u64) -> Ledger {
        let counters = [
            (Counter::Seen, self.samples.saturating_add(self.filtered)),
            (Counter::Aggregated, self.kept()),
            (Counter::ReadFailed, self.unreadable),
            (Counter::PeriodSeen, self.period),
            (Counter::PeriodAggregated, self.period),
            (Counter::Exact, self.exact),
            (Counter::InGuest, self.in_guest),
            (Counter::NoAddress, self.no_address),
            (Counter::NoDataSource, self.no_data_source),
            (Counter::NoLatency, self.no_latency),
            (Counter::NoRaw, self.no_raw),
        ];
        // The event's count includes the ring's. But events share rings, so the ring's count may be
        // higher.
        let in_ring = if read_format & FORMAT_LOST != 0 {
            self.lost_of_event.max(self.lost_in_ring)
        } else {
            self.lost_in_ring.saturating_add(self.lost_of_event)
        };
        let mut ledger = Ledger {
            counters: counters.into(),
            throttled: self.throttled,
            lost: in_ring.saturating_add(self.lost_by_driver),
            ..Ledger::default()
        };
        if self.filtered > 0 {
            ledger.rejected.push(("perf's own filter, in the kernel".to_owned(), self.filtered));
        }
        ledger
    }
}
