//! What the run loop says of the events at the end of each epoch.

use std::collections::VecDeque;

use precise_common::ledger::Counter;
use precise_model::{CpuGap, EventInfo, Ledger, Overhead, RateChange};

/// The cost of a live view, as shares of the time of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The cost of sampling on the CPU that sampled most, in the last epoch.
    pub sampling: f64,
    /// The limit of `sampling`; `None` if there is none.
    pub budget: Option<f64>,
    /// The CPU time of the whole process in the last epoch: reading, names, and the screen.
    pub process: f64,
}

/// The state of the run at the end of an epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The events with the ledgers of the whole run. Their rates are in `changes`.
    pub events: Vec<EventInfo>,
    /// The changes of each event's rate in this epoch.
    pub changes: Vec<Vec<RateChange>>,
    /// The number of samples of each event that were dropped so far because naming was behind.
    pub dropped: Vec<u64>,
    pub overhead: Option<Overhead>,
    pub cost: Cost,
    /// The notes of the run loop in this epoch, one sentence each.
    pub notes: Vec<String>,
}

/// The rates of one event: at the start of the window, and the changes since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    start: RateChange,
    changes: VecDeque<RateChange>,
    /// Whether the rate has changed since the run began.
    governed: bool,
}

impl Rates {
    pub fn new(event: &EventInfo) -> Self {
        let start = RateChange { at_ns: 0, period: event.period, frequency: event.frequency };
        Self { start, ..Self::default() }
    }

    pub fn add(&mut self, changes: &[RateChange]) {
        self.governed |= !changes.is_empty();
        self.changes.extend(changes);
    }

    /// Forgets the changes before the start of the window.
    pub fn forget_before(&mut self, start_ns: u64) {
        while let Some(change) = self.changes.pop_front_if(|change| change.at_ns <= start_ns) {
            self.start = change;
        }
    }

    /// Returns what tells [`EventInfo`] whether one period holds for all samples since the start.
    pub fn so_far(&self) -> Vec<RateChange> {
        if self.governed { vec![self.start] } else { Vec::new() }
    }

    /// Writes the rates of the window into an event; times count from its start.
    pub fn describe(&self, event: &mut EventInfo, start_ns: u64) {
        let later =
            |change: &RateChange| RateChange { at_ns: change.at_ns.saturating_sub(start_ns), ..*change };
        (event.period, event.frequency) = (self.start.period, self.start.frequency);
        event.rates.clear();
        if !self.changes.is_empty() {
            event.period = None;
            event.rates.push(RateChange { at_ns: 0, ..self.start });
            event.rates.extend(self.changes.iter().map(later));
        }
    }
}

/// Returns the ledger at the moment when the tables were read. `ledger` was read a moment later,
/// and has counted samples that are not in the rows yet; `in_rows` is the number of samples in the
/// rows of all epochs up to now, and of those that were dropped.
fn at_the_read(ledger: &Ledger, in_rows: u64) -> Ledger {
    let mut ledger = ledger.clone();
    let early = ledger.counter(Counter::Aggregated).saturating_sub(in_rows);
    // Samples of an event whose samples are all exact are exact in this moment too.
    let all_exact = ledger.counter(Counter::Exact) == ledger.counter(Counter::Seen);
    let exact = all_exact.then_some(Counter::Exact);
    for counter in [Counter::Seen, Counter::Aggregated].into_iter().chain(exact) {
        ledger.counters.set(counter, ledger.counter(counter).saturating_sub(early));
    }
    ledger
}

/// The reason for which the ledger counts samples that naming dropped.
const BEHIND: &str = "the naming thread was behind";

/// Returns the ledger of each event at the end of an epoch. `in_rows` is the number of samples of
/// each event in the rows of all epochs up to now; `unkept` has reasons for which some of these
/// were not kept, with their numbers.
pub(crate) fn ledgers(state: &State, in_rows: &[u64], unkept: &[(&str, &[u64])]) -> Vec<Ledger> {
    let of = |(at, event): (usize, &EventInfo)| {
        let sum = |list: &[u64]| list.get(at).copied().unwrap_or(0);
        let mut ledger = at_the_read(&event.ledger, sum(in_rows) + sum(&state.dropped));
        ledger.discarded.insert(BEHIND.to_owned(), sum(&state.dropped));
        for (reason, list) in unkept {
            ledger.discarded.insert((*reason).to_owned(), sum(list));
        }
        ledger
    };
    state.events.iter().enumerate().map(of).collect()
}

/// Returns the events of a part of the run: from `start_ns`, when they had the ledgers `before`, to
/// the moment of `state`, when they have the ledgers `now`. `rates` are those since the start.
pub(crate) fn events_between(
    state: &State,
    before: &[Ledger],
    now: Vec<Ledger>,
    rates: &[Rates],
    start_ns: u64,
) -> Vec<EventInfo> {
    let mut events = state.events.clone();
    for (at, (event, now)) in events.iter_mut().zip(now).enumerate() {
        event.ledger = before.get(at).map_or_else(|| now.clone(), |before| now.since(before));
        event.ledger.discarded.retain(|_, count| *count > 0);
        event.ledger.gaps = gaps_since(&event.ledger.gaps, start_ns);
        if let Some(rates) = rates.get(at) {
            rates.describe(event, start_ns);
        }
    }
    events
}

/// Returns the gaps that overlap the time from `start_ns` on; their times count from there.
fn gaps_since(gaps: &[CpuGap], start_ns: u64) -> Vec<CpuGap> {
    let within = |gap: &CpuGap| CpuGap {
        start_ns: gap.start_ns.saturating_sub(start_ns),
        end_ns: gap.end_ns.saturating_sub(start_ns),
        ..*gap
    };
    gaps.iter().filter(|gap| gap.end_ns > start_ns).map(within).collect()
}
