//! How far the samples of a capture can be trusted: ledger and verdict of each event, in numbers
//! and in words.

mod doubts;
mod rows;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use precise_common::ledger::Counter;
use precise_model::digits::percent;
use precise_model::{Capture, EventInfo, Ledger, Meta, Precision};

use self::doubts::doubts;
use crate::crowd::who_fills_the_table;
use crate::idle::left_out;
use crate::loss::Loss;

pub(crate) use self::doubts::{offline, why_open};

/// Largest deviation of the coverage from 1 that is not reported. One period per CPU, which may be
/// in flight, is allowed in addition.
pub const COVERAGE_SLACK: f64 = 0.01;

/// The ledger and the verdict of every event of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trust {
    /// One entry per event of the capture, in the same order.
    pub events: Vec<EventTrust>,
    /// Notes that do not belong to a single event.
    pub notes: Vec<String>,
}

impl Trust {
    /// Returns whether every event was precise, lost nothing, and has a ledger that closes.
    pub fn is_clean(&self) -> bool {
        self.events.iter().all(|e| e.precise && e.closes && e.findings.is_empty())
    }
}

/// The ledger and the verdict of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventTrust {
    /// Name of the event.
    pub event: String,
    /// Whether the instruction addresses are exact.
    pub precise: bool,
    /// The precision that the user requested.
    pub requested: Precision,
    /// The precise level that the kernel granted, 0 to 3.
    pub granted: u8,
    /// The rows of the ledger, in the order in which samples pass these stages.
    pub ledger: Vec<LedgerRow>,
    /// Whether the ledger accounts for every sample that reached the BPF program.
    pub closes: bool,
    /// Number of samples that no counter accounts for. Negative if the counters add up to more than
    /// the samples seen.
    pub unaccounted: i64,
    /// Number of events that the event's own counter counted.
    pub event_count: u64,
    /// Number of samples that this count implies at the fixed period; `None` if the period was not
    /// fixed.
    pub expected: Option<u64>,
    /// Fraction of the event's own count that the samples seen represent; `None` if the event
    /// counted nothing.
    pub coverage: Option<f64>,
    /// Whether the coverage deviates so far from 100 % that it is reported.
    pub coverage_remarkable: bool,
    /// The lost samples, if they are more than 1 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Fraction of the time in which the event was counting; 1 if it was not multiplexed.
    pub running: f64,
    /// Fraction of the CPUs' time in which the event counted; 1 unless a CPU was offline for a
    /// while. It is a factor of `coverage`.
    pub present: f64,
    /// Every downgrade, loss and doubt, one sentence each.
    pub findings: Vec<String>,
    /// Summary of the ledger and the verdict in one line.
    pub summary: String,
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LedgerRow {
    /// The fate of the samples: "seen", "rejected", …
    pub what: String,
    /// Number of samples; for throttling, the number of times that it occurred.
    pub count: u64,
    /// Fraction of the samples seen; `None` if these samples are not a part of them.
    pub share: Option<f64>,
    /// Explanation of the row.
    pub meaning: String,
}

/// Returns the ledger and verdict of every event of a capture.
pub fn trust(capture: &Capture) -> Trust {
    let mut kept = vec![0u64; capture.meta.events.len()];
    for row in &capture.rows {
        if let Some(sum) = kept.get_mut(usize::from(row.event)) {
            *sum = sum.saturating_add(row.measures.count);
        }
    }
    let mut trust = trust_of(&capture.meta, &kept);
    for (at, event) in trust.events.iter_mut().enumerate() {
        event.findings.extend(who_fills_the_table(capture, at));
    }
    trust
}

/// Returns the ledger and verdict of every event of a capture whose rows are not in memory. `kept`
/// contains the number of samples in the rows of each event.
pub fn trust_of(meta: &Meta, kept: &[u64]) -> Trust {
    let events = meta.events.iter().zip(kept).map(|(e, kept)| {
        let held = Held { samples: kept.saturating_add(left_out(e)), selected: meta.selection.is_some() };
        of_event(e, held, meta.machine.cpus, meta.origin.is_some())
    });
    Trust { events: events.collect(), notes: meta.notes.clone() }
}

/// The samples that the rows of an event hold.
#[derive(Clone, Copy)]
struct Held {
    samples: u64,
    /// Whether they are a selection of the capture's samples.
    selected: bool,
}

/// An event, and what was found about its ledger.
struct LedgerOf<'a> {
    event: &'a EventInfo,
    held: Held,
    /// As in [`EventTrust`].
    running: f64,
    /// The fraction of the counted events that the samples stand for, if it deviates remarkably
    /// from 1.
    delivered: Option<f64>,
    /// As in [`EventTrust`].
    coverage_remarkable: bool,
}

fn of_event(event: &EventInfo, held: Held, cpus: u32, imported: bool) -> EventTrust {
    let (ledger, verdict) = (&event.ledger, &event.verdict);
    let has_ledger = !ledger.counters.is_empty();
    let coverage = ledger.coverage().filter(|_| has_ledger);
    let delivered = ledger.delivered().filter(|_| has_ledger);
    let in_flight = event.in_flight(cpus) / ledger.event_count.max(1) as f64;
    let is_remarkable = |share: &f64| (share - 1.0).abs() > COVERAGE_SLACK + in_flight;
    let of = LedgerOf {
        event,
        held,
        running: match ledger.enabled_ns {
            0 => 1.0,
            enabled => ledger.running_ns as f64 / enabled as f64,
        },
        delivered: delivered.filter(is_remarkable),
        coverage_remarkable: coverage.as_ref().is_some_and(is_remarkable),
    };
    EventTrust {
        event: event.name.clone(),
        precise: verdict.precise,
        requested: verdict.requested,
        granted: verdict.granted,
        ledger: if has_ledger { rows::of_ledger(&of, imported) } else { Vec::new() },
        closes: closes(ledger),
        unaccounted: ledger.unaccounted(),
        event_count: ledger.event_count,
        expected: ledger.expected,
        coverage,
        coverage_remarkable: of.coverage_remarkable,
        loss: Loss::of(ledger),
        running: of.running,
        present: ledger.present(),
        findings: verdict.findings.iter().cloned().chain(doubts(&of)).collect(),
        summary: summary(event, coverage, imported),
    }
}

/// Returns whether there is a ledger that accounts for every sample.
fn closes(ledger: &Ledger) -> bool {
    !ledger.counters.is_empty() && ledger.unaccounted() == 0
}

fn summary(event: &EventInfo, coverage: Option<f64>, imported: bool) -> String {
    let (ledger, verdict) = (&event.ledger, &event.verdict);
    let has_ledger = !ledger.counters.is_empty();
    let seen = ledger.counter(Counter::Seen);
    let mut summary = if verdict.precise { "precise" } else { "NOT PRECISE" }.to_owned();
    // Software events have no precise levels: a page fault is always exact, a timer never is.
    summary += &match (event.marks_exact, verdict.precise) {
        // IBS, and PMUs like it: to readers who know perf, level 0 means that nothing is exact.
        (true, true) if verdict.granted == 0 => " (at any level of this PMU)".to_owned(),
        (true, _) => format!(" (level {} granted)", verdict.granted),
        (false, true) => " (exact by the nature of the event)".to_owned(),
        (false, false) => String::new(),
    };
    if has_ledger && seen > 0 && event.marks_exact {
        summary += &format!(", {} of samples exact", part(ledger.counter(Counter::Exact), seen));
    }
    let lost = ledger.lost_total();
    if lost > 0 {
        summary += &format!("; {} LOST", part(lost, ledger.taken_total()));
    }
    summary += match (has_ledger, closes(ledger)) {
        (false, _) => "; no ledger",
        (true, true) => "; ledger closes",
        (true, false) => "; LEDGER DOES NOT CLOSE",
    };
    if let Some(c) = coverage {
        summary += &format!("; coverage {}", percent(c));
    } else if imported {
        summary += "; coverage unknown";
    }
    summary
}

/// Formats a part of a whole in percent; `0.0%` if the whole is 0.
fn part(part: u64, whole: u64) -> String {
    percent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}
