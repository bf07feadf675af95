//! Samples and sideband in the order of time, round by round.

use super::sample::Facts;
use precise_records::order::Order;
use precise_records::record::{IdentifiedRecord, Record};

/// Bytes that wait for their turn, at most: many times what the rings of a recording hold.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// What has a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Sample(Facts),
    Sideband(Box<IdentifiedRecord>),
}

impl Item {
    fn bytes(&self) -> usize {
        size_of::<(u64, Self)>()
            + match self {
                Self::Sample(facts) => facts.chain.as_ref().map_or(0, |chain| chain.bytes),
                Self::Sideband(entry) => {
                    size_of::<IdentifiedRecord>()
                        + match &entry.record {
                            Record::Mmap(map) | Record::Mmap2(map) => map.path.len(),
                            Record::Cgroup { path, .. } => path.len(),
                            Record::Comm { comm, .. } => comm.len(),
                            _ => 0,
                        }
                }
            }
    }
}

/// What waits for older records.
#[derive(Debug)]
pub(super) struct Queue {
    order: Order<Item>,
    bytes: usize,
    latest: u64,
    released: u64,
    /// Records that came after younger ones had to be handed out.
    pub late: u64,
}

impl Queue {
    pub fn new() -> Self {
        Self { order: Order::new(), bytes: 0, latest: 0, released: 0, late: 0 }
    }

    /// Takes one in. Returns what has to go because memory is short.
    pub fn push(&mut self, time: u64, item: Item) -> Vec<(u64, Item)> {
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

    /// A round has ended: what was taken before the end of the last one is complete.
    pub fn round(&mut self) -> Vec<(u64, Item)> {
        let ready = self.order.timed_round(self.latest);
        self.release(ready)
    }

    /// Nothing follows.
    pub fn finish(&mut self) -> Vec<(u64, Item)> {
        // Times may be up to the largest number.
        let mut ready = self.order.timed_round(u64::MAX);
        ready.append(&mut self.order.timed_round(u64::MAX));
        while self.order.oldest() != u64::MAX {
            ready.append(&mut self.order.older_half());
        }
        self.release(ready)
    }

    fn release(&mut self, ready: Vec<(u64, Item)>) -> Vec<(u64, Item)> {
        for (time, item) in &ready {
            self.bytes = self.bytes.saturating_sub(item.bytes());
            self.released = self.released.max(*time);
        }
        ready
    }
}
