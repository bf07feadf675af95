//! Sorts samples and sideband by time, round by round.

use super::sample::KeptFacts;
use precise_records::order::TimeOrder;
use precise_records::record::IdentifiedRecord;

/// The maximum size of the queue in bytes: many times the size of a recording's rings.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// A record with a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TimedRecord {
    Sample(KeptFacts),
    Sideband(Box<IdentifiedRecord>),
}

impl TimedRecord {
    fn bytes(&self) -> usize {
        size_of::<(u64, Self)>()
            + match self {
                Self::Sample(facts) => facts.chain.bytes(),
                Self::Sideband(entry) => entry.bytes(),
            }
    }
}

/// The records that wait until all older records have arrived.
#[derive(Debug)]
pub(super) struct Queue {
    order: TimeOrder<TimedRecord>,
    bytes: usize,
    latest: u64,
    released: u64,
    /// The number of records that arrived after later ones had been released to save memory.
    pub late: u64,
}

impl Queue {
    pub fn new() -> Self {
        Self { order: TimeOrder::new(), bytes: 0, latest: 0, released: 0, late: 0 }
    }

    /// Adds a record. Returns the records that must be processed now because the queue is full.
    pub fn push(&mut self, time: u64, item: TimedRecord) -> Vec<(u64, TimedRecord)> {
        self.late += u64::from(time < self.released);
        self.latest = self.latest.max(time);
        self.bytes += item.bytes();
        self.order.push(time, item);
        if self.bytes <= MAX_BYTES {
            return Vec::new();
        }
        let ready = self.order.older_half();
        self.release(ready)
    }

    /// Ends a round. Returns the records that are complete: those taken before the end of the
    /// previous round.
    pub fn round(&mut self) -> Vec<(u64, TimedRecord)> {
        let ready = self.order.timed_round(self.latest);
        self.release(ready)
    }

    /// Returns all remaining records at the end of the file.
    pub fn finish(&mut self) -> Vec<(u64, TimedRecord)> {
        // A time can be as large as u64::MAX.
        let mut ready = self.order.timed_round(u64::MAX);
        ready.append(&mut self.order.timed_round(u64::MAX));
        while self.order.oldest() != u64::MAX {
            ready.append(&mut self.order.older_half());
        }
        self.release(ready)
    }

    fn release(&mut self, ready: Vec<(u64, TimedRecord)>) -> Vec<(u64, TimedRecord)> {
        for (time, item) in &ready {
            self.bytes = self.bytes.saturating_sub(item.bytes());
            self.released = self.released.max(*time);
        }
        ready
    }
}
