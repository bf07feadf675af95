//! The numbers that a capture contains about a task.

use std::collections::BTreeMap;

use precise_common::{data_src::Snoop, ibs::OutcomeBits as Bits, ledger::Counter};
use schemars::JsonSchema;
use serde::Serialize;

use super::places::WorkerPlaces;
use precise_model::{Capture, Outcome, Row};
use precise_views::stats::Histogram;

/// What the kernel granted to one event of a run, and where its samples went.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Granted {
    /// The event as perf would write it.
    pub encoding: String,
    /// The precise level that was granted.
    pub level: u8,
    /// Whether the samples are precise.
    pub precise: bool,
    /// Number of samples that reached the BPF program.
    pub seen: u64,
    /// Number of samples that no counter accounts for.
    pub unaccounted: i64,
    /// Coverage: sum of the periods of the samples seen, divided by the event's own count. `None`
    /// if it is unknown.
    pub coverage: Option<f64>,
    /// Number of times that the kernel throttled the event.
    pub throttled: u64,
    /// Number of samples that were taken and lost: before the BPF program, in it, or after it.
    pub lost: u64,
}

/// The numbers of one run. They cover the worker's samples in user mode.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Evidence {
    /// Name of the run.
    pub name: &'static str,
    /// The events of the run.
    pub events: Vec<Granted>,
    /// Number of samples that passed the preset's filter.
    pub samples: u64,
    /// Of these, the number with an instruction address in the loop.
    pub in_function: u64,
    /// Number of samples with the address of a wanted instruction.
    pub wanted: u64,
    /// Number of samples of wanted instructions whose events promise a data address.
    pub address_due: u64,
    /// Of these, the number with an address inside the buffer.
    pub in_data: u64,
    /// Number of samples of wanted instructions whose events promise a data source.
    pub source_due: u64,
    /// Of these, the number by memory level, for samples that report a level.
    pub levels: BTreeMap<&'static str, u64>,
    /// Of these, the number that another core's cache answered.
    pub from_peer: u64,
    /// Number of samples of wanted instructions whose events promise a latency.
    pub latency_due: u64,
    /// Latencies of these samples, if they have one.
    pub latencies: Histogram,
    /// Number of samples that report the outcome of a branch or a fetch.
    pub outcomes: u64,
    /// Number of completed fetches.
    pub completed: u64,
    /// Number of samples of the random branch, and how many of these are mispredictions.
    pub random: (u64, u64),
    /// Number of samples of the predictable branch, and how many of these are mispredictions.
    pub predictable: (u64, u64),
}

impl Evidence {
    /// Returns the numbers of a capture, for a worker with these places.
    pub fn of(name: &'static str, capture: &Capture, places: &WorkerPlaces) -> Self {
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

    fn add(&mut self, row: &Row, capture: &Capture, places: &WorkerPlaces) {
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
