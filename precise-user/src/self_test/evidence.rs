//! What a capture says of a task, as numbers.

use std::collections::BTreeMap;

use precise_common::{data_src::Snoop, ibs::Outcome as Bits, ledger::Counter};
use schemars::JsonSchema;
use serde::Serialize;

use super::places::Places;
use precise_model::{Capture, Outcome, Row};
use precise_views::stats::Histogram;

/// What one event of a run was granted, and where its samples went.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Granted {
    /// As perf would write it.
    pub encoding: String,
    /// The precise level.
    pub level: u8,
    /// Whether its samples are precise.
    pub precise: bool,
    /// Samples that reached the program.
    pub seen: u64,
    /// Samples that no counter accounts for.
    pub unaccounted: i64,
    /// Σ period of what was seen by the event's own count.
    pub coverage: Option<f64>,
    /// Times that the kernel throttled it.
    pub throttled: u64,
    /// Samples that were taken and lost: before the program, in it, or after it.
    pub lost: u64,
}

/// What one run has shown. Samples are those of the worker in user mode.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Evidence {
    /// Which run.
    pub name: &'static str,
    /// Its events.
    pub events: Vec<Granted>,
    /// Samples that passed the preset's filter.
    pub samples: u64,
    /// Of these, with an IP in the loop.
    pub in_function: u64,
    /// With the IP of a wanted instruction.
    pub wanted: u64,
    /// Wanted ones of events that promise an address.
    pub address_due: u64,
    /// Of these, with an address inside of the buffer.
    pub in_data: u64,
    /// Wanted ones of events that promise a data source.
    pub source_due: u64,
    /// Of these, by level, where one was given.
    pub levels: BTreeMap<&'static str, u64>,
    /// Of these, answered by another core's cache.
    pub from_peer: u64,
    /// Wanted ones of events that promise a latency.
    pub latency_due: u64,
    /// Their latencies, where they have one.
    pub latencies: Histogram,
    /// Samples whose record says what became of the branch or fetch.
    pub outcomes: u64,
    /// Fetches that were completed.
    pub completed: u64,
    /// Samples of the random branch, and how many of them say that it was mispredicted.
    pub random: (u64, u64),
    /// The same of the predictable one.
    pub predictable: (u64, u64),
}

impl Evidence {
    /// Reads a capture of a worker at these places.
    pub fn of(name: &'static str, capture: &Capture, places: &Places) -> Self {
        let events = capture.meta.events.iter().map(|event| Granted {
            encoding: event.encoding.clone(),
            level: event.verdict.granted,
            precise: event.verdict.precise,
            seen: event.ledger.counter(Counter::Seen),
            unaccounted: event.ledger.unaccounted(),
            coverage: event.ledger.coverage(),
            throttled: event.ledger.throttled,
            lost: event.ledger.lost_total(),
        });
        let mut evidence = Self { name, events: events.collect(), ..Self::default() };
        for row in capture.rows.iter().filter(|row| !row.kernel) {
            evidence.add(row, capture, places);
        }
        evidence
    }

    fn add(&mut self, row: &Row, capture: &Capture, places: &Places) {
        let count = row.measures.count;
        let ip = row
            .code
            .and_then(|code| capture.code.get(code as usize))
            .map_or(0, |location| location.runtime_address);
        self.samples += count;
        if places.function.has(ip) {
            self.in_function += count;
        }
        let mispredicted =
            matches!(row.outcome, Some(Outcome::Op(bits)) if Bits(bits).has(Bits::MISPREDICTED));
        if matches!(row.outcome, Some(Outcome::Fetch(bits)) if Bits(bits).has(Bits::COMPLETED)) {
            self.completed += count;
        }
        if row.outcome.is_some() {
            self.outcomes += count;
        }
        if places.predictable == Some(ip) {
            self.predictable.0 += count;
            self.predictable.1 += if mispredicted { count } else { 0 };
        }
        if !places.instructions.contains(&ip) {
            return;
        }
        self.wanted += count;
        if places.predictable.is_some() {
            self.random.0 += count;
            self.random.1 += if mispredicted { count } else { 0 };
        }
        let Some(fields) = capture.meta.events.get(usize::from(row.event)).map(|event| event.fields) else {
            return;
        };
        if fields.address {
            self.address_due += count;
            let address =
                row.data.and_then(|data| capture.data.get(data as usize)).map(|data| data.runtime_address);
            if address.zip(places.data).is_some_and(|(address, data)| data.has(address)) {
                self.in_data += count;
            }
        }
        if fields.data_source {
            self.source_due += count;
            let source = row.data_source();
            if precise_model::has_source(row.data_src) {
                *self.levels.entry(source.level.name()).or_default() += count;
            }
            if matches!(source.snoop, Snoop::HitM | Snoop::Peer) {
                self.from_peer += count;
            }
        }
        if fields.latency {
            self.latency_due += count;
            if let Some(bucket) = row.latency_bucket {
                self.latencies.add(bucket, count);
            }
        }
    }
}
