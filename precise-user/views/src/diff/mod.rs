//! `precise diff`: what changed between two captures, beyond sampling noise.
//!
//! A share that differs between two captures may differ by chance. `changed` tells the two apart:
//!
//! ```
//! use precise_model::{Capture, testing::CaptureBuilder};
//! use precise_views::diff::{DiffOptions, diff};
//!
//! fn capture(parse: u64, send: u64) -> Capture {
//!     let mut made = CaptureBuilder::new();
//!     made.cell().samples(parse).code(0x1000, "/bin/app", "parse", "", 0);
//!     made.cell().samples(send).code(0x2000, "/bin/app", "send", "", 0);
//!     made.build()
//! }
//!
//! // From 70 % to 50 %: noise alone causes this in less than 1 of 1,000,000 cases.
//! let result = diff(&capture(700, 300), &capture(500, 500), &DiffOptions::default())?;
//! let mut entries = result.events[0].entries.iter();
//! let parse = entries.find(|entry| entry.values[0].text() == "parse").expect("was sampled");
//! assert_eq!((parse.base.value, parse.new.value), (0.70, 0.50));
//! assert!(parse.changed && parse.p.is_some_and(|p| p < 1e-6));
//!
//! // From 70 % to 69 %: two runs of the same program often differ this much.
//! let result = diff(&capture(700, 300), &capture(690, 310), &DiffOptions::default())?;
//! assert!(result.events[0].entries.iter().all(|entry| !entry.changed));
//! # Ok::<(), precise_views::pairing::PairError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod totals;
mod view;

pub use totals::{EventTotals, Growth};
pub use view::DiffView;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::grouping::Sum;
use super::pairing::{self, PairError, Pairs};
use super::stats::{self, LatencyShift, MIN_SAMPLES, Percentile, SIGNIFICANT, Share};
use super::trust;
use precise_model::Capture;
use precise_model::digits::{counted, percent, percent_to};
use precise_model::keys::Key;
use precise_model::values::Value;

/// Options for `precise diff`.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffOptions {
    /// Group keys to compare by.
    pub by: Vec<Key>,
    /// Number of entries to keep, those that changed most first; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of samples in each of the two captures.
    pub min_samples: u64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { by: vec![Key::Function], limit: None, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise diff`: two captures compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// Where and how BASE was captured.
    pub base: Run,
    /// Where and how NEW was captured.
    pub new: Run,
    /// Group keys of the comparison.
    pub by: Vec<Key>,
    /// One entry per event that both captures have.
    pub events: Vec<EventDiff>,
    /// Events that only one capture has, and other differences between the two runs, one sentence
    /// each.
    pub notes: Vec<String>,
}

/// The comparison of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventDiff {
    /// The event in BASE.
    pub base: EventSummary,
    /// The event in NEW.
    pub new: EventSummary,
    /// Number of samples in BASE and in NEW.
    pub samples: [u64; 2],
    /// Events, length of the run and rate in BASE and in NEW.
    pub totals: [EventTotals; 2],
    /// Relative change of the number of events; `None` if neither capture has any.
    pub event_growth: Option<Growth>,
    /// Relative change of the number of events per second; `None` if a length is unknown.
    pub rate_growth: Option<Growth>,
    /// Whether shares are fractions of the events that samples stand for, because the governor
    /// changed the period in one of the captures. Otherwise shares are fractions of samples.
    pub by_events: bool,
    /// Number of samples that each capture needs. Present if one of them has fewer.
    pub too_few: Option<u64>,
    /// The overall conclusion, one sentence each.
    pub words: Vec<String>,
    /// Latencies of all samples; `None` unless both captures have them.
    pub latency: Option<LatencyDiff>,
    /// Entries by group keys: significant changes first, then by the size of the change.
    pub entries: Vec<GroupDifference>,
    /// Number of entries that the limit left out, and how many of them changed significantly.
    pub left_out: (usize, usize),
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The latencies of both captures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyDiff {
    /// Percentiles: each in percent, with its values in BASE and NEW; `None` if there are too few
    /// samples.
    pub percentiles: Vec<(f64, Option<Percentile>, Option<Percentile>)>,
    /// Probability that an access of NEW is slower than one of BASE, and the probability that noise
    /// alone causes such a shift.
    pub shift: Option<LatencyShift>,
}

/// One combination of group keys, in both captures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupDifference {
    /// One value per group key.
    pub values: Vec<Value>,
    /// Number of samples in BASE and in NEW.
    pub samples: [u64; 2],
    /// Share in BASE.
    pub base: Share,
    /// Share in NEW.
    pub new: Share,
    /// Probability that noise alone changes the share this much, corrected for the number of
    /// entries (Holm). `None` if there are too few samples for the test.
    pub p: Option<f64>,
    /// Whether the change of the share is significant: `p` is at most 5 %.
    pub changed: bool,
    /// Median latencies in BASE and in NEW, if known.
    pub p50: [Option<Percentile>; 2],
    /// The shift of latencies; `None` unless both captures have enough of them. Its `p` is
    /// corrected in the same way.
    pub latency: Option<LatencyShift>,
}

/// Compares two captures.
///
/// # Errors
///
/// Returns an error if the captures were sampled differently, have no event in common, or lack a
/// dimension.
pub fn diff(base: &Capture, new: &Capture, options: &DiffOptions) -> Result<Diff, PairError> {
    let Pairs { events: pairs, notes } = pairing::pairs(base, new, &options.by)?;
    let (trust_base, trust_new) = (trust::trust(base).events, trust::trust(new).events);
    let mut events = Vec::new();
    for (b, n) in pairs {
        let of = |capture: &Capture, index: usize, trust: &[trust::EventTrust]| {
            EventSummary::of(&capture.meta.events[index], trust[index].clone())
        };
        let pair = [of(base, b, &trust_base), of(new, n, &trust_new)];
        events.push(of_event((base, b), (new, n), pair, options));
    }
    Ok(Diff { base: Run::of(base), new: Run::of(new), by: options.by.clone(), events, notes })
}

fn of_event(
    (base, b): (&Capture, usize),
    (new, n): (&Capture, usize),
    [of_base, of_new]: [EventSummary; 2],
    options: &DiffOptions,
) -> EventDiff {
    let ((in_base, whole_base), (mut in_new, whole_new)) =
        (pairing::named(base, b, &options.by), pairing::named(new, n, &options.by));
    let samples = [whole_base.measures.count, whole_new.measures.count];
    let too_few = samples.iter().any(|count| *count < options.min_samples).then_some(options.min_samples);
    let mut pairs: Vec<(Vec<Value>, Sum, Sum)> = in_base
        .into_iter()
        .map(|(text, (values, sum))| {
            let other = in_new.remove(&text).map(|(_, sum)| sum).unwrap_or_default();
            (values, sum, other)
        })
        .collect();
    pairs.extend(in_new.into_values().map(|(values, sum)| (values, Sum::default(), sum)));
    let by_events = base.meta.events[b].governed() || new.meta.events[n].governed();
    let whole = [&whole_base, &whole_new];
    let mut entries: Vec<_> =
        pairs.into_iter().map(|(values, a, b)| entry(values, [&a, &b], whole)).collect();
    correct(&mut entries);
    let change = |e: &GroupDifference| (e.new.value - e.base.value).abs();
    let text = |e: &GroupDifference| e.values.iter().map(Value::text).collect::<Vec<_>>();
    entries.sort_by(|a, b| {
        let first = b.changed.cmp(&a.changed).then(change(b).total_cmp(&change(a)));
        first.then(b.base.value.total_cmp(&a.base.value)).then_with(|| text(a).cmp(&text(b)))
    });
    if too_few.is_some() {
        entries.clear();
    }
    let kept = options.limit.unwrap_or(entries.len()).min(entries.len());
    let left_out = (entries.len() - kept, entries[kept..].iter().filter(|e| e.changed).count());
    let latency = latency(&whole_base, &whole_new).filter(|_| too_few.is_none());
    let (totals, event_growth, rate_growth) = totals::totals((base, b, &whole_base), (new, n, &whole_new));
    let unit = totals::unit_name(&of_base.unit);
    let first = totals::words(unit, event_growth.as_ref(), rate_growth.as_ref());
    let mut words = words(&entries, latency.as_ref(), too_few.is_some(), by_events);
    words.splice(0..0, first);
    let mut notes = about::latency_limits(&base.meta.events[b]);
    if by_events {
        notes.push(
            "--overhead changed the period during a run, so shares and percentiles weigh each sample by \
             the events that it stands for."
                .to_owned(),
        );
    }
    entries.truncate(kept);
    EventDiff {
        base: of_base,
        new: of_new,
        samples,
        totals,
        event_growth,
        rate_growth,
        by_events,
        too_few,
        words,
        latency,
        entries,
        left_out,
        notes,
    }
}

fn entry(values: Vec<Value>, [base, new]: [&Sum; 2], whole: [&Sum; 2]) -> GroupDifference {
    GroupDifference {
        values,
        samples: [base.samples.count, new.samples.count],
        base: base.samples.share_of(whole[0].samples),
        new: new.samples.share_of(whole[1].samples),
        p: stats::shares((base.samples, whole[0].samples), (new.samples, whole[1].samples)),
        changed: false,
        p50: [base.percentile(0.5), new.percentile(0.5)],
        latency: base
            .histogram
            .as_ref()
            .zip(new.histogram.as_ref())
            .and_then(|(a, b)| stats::latencies(a, b)),
    }
}

/// Corrects the probabilities of all entries for their number: once among the shares, and once
/// among the latencies.
fn correct(entries: &mut [GroupDifference]) {
    let mut shares: Vec<_> = entries.iter_mut().filter_map(|e| e.p.as_mut()).collect();
    let corrected = stats::holm(&shares.iter().map(|p| **p).collect::<Vec<_>>());
    shares.iter_mut().zip(corrected).for_each(|(p, better)| **p = better);
    let mut shifts: Vec<_> = entries.iter_mut().filter_map(|e| e.latency.as_mut()).collect();
    let corrected = stats::holm(&shifts.iter().map(|shift| shift.p).collect::<Vec<_>>());
    shifts.iter_mut().zip(corrected).for_each(|(shift, better)| shift.p = better);
    for entry in entries {
        entry.changed = entry.p.is_some_and(|p| p <= SIGNIFICANT);
    }
}

fn latency(base: &Sum, new: &Sum) -> Option<LatencyDiff> {
    let (a, b) = base.histogram.as_ref().zip(new.histogram.as_ref())?;
    let percentiles = [50.0, 90.0, 99.0, 99.9];
    let of = |percent: f64| (percent, base.percentile(percent / 100.0), new.percentile(percent / 100.0));
    Some(LatencyDiff { percentiles: percentiles.map(of).to_vec(), shift: stats::latencies(a, b) })
}

/// Returns the conclusion in words, so that nobody has to remember which column is which.
fn words(
    entries: &[GroupDifference],
    latency: Option<&LatencyDiff>,
    too_few: bool,
    by_events: bool,
) -> Vec<String> {
    if too_few {
        return Vec::new();
    }
    let mut words = Vec::new();
    if let Some(LatencyDiff { percentiles, shift: Some(shift) }) = latency {
        let moved = percentiles.iter().find_map(|(percent, base, new)| {
            let (base, new) = (base.as_ref()?.cycles, new.as_ref()?.cycles);
            (base != new).then(|| format!("p{percent} is {base:.0} core cycles in BASE and {new:.0} in NEW"))
        });
        let moved = moved.unwrap_or_else(|| "all percentiles are in the same buckets".to_owned());
        let odds = percent_to(shift.slower.max(1.0 - shift.slower), 0);
        words.push(match (shift.p <= SIGNIFICANT, shift.slower > 0.5) {
            (true, slow) => format!(
                "NEW is {}: {moved}. If one access is drawn from each capture, that of NEW is the {} one \
                 in {odds} of cases.",
                if slow { "slower" } else { "faster" },
                if slow { "slower" } else { "faster" },
            ),
            (false, _) => format!("No significant change in latencies: {moved}."),
        });
    }
    let changed: Vec<_> = entries.iter().filter(|e| e.changed).collect();
    let describe = |e: &&GroupDifference| {
        let name = e.values.iter().map(Value::text).collect::<Vec<_>>().join(", ");
        format!("{name} ({} to {})", percent(e.base.value), percent(e.new.value))
    };
    for (what, more) in [("more", true), ("fewer", false)] {
        let list: Vec<_> = changed.iter().filter(|e| (e.new.value > e.base.value) == more).collect();
        if !list.is_empty() {
            let first: Vec<_> = list.iter().take(3).map(|e| describe(e)).collect();
            let rest = if list.len() > 3 {
                format!(" and {}", counted(list.len() as u64 - 3, "other"))
            } else {
                String::new()
            };
            let of = if by_events { "events" } else { "samples" };
            words.push(format!("NEW has {what} of its {of} in {}{rest}.", first.join("; ")));
        }
    }
    if changed.is_empty() {
        words.push("No significant change in shares; the differences are within sampling noise.".to_owned());
    }
    words
}
