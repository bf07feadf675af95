//! The events that AMD's CodeAnalyst derives from IBS, counted in a capture.
//!
//! They are counts of samples, and what a sample stands for is another thing than what a counter's
//! event stands for: AMD's own rule is that the two are never added, subtracted or divided. So
//! events of counters are left out here, by name.

pub mod csv;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::DerivedEvents;

use precise_common::ibs::Outcome as Bits;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, Event, Run};
use super::stats::{MIN_SAMPLES, Samples, Share, Weight};
use super::weighing::Weighing;
use super::{ViewError, needs, trust};
use precise_model::TaggedOf;
use precise_model::{Capture, Dimension, EventInfo, Outcome, Row};
use precise_model::{CpuId, Vendor};
use table::{Counts, Cpu, FigureEntry, TABLE};

/// The derived events of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DerivedView {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One per event of IBS whose samples say what became of them.
    pub events: Vec<DerivedEvent>,
    /// Derived events of which the capture has no samples: none of fetches, or none of ops.
    pub absent: Vec<Derived>,
    /// Events that are not IBS: their counts have another basis, and are not added to these.
    pub left_out: Vec<String>,
}

/// The derived events of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DerivedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples that say what became of them.
    pub samples: u64,
    /// The derived events, in the order of their numbers; empty when there are too few samples.
    pub derived: Vec<Derived>,
    /// Samples that are needed; present when there are fewer.
    pub too_few: Option<u64>,
    /// What a reader must know of these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// A derived event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Derived {
    /// Its number in AMD's list: `0xF104`.
    pub select: String,
    /// Its name.
    pub name: &'static str,
    /// Its abbreviation.
    pub abbreviation: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// `samples` or `cycles`.
    pub unit: &'static str,
    /// The count; `None` where it is not known.
    pub value: Option<u64>,
    /// Of samples: the part of those that it is a part of.
    pub share: Option<Share>,
    /// Of cycles: the average of those that it is a part of.
    pub average: Option<f64>,
    /// Abbreviation of the event that it is a part of.
    pub of: Option<&'static str>,
    /// Why it is not known.
    pub unknown: Option<String>,
}

const NOT_SAID: &str = "the registers of this CPU do not report it, or the capture does not name the CPU";
const BRANCHES_ONLY: &str = "the event keeps only branches, and only their outcomes";
const NO_LATENCY: &str = "the capture has no latencies of this event";
const ABSENT: &str = "the capture has no samples of this kind";

/// The derived events of a capture.
///
/// # Errors
///
/// When no sample of it says what became of it: the sentence names the command that records it.
pub fn derived(capture: &Capture, min_samples: Option<u64>) -> Result<DerivedView, ViewError> {
    let min_samples = min_samples.unwrap_or(MIN_SAMPLES);
    let cpu = cpu(capture.meta.machine.cpu_id.as_ref());
    let trust = trust::trust(capture);
    let (mut events, mut left_out, mut seen) = (Vec::new(), Vec::new(), [false; 2]);
    for (index, (info, trust)) in capture.meta.events.iter().zip(trust.events).enumerate() {
        match info.tagged {
            Some(tagged) if tagged != TaggedOf::Access && needs::has(capture, Dimension::Outcome) => {
                seen[usize::from(tagged == TaggedOf::Fetch)] = true;
                events.push(of_event(capture, index, tagged, cpu, min_samples, Event::of(info, trust)));
            }
            _ => left_out.push(info.name.clone()),
        }
    }
    if events.is_empty() {
        return Err(ViewError::NoSuchSamples {
            view: "`precise derived`".to_owned(),
            what: "the outcomes of the ops or fetches that IBS tagged".to_owned(),
            events: left_out.join(", "),
            preset: "fetch,ops",
            by: " --by ip,process,latency,outcome".to_owned(),
        });
    }
    let absent = TABLE.iter().filter(|entry| !seen[usize::from(entry.of_fetch())]);
    let absent = absent.map(|entry| Derived { unknown: Some(ABSENT.to_owned()), ..blank(entry) }).collect();
    Ok(DerivedView { run: Run::of(capture), events, absent, left_out })
}

fn cpu(id: Option<&CpuId>) -> Cpu {
    // Of a file that names an Intel, what IBS says cannot be told.
    let id = id.filter(|id| id.vendor == Vendor::Amd);
    Cpu { zen4: id.map(CpuId::ibs_tells_ccx), line_states: id.map(|id| !id.ibs_without_hitm()) }
}

fn of_event(
    capture: &Capture,
    index: usize,
    tagged: TaggedOf,
    cpu: Cpu,
    min_samples: u64,
    event: Event,
) -> DerivedEvent {
    let fetches = tagged == TaggedOf::Fetch;
    let rows: Vec<(&Row, Bits)> = capture
        .rows
        .iter()
        .filter(|row| usize::from(row.event) == index)
        .filter_map(|row| match row.outcome? {
            Outcome::Op(bits) => (!fetches).then_some((row, Bits(bits))),
            Outcome::Fetch(bits) => fetches.then_some((row, Bits(bits))),
        })
        .collect();
    let samples = rows.iter().fold(0u64, |sum, (row, _)| sum.saturating_add(row.measures.count));
    let too_few = (samples < min_samples).then_some(min_samples);
    let weighing = Weighing::of(capture, index);
    let count = |entry: &FigureEntry| match entry.counts {
        _ if tagged == TaggedOf::Branch && !entry.of_branch() => Err(BRANCHES_ONLY),
        Counts::Nothing(why) => Err(why),
        Counts::Cycles(_) if !event.has_latency => Err(NO_LATENCY),
        Counts::Samples(test) => {
            let sum = sum(&rows, cpu, test, |sum: Samples, row| sum.and(weighing.samples(row)))?;
            Ok(Count::Samples(sum))
        }
        Counts::Cycles(test) => {
            let add = |(mut sum, cycles): (Weight, u64), row: &Row| {
                sum.add(weighing.latency(row));
                (sum, cycles.saturating_add(row.measures.latency_sum))
            };
            let (weight, cycles) = sum(&rows, cpu, test, add)?;
            Ok(Count::Cycles { weight, cycles })
        }
    };
    let entries = TABLE.iter().filter(|entry| entry.of_fetch() == fetches && too_few.is_none());
    let derived = entries.map(|entry| {
        let whole = entry.of.and_then(|select| TABLE.iter().find(|other| other.select == select));
        let whole = whole.and_then(|entry| match count(entry) {
            Ok(Count::Samples(samples)) => Some(samples),
            _ => None,
        });
        match count(entry) {
            Err(why) => Derived { unknown: Some(why.to_owned()), ..blank(entry) },
            Ok(Count::Samples(samples)) => Derived {
                value: Some(samples.count),
                share: whole.map(|whole| samples.share_of(whole)),
                ..blank(entry)
            },
            Ok(Count::Cycles { weight, cycles }) => Derived {
                value: Some(cycles),
                average: whole.filter(|n| n.count > 0).map(|n| weight.sum / n.weight.sum),
                ..blank(entry)
            },
        }
    });
    let derived = derived.collect();
    let info = &capture.meta.events[index];
    DerivedEvent { notes: notes(info, &rows, fetches), event, samples, derived, too_few }
}

/// The sum over the samples that count; why not, where one of them does not say.
fn sum<T: Default>(
    rows: &[(&Row, Bits)],
    cpu: Cpu,
    test: table::Test,
    add: impl Fn(T, &Row) -> T,
) -> Result<T, &'static str> {
    rows.iter().try_fold(T::default(), |sum, (row, bits)| match test(*bits, cpu) {
        None => Err(NOT_SAID),
        Some(true) => Ok(add(sum, row)),
        Some(false) => Ok(sum),
    })
}

/// What an entry of the table counted.
enum Count {
    Samples(Samples),
    /// Latencies: each as often as its sample weighs, and as they were sampled.
    Cycles {
        weight: Weight,
        cycles: u64,
    },
}

fn blank(entry: &FigureEntry) -> Derived {
    let of = entry.of.and_then(|select| TABLE.iter().find(|other| other.select == select));
    let cycles = matches!(entry.counts, Counts::Cycles(_)) || matches!(entry.select, 0xf101 | 0xf102);
    Derived {
        select: format!("0x{:X}", entry.select),
        name: entry.name,
        abbreviation: entry.short,
        meaning: entry.meaning,
        unit: if cycles { "cycles" } else { "samples" },
        value: None,
        share: None,
        average: None,
        of: of.map(|entry| entry.short),
        unknown: None,
    }
}

fn notes(info: &EventInfo, rows: &[(&Row, Bits)], fetches: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if info.ledger.rejected_total() > 0 {
        notes.push(
            "Only samples that passed the filter count: shares are relative to these, not to everything \
             that ran."
                .to_owned(),
        );
    }
    let unknown = rows.iter().filter(|(_, bits)| !fetches && bits.has(Bits::UNKNOWN));
    let unknown = unknown.fold(0u64, |sum, (row, _)| sum.saturating_add(row.measures.count));
    if unknown > 0 {
        notes.push(format!(
            "In {unknown} samples the source of the data is unknown (erratum 1293 of Zen 3): they are \
             in no NB event."
        ));
    }
    if !fetches {
        notes.extend(about::latency_limits(info));
    }
    notes
}
