//! The gates of `--require`: whether a capture is good enough, by its verdict, its ledger and its
//! rows. A gate holds if it holds for every event.

mod grammar;
#[cfg(test)]
mod tests;

pub use grammar::{AllowedSide, Gate, GateError, GateShare, Parts, parse};

use precise_common::ledger::Counter;
use schemars::JsonSchema;
use serde::Serialize;

use precise_model::digits::thousands;
use precise_model::{Capture, Dimension, Ledger, Name, Projection, RowPart};

/// The result of one gate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateResult {
    /// The gate as it is written: `coverage>=99%`.
    pub gate: String,
    /// Whether the gate holds.
    pub met: bool,
    /// The event that decides: the first that fails, or the first event if none fails.
    pub event: String,
    /// The actual value, in words: `97.21%`, `812 samples`.
    pub is: String,
    /// The result as a sentence.
    pub sentence: String,
}

/// Evaluates gates on a capture: one result each, in their order.
pub fn evaluate(capture: &Capture, gates: &[Gate]) -> Vec<GateResult> {
    gates
        .iter()
        .map(|gate| {
            let mut results = (0..capture.meta.events.len()).map(|index| one(capture, index, gate));
            let first = results.next();
            match first {
                Some(first) if first.met => results.find(|result| !result.met).unwrap_or(first),
                Some(first) => first,
                None => result(gate, "", false, "unknown: the capture has no events".to_owned()),
            }
        })
        .collect()
}

/// Returns the parts of rows that decide gates.
pub fn reads(gates: &[Gate]) -> Projection {
    match gates.iter().any(|gate| matches!(gate, Gate::Share(GateShare::Symbols, ..))) {
        true => Projection::of(&[RowPart::Function]),
        false => Projection::NOTHING,
    }
}

fn one(capture: &Capture, index: usize, gate: &Gate) -> GateResult {
    let event = &capture.meta.events[index];
    match gate {
        Gate::Precise => {
            let is = if event.verdict.precise { "precise" } else { "not precise" };
            result(gate, &event.name, event.verdict.precise, is.to_owned())
        }
        Gate::Samples(order, bound) => {
            let count = super::samples(capture, index);
            let met = match order {
                AllowedSide::AtLeast => count >= *bound,
                AllowedSide::AtMost => count <= *bound,
            };
            let noun = if count == 1 { "sample" } else { "samples" };
            result(gate, &event.name, met, format!("{} {noun}", thousands(count)))
        }
        Gate::Share(share, order, bound) => match parts(capture, index, *share) {
            Ok((part, whole)) => {
                result(gate, &event.name, bound.met_by(*order, part, whole), found(part, whole, *bound))
            }
            Err(why) => result(gate, &event.name, false, format!("unknown: {why}")),
        },
    }
}

fn result(gate: &Gate, event: &str, met: bool, is: String) -> GateResult {
    let what = match gate {
        Gate::Precise => format!("{event} is {is}"),
        Gate::Samples(..) => format!("{event} has {is}"),
        Gate::Share(GateShare::Coverage, ..) => format!("the coverage of {event} is {is}"),
        Gate::Share(GateShare::Lost, ..) => format!("the share of lost samples of {event} is {is}"),
        Gate::Share(GateShare::Symbols, ..) => {
            format!("the share of samples of {event} with a function name is {is}")
        }
        Gate::Share(GateShare::Exact, ..) => format!("the share of exact samples of {event} is {is}"),
    };
    let sentence = format!("{gate} was required and {}: {what}", if met { "holds" } else { "is not met" });
    GateResult { gate: gate.to_string(), met, event: event.to_owned(), is, sentence }
}

fn rows(capture: &Capture, index: usize) -> impl Iterator<Item = &precise_model::Row> {
    capture.rows.iter().filter(move |row| usize::from(row.event) == index)
}

/// Returns the part and the whole of a share, or the reason why it is not known.
fn parts(capture: &Capture, index: usize, share: GateShare) -> Result<(u64, u64), &'static str> {
    let event = &capture.meta.events[index];
    let ledger = &event.ledger;
    if share != GateShare::Symbols && ledger.counters.is_empty() {
        return Err("the capture has no ledger");
    }
    let (seen, nothing) = (ledger.counter(Counter::Seen), "it has no samples");
    let (part, whole, without) = match share {
        GateShare::Coverage => (covered(ledger), ledger.event_count, "the event counted nothing"),
        // Samples without a fate may have been lost.
        GateShare::Lost if ledger.unaccounted() != 0 => return Err("its ledger does not close"),
        GateShare::Lost => (ledger.lost_total(), ledger.taken_total(), nothing),
        GateShare::Exact if event.marks_exact => (ledger.counter(Counter::Exact), seen, nothing),
        // If the hardware does not mark samples, all are exact by the nature of the event, or none
        // is.
        GateShare::Exact => (if event.verdict.precise { seen } else { 0 }, seen, nothing),
        GateShare::Symbols if !capture.meta.dimensions.contains(&Dimension::Ip) => {
            return Err("the capture is not grouped by instruction address");
        }
        GateShare::Symbols => (named(capture, index), super::samples(capture, index), nothing),
    };
    if whole == 0 { Err(without) } else { Ok((part, whole)) }
}

/// Returns the events that are accounted for, reduced by the part of the time in which a CPU was
/// offline.
fn covered(ledger: &Ledger) -> u64 {
    let (accounted, enabled) = (u128::from(ledger.accounted()), u128::from(ledger.enabled_ns));
    match u128::from(ledger.gap_ns()) {
        0 => ledger.accounted(),
        gap => u64::try_from(accounted * enabled / (enabled + gap)).unwrap_or(u64::MAX),
    }
}

/// Returns the number of samples whose function has a name.
fn named(capture: &Capture, index: usize) -> u64 {
    let known = |id: u32| {
        capture.code.get(id as usize).is_some_and(|location| matches!(location.function, Name::Known(_)))
    };
    let rows = rows(capture, index).filter(|row| row.code.is_some_and(known));
    rows.fold(0, |sum, row| sum.saturating_add(row.measures.count))
}

/// Formats a share with enough decimals for its bound, and the two counts behind it.
fn found(part: u64, whole: u64, bound: Parts) -> String {
    format!("{} ({} of {})", bound.beside(part, whole), thousands(part), thousands(whole))
}
