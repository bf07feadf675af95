//! The report: rows grouped by any keys, with the uncertainty of each number.
//!
//! The share of each group has a 95 % confidence interval, because a sample is a random draw:
//!
//! ```
//! use precise_model::{keys::Key, testing::CaptureBuilder};
//! use precise_views::report::{ReportOptions, report};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(300).code(0x1000, "/bin/app", "parse", "", 0);
//! made.cell().samples(100).code(0x2000, "/bin/app", "send", "", 0);
//!
//! let by_function = ReportOptions { by: vec![Key::Function], ..ReportOptions::default() };
//! let result = report(&made.build(), &by_function)?;
//!
//! // Samples of different events are never added up, so each event has its own groups.
//! let hottest = &result.events[0].groups.list[0];
//! assert_eq!(hottest.values[0].text(), "parse");
//! // 300 of 400 samples: 75 %. In the whole run, `parse` had between 70 % and 79 % of the cycles.
//! assert_eq!(hottest.share.value, 0.75);
//! assert!(hottest.share.low > 0.70 && hottest.share.high < 0.80);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
#[cfg(test)]
mod text_tests;
mod view;

pub use view::ReportView;

use precise_common::ledger::Counter;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::grouping::{Grouping, Groups};
use super::stats::MIN_SAMPLES;
use super::trust::{self, EventTrust};
use super::{ViewError, needs};
use precise_model::digits::counted;
use precise_model::keys::{Key, Sort};
use precise_model::values::RawValue;
pub use precise_model::values::Value;
use precise_model::{Capture, EventInfo, Row};

/// Options for a report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportOptions {
    /// The group keys, outermost first; empty for one group per event.
    pub by: Vec<Key>,
    /// The measure to sort by.
    pub sort: Sort,
    /// The number of groups to keep per event; `None` keeps all.
    pub limit: Option<usize>,
    /// Filters: only rows that match all of them are counted.
    pub filters: Vec<Match>,
    /// The number of samples of an event below which groups are not ranked: [`MIN_SAMPLES`].
    pub min_samples: u64,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            by: vec![Key::Function, Key::Module],
            sort: Sort::Samples,
            limit: None,
            filters: Vec::new(),
            min_samples: MIN_SAMPLES,
        }
    }
}

/// A filter that keeps rows whose value of `key` equals `text`; for names, whose value contains it.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The key to compare.
    pub key: Key,
    /// The text to compare with.
    pub text: String,
}

/// Groups of rows, per event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// The keys that the rows are grouped by.
    pub by: Vec<Key>,
    /// The measure that the groups are sorted by.
    pub sort: Sort,
    /// The events, one section each: samples of different events are never added up.
    pub events: Vec<ReportEvent>,
}

/// The groups of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportEvent {
    /// The event, and how far the numbers can be trusted.
    #[serde(flatten)]
    pub event: EventSummary,
    /// The groups of all rows of the event that match the filters.
    #[serde(flatten)]
    pub groups: Groups,
    /// Additional notes on the numbers, besides [`EventSummary::trust`]; one sentence each.
    pub notes: Vec<String>,
}

/// Groups the rows of a capture.
pub fn report(capture: &Capture, options: &ReportOptions) -> Result<Report, ViewError> {
    let used: Vec<Key> = options.by.iter().copied().chain(options.filters.iter().map(|m| m.key)).collect();
    needs::check_keys(capture, &used)?;
    let trust = trust::trust(capture);
    let sections = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = sections.map(|(index, (info, trust))| section(capture, options, index, info, trust));
    Ok(Report { run: Run::of(capture), by: options.by.clone(), sort: options.sort, events: events.collect() })
}

fn section(
    capture: &Capture,
    options: &ReportOptions,
    index: usize,
    info: &EventInfo,
    trust: EventTrust,
) -> ReportEvent {
    let grouping = Grouping {
        capture,
        event: index,
        by: &options.by,
        sort: options.sort,
        limit: options.limit,
        min_samples: options.min_samples,
    };
    let mut wanted = Filters::new(capture, &options.filters);
    let groups = grouping.groups(|row| wanted.pass(row));
    let mut notes = Vec::new();
    let untimed = info.ledger.counter(Counter::NoLatency);
    if info.fields.latency && !grouping.weighing().buckets && untimed > 0 {
        notes.push(format!("Without latency: {}. Averages count them as 0.", counted(untimed, "sample")));
    }
    let granule = capture.meta.address_granule;
    if granule > 1 && options.by.contains(&Key::Address) {
        notes.push(format!("Addresses are multiples of {granule} bytes, as grouped by the run."));
    }
    ReportEvent { event: EventSummary::of(info, trust), groups, notes }
}

/// The filters; each distinct value is tested once.
struct Filters<'a> {
    capture: &'a Capture,
    matches: Vec<(&'a Match, FxHashMap<RawValue, bool>)>,
}

impl<'a> Filters<'a> {
    fn new(capture: &'a Capture, matches: &'a [Match]) -> Self {
        Self { capture, matches: matches.iter().map(|m| (m, FxHashMap::default())).collect() }
    }

    fn pass(&mut self, row: &Row) -> bool {
        let capture = self.capture;
        self.matches.iter_mut().all(|(wanted, seen)| {
            let atom = RawValue::of(capture, row, wanted.key);
            *seen.entry(atom).or_insert_with(|| match atom.value(capture, wanted.key) {
                Value::Text(text) => text.contains(&wanted.text),
                Value::Owned { path, name } => path.contains(&wanted.text) || name.contains(&wanted.text),
                other => other.text() == wanted.text,
            })
        })
    }
}
