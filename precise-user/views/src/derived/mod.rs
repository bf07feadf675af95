//! `precise derived`: the derived events that AMD's CodeAnalyst defines for IBS, counted in a
//! capture.
//!
//! Derived events count samples, and a sample stands for something else than one event of a
//! counter. AMD's own rule is that the two are never added, subtracted or divided. The view
//! therefore excludes counter events, and names them.
//!
//! A derived event is a number of samples with a certain outcome, and usually a part of another
//! derived event:
//!
//! ```
//! use precise_common::ibs::OutcomeBits as Bits;
//! use precise_model::{Outcome, TaggedOf, testing::CaptureBuilder};
//! use precise_views::derived::derived;
//!
//! let mut made = CaptureBuilder::new();
//! made.meta().events[0].tagged = Some(TaggedOf::Fetch);
//! for (samples, bits) in [(300, Bits::COMPLETED), (100, 0), (100, Bits::ITLB_L1_MISS)] {
//!     made.cell().samples(samples).row().outcome = Some(Outcome::Fetch(bits));
//! }
//!
//! let result = derived(&made.build(), None)?;
//!
//! let events = result.events[0].derived.iter();
//! let find = |name| events.clone().find(|e| e.abbreviation == name).expect("is in the list");
//! // A fetch that reached neither the TLB nor the cache was killed. The other 400 were attempted.
//! assert_eq!(find("IBS fetch killed").value, Some(100));
//! assert_eq!(find("IBS fetch attempt").value, Some(400));
//! // 300 of the 400 attempts were completed.
//! let completed = find("IBS fetch comp");
//! assert_eq!(completed.of, Some("IBS fetch attempt"));
//! assert_eq!(completed.share.expect("is a part").value, 0.75);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::DerivedEvents;

use precise_common::ibs::OutcomeBits as Bits;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::again::Again;
use super::stats::{MIN_SAMPLES, Samples, Share, Weight};
use super::weighing::Weighing;
use super::{ViewError, needs, trust};
use precise_model::TaggedOf;
use precise_model::digits::counted;
use precise_model::{Capture, Dimension, EventInfo, Outcome, Row};
use precise_model::{CpuId, Vendor};
use table::{Cpu, DerivedUnit, FigureEntry, TABLE};

/// The result of `precise derived`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DerivedView {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per IBS event whose samples have outcomes.
    pub events: Vec<DerivedEvent>,
    /// Derived events without samples in the capture, because it has no fetch samples or no op
    /// samples.
    pub absent: Vec<Derived>,
    /// Names of the events that are not IBS. Their counts have another basis, so they are not added
    /// to these.
    pub left_out: Vec<String>,
    /// The command that records all derived events; only if some have no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub record: Option<Again>,
}

/// The derived events of one IBS event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DerivedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples that have an outcome.
    pub samples: u64,
    /// Derived events, in the order of their numbers. Empty if there are too few samples.
    pub derived: Vec<Derived>,
    /// Number of samples that are needed. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// A derived event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Derived {
    /// Number of the event in AMD's list, for example `0xF104`.
    pub select: String,
    /// Name of the event.
    pub name: &'static str,
    /// Abbreviation of the event.
    pub abbreviation: &'static str,
    /// What the event counts.
    pub meaning: &'static str,
    /// Unit of the value: `samples` or `cycles`.
    pub unit: &'static str,
    /// The count; `None` if it is unknown.
    pub value: Option<u64>,
    /// For a count of samples: its fraction of the event named by `of`.
    pub share: Option<Share>,
    /// For a count of cycles: the average per sample of the event named by `of`.
    pub average: Option<f64>,
    /// Abbreviation of the event that this one is a part of; `None` if there is none.
    pub of: Option<&'static str>,
    /// Why the count is unknown; `None` if it is known.
    pub unknown: Option<String>,
}

const NOT_SAID: &str = "the registers of this CPU do not report it, or the capture does not name the CPU";
const BRANCHES_ONLY: &str = "the event keeps only branches, and only their outcomes";
const NO_LATENCY: &str = "the capture has no latencies of this event";
const ABSENT: &str = "the capture has no samples of this kind";

/// Returns the derived events of a capture.
///
/// # Errors
///
/// Returns an error if no sample of the capture has an outcome. The message names the command that
/// records them, or the CPU if it has no IBS.
pub fn derived(capture: &Capture, min_samples: Option<u64>) -> Result<DerivedView, ViewError> {
    let min_samples = min_samples.unwrap_or(MIN_SAMPLES);
    let cpu = cpu(capture.meta.machine.cpu_id.as_ref());
    let trust = trust::trust(capture);
    let (mut events, mut left_out, mut seen) = (Vec::new(), Vec::new(), [false; 2]);
    for (index, (info, trust)) in capture.meta.events.iter().zip(trust.events).enumerate() {
        match info.tagged {
            Some(tagged) if tagged != TaggedOf::Access && needs::has(capture, Dimension::Outcome) => {
                seen[usize::from(tagged == TaggedOf::Fetch)] = true;
                events.push(of_event(
                    capture,
                    index,
                    tagged,
                    cpu,
                    min_samples,
                    EventSummary::of(info, trust),
                ));
            }
            _ => left_out.push(info.name.clone()),
        }
    }
    if events.is_empty() {
        let machine = &capture.meta.machine;
        if machine.cpu_id.as_ref().is_some_and(|id| id.vendor == Vendor::Intel) {
            return Err(ViewError::NoIbs { cpu: machine.cpu.clone() });
        }
        return Err(ViewError::NoSuchSamples {
            view: "`precise derived`".to_owned(),
            what: "the outcomes of the ops or fetches that IBS tagged".to_owned(),
            events: left_out.join(", "),
            again: records(capture),
        });
    }
    let absent = TABLE.iter().filter(|entry| !seen[usize::from(entry.of_fetch())]);
    let absent = absent.map(|entry| Derived { unknown: Some(ABSENT.to_owned()), ..blank(entry) }).collect();
    let record = (!seen[0] || !seen[1]).then(|| both(capture));
    Ok(DerivedView { run: Run::of(capture), events, absent, left_out, record })
}

/// The dimensions for derived events.
const GROUPED: [Dimension; 4] = [Dimension::Ip, Dimension::Process, Dimension::Latency, Dimension::Outcome];

/// Returns the command that records outcomes of fetches and of ops.
fn both(capture: &Capture) -> Again {
    Again::record(capture, "fetch,ops", &GROUPED)
}

/// Returns the command that makes a capture with both kinds of outcomes, or with those that the
/// imported recording has.
fn records(capture: &Capture) -> Again {
    let ibs = capture.meta.events.iter().any(|event| event.pmu.is_ibs() && event.fields.outcome);
    Again::import(capture, &GROUPED).filter(|_| ibs).unwrap_or_else(|| both(capture))
}

fn cpu(id: Option<&CpuId>) -> Cpu {
    // If an imported file names an Intel CPU, IBS bits cannot be interpreted.
    let id = id.filter(|id| id.vendor == Vendor::Amd);
    Cpu { zen4: id.map(CpuId::ibs_tells_ccx), line_states: id.map(|id| !id.ibs_without_hitm()) }
}

fn of_event(
    capture: &Capture,
    index: usize,
    tagged: TaggedOf,
    cpu: Cpu,
    min_samples: u64,
    event: EventSummary,
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
        DerivedUnit::Nothing(why) => Err(why),
        DerivedUnit::Cycles(_) if !event.has_latency => Err(NO_LATENCY),
        DerivedUnit::Samples(test) => {
            let sum = sum(&rows, cpu, test, |sum: Samples, row| sum.and(weighing.samples(row)))?;
            Ok(Count::Samples(sum))
        }
        DerivedUnit::Cycles(test) => {
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

/// Sums over the samples that `test` accepts. Returns the reason instead if the test is undecided
/// for one of them.
fn sum<T: Default>(
    rows: &[(&Row, Bits)],
    cpu: Cpu,
    test: table::SampleTest,
    add: impl Fn(T, &Row) -> T,
) -> Result<T, &'static str> {
    rows.iter().try_fold(T::default(), |sum, (row, bits)| match test(*bits, cpu) {
        None => Err(NOT_SAID),
        Some(true) => Ok(add(sum, row)),
        Some(false) => Ok(sum),
    })
}

/// The value of a table entry.
enum Count {
    Samples(Samples),
    /// Latencies: the weighted sum, and the sum as sampled, in core cycles.
    Cycles {
        weight: Weight,
        cycles: u64,
    },
}

fn blank(entry: &FigureEntry) -> Derived {
    let of = entry.of.and_then(|select| TABLE.iter().find(|other| other.select == select));
    let cycles = matches!(entry.counts, DerivedUnit::Cycles(_)) || matches!(entry.select, 0xf101 | 0xf102);
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
    if info.ledger.filtered_total() > 0 {
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
            "In {} the source of the data is unknown (erratum 1293 of Zen 3): they are in no NB event.",
            counted(unknown, "sample")
        ));
    }
    if !fetches {
        notes.extend(about::latency_limits(info));
    }
    notes
}
