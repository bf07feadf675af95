//! Heatmaps: samples over time against latency, address or function, with one panel per cgroup.
//!
//! Every sample of the chosen events is in exactly one cell of one panel. Samples that have no
//! place on the axis (without latency, or in a function outside the top) are in a row of their own
//! below it, so the cells add up to the capture.
//!
//! Time runs from left to right, so a heatmap shows when something happened:
//!
//! ```
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::heatmap::{Axis, HeatmapOptions, YAxis, heatmap};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().epoch(0).samples(100).code(0x1000, "/bin/app", "serve", "", 0);
//! made.cell().epoch(1).samples(40).code(0x1000, "/bin/app", "serve", "", 0);
//! made.cell().epoch(1).samples(60).code(0x2000, "/bin/app", "compact", "", 0);
//!
//! let options = HeatmapOptions { y: YAxis::Function, ..HeatmapOptions::default() };
//! let map = heatmap(&made.build(), &options)?;
//!
//! // The lowest row comes first; the function with the most samples is the highest.
//! assert!(matches!(&map.axis, Axis::Function { names } if names == &["compact", "serve"]));
//! let (panel, compact, serve) = (&map.panels[0], 0, 1);
//! // In the second second, `compact` starts, and `serve` gets less than half of its cycles.
//! assert_eq!([map.cell(panel, 0, serve), map.cell(panel, 1, serve)], [100, 40]);
//! assert_eq!([map.cell(panel, 0, compact), map.cell(panel, 1, compact)], [0, 60]);
//! // Every sample is in exactly one cell.
//! assert_eq!(panel.cells.iter().sum::<u64>(), 200);
//! # Ok::<(), precise_views::heatmap::HeatmapError>(())
//! ```

pub mod json;
pub mod layout;
mod page;
mod panels;
pub(crate) mod placed;
pub mod plot;
#[cfg(test)]
pub(crate) mod plot_tests;
mod rows;
pub mod svg;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::{Drawing, HeatmapView};

use std::borrow::Cow;

use precise_common::ledger::Counter;
use rustc_hash::FxHashMap;

use crate::about::Run;
use crate::again::Again;
use crate::{needs, trust};
use precise_model::digits::{counted, percent, thousands};
use precise_model::keys::Key;
use precise_model::{Capture, CompactSort as _, CpuGap, Dimension, Epoch, EventInfo, Ledger, Row};

pub use rows::{AddressRange, Axis, RangeBase};

/// The default number of columns: each is at least four pixels wide in a picture of the default
/// width.
pub const DEFAULT_COLUMNS: usize = 240;
/// The default number of rows, for latencies and addresses.
pub const DEFAULT_ROWS: usize = 96;
/// The default number of functions that have a row of their own.
pub const DEFAULT_FUNCTIONS: usize = 20;
/// The default number of functions if there are more than two panels, so that the picture stays on
/// a page or two.
pub const DEFAULT_FUNCTIONS_MANY_PANELS: usize = 10;
/// The default number of panels.
pub const DEFAULT_PANELS: usize = 8;

/// The quantity on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum YAxis {
    /// Latency if the capture has one, else addresses, else functions.
    #[default]
    Auto,
    /// Latency in core cycles, logarithmic.
    Latency,
    /// Data addresses in the densest ranges, linear.
    Address,
    /// The functions with the most samples.
    Function,
    /// The types of the accessed objects with the most samples.
    Type,
    /// The fields of the accessed objects with the most samples.
    Field,
}

impl YAxis {
    /// Returns the group keys whose values are on the axis. Empty for an axis that is no group key.
    pub const fn keys(self) -> &'static [Key] {
        match self {
            Self::Type => &[Key::Type],
            Self::Field => &[Key::Field],
            Self::Auto | Self::Latency | Self::Address | Self::Function => &[],
        }
    }
}

/// The dimension that gets one panel per value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PanelBy {
    /// Cgroups if one event is drawn, else events.
    #[default]
    Auto,
    /// Cgroups.
    Cgroup,
    /// Process ids.
    Process,
    /// Events.
    Event,
    /// One panel for everything.
    None,
}

/// Options for a heatmap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatmapOptions {
    /// The vertical axis.
    pub y: YAxis,
    /// The dimension that gets one panel per value.
    pub panels: PanelBy,
    /// The largest number of panels, at least 1. The smallest panels beyond it are merged into one.
    pub max_panels: usize,
    /// The name of the event to draw; `None` draws all events.
    pub event: Option<String>,
    /// The largest number of columns, at least 1.
    pub max_columns: usize,
    /// The largest number of rows on the axis, without the rows for samples that have no place on
    /// it; `None` for the default of the axis.
    pub max_rows: Option<usize>,
}

impl Default for HeatmapOptions {
    fn default() -> Self {
        Self {
            y: YAxis::Auto,
            panels: PanelBy::Auto,
            max_panels: DEFAULT_PANELS,
            event: None,
            max_columns: DEFAULT_COLUMNS,
            max_rows: None,
        }
    }
}

/// The note on the unit of cells if the governor changed the period.
pub const EVENED: &str = "--overhead changed the period during the run: cells show the number of \
    samples that the shortest period would have given.";

/// The reason why there is no heatmap, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeatmapError {
    /// There are no samples to draw. The text says where they went, as far as the ledger knows.
    #[error("The capture has no samples{of}, so there is no heatmap to draw.{went}")]
    Empty {
        /// " of event …", or empty.
        of: String,
        /// A sentence with a leading blank, or empty.
        went: String,
    },
    /// The capture does not have the requested event.
    #[error("The capture has no event {wanted:?}; its events: {present}.")]
    NoSuchEvent {
        /// The requested name.
        wanted: String,
        /// The events that the capture has.
        present: String,
    },
    /// Samples of several events cannot be added up in one cell.
    #[error(
        "The capture has several events ({present}), whose samples cannot be added up. Choose one \
         event, or draw a panel per event."
    )]
    SeveralEvents {
        /// The events that the capture has.
        present: String,
    },
    /// The samples have no values for the requested axis.
    #[error("No sample{of} has {what}, so it cannot be the vertical axis; {why}.")]
    NoValues {
        /// " of event …", or empty.
        of: String,
        /// The missing value: "a latency", …
        what: &'static str,
        /// What to do about it.
        why: &'static str,
    },
    /// The capture did not record what the panels are to be made of.
    #[error("There cannot be one panel per {what}, because the capture did not record it. {again}")]
    NoPanels {
        /// The dimension.
        what: &'static str,
        /// The command that makes a capture with it.
        again: Again,
    },
    /// A row of the capture refers to an epoch or event that does not exist.
    #[error("The capture is damaged: a row refers to {what} {index}, but there are only {present}.")]
    Damaged {
        /// "epoch" or "event".
        what: &'static str,
        /// The index in the row.
        index: u64,
        /// The number of epochs or events that exist.
        present: usize,
    },
}

/// A heatmap: samples over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// Where and how the samples were taken.
    pub header: Header,
    /// The time axis, in order of time. Columns may differ in length, and there may be gaps between
    /// them.
    pub columns: Vec<TimeColumn>,
    /// The vertical axis. Its rows come first in every panel, the lowest first.
    pub axis: Axis,
    /// The names of the rows after those of the axis, for samples that have no place on it.
    pub rest: Vec<String>,
    /// The panels, most samples first, "others" last.
    pub panels: Vec<Panel>,
    /// The number of samples in the fullest cell of all panels: the end of the colour scale, which
    /// all panels share.
    pub max_cell: u64,
}

/// The description of the run that belongs to the numbers.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Header {
    /// The host name.
    pub host: String,
    /// The names of the events drawn.
    pub events: Vec<String>,
    /// What was sampled, in words.
    pub target: String,
    /// The filter as the user wrote it; empty if there was none.
    pub filter: String,
    /// The time from the start of the first epoch to the end of the last one, in nanoseconds.
    pub duration_ns: u64,
    /// When the run was: "2026-11-23 14:03:10 to 14:03:40 UTC"; `None` if that is not known.
    pub when: Option<String>,
    /// The number of samples in all panels.
    pub samples: u64,
    /// Whether the governor changed the period. If so, [`EVENED`] says what cells count.
    pub evened: bool,
    /// Whether the samples were precise: one line per event.
    pub verdict: Vec<String>,
    /// Notes for the reader: coverage, unequal columns, notes of the capture.
    pub notes: Vec<String>,
    /// The stretches of time in which an event did not count on a CPU, because the CPU was offline.
    pub gaps: Vec<CpuGap>,
    /// The number of CPUs on which the events count; 0 if it is not known.
    pub cpus: u64,
}

/// A column of the time axis: one epoch, or several in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeColumn {
    /// The start, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// The end, in nanoseconds since the start of the run; later than `start_ns`.
    pub end_ns: u64,
    /// The number of epochs in the column.
    pub epochs: usize,
}

/// A panel: one cgroup, process or event.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title. It comes from the capture, so a renderer must expect any text.
    pub title: String,
    /// The number of samples in the panel.
    pub samples: u64,
    /// The sum of the cells. It differs from `samples` if the governor changed the period.
    pub weight: u64,
    /// Samples per cell, row by row from the lowest: `cells[row * columns + column]`. 0 is a cell
    /// without samples. If the governor changed the period: the number of samples that the shortest
    /// of its periods would have given.
    pub cells: Vec<u64>,
}

impl Heatmap {
    /// Returns the number of rows of every panel: those of the axis and the rest.
    pub fn rows(&self) -> usize {
        self.axis.rows() + self.rest.len()
    }

    /// Returns the samples of one cell; 0 outside the panel.
    pub fn cell(&self, panel: &Panel, column: usize, row: usize) -> u64 {
        if column >= self.columns.len() {
            return 0;
        }
        panel.cells.get(row * self.columns.len() + column).copied().unwrap_or(0)
    }

    /// Returns whether no CPU was sampled in a column.
    pub fn is_dark(&self, column: &TimeColumn) -> bool {
        let overlap =
            |gap: &CpuGap| gap.end_ns.min(column.end_ns).saturating_sub(gap.start_ns.max(column.start_ns));
        let Header { gaps, cpus, .. } = &self.header;
        let absent = gaps.iter().map(|gap| u128::from(overlap(gap))).sum::<u128>();
        let whole = u128::from(column.end_ns.saturating_sub(column.start_ns)) * u128::from(*cpus);
        whole > 0 && 100 * absent >= 99 * whole
    }

    /// Returns the start of the first and the end of the last column, in nanoseconds since the
    /// start of the run.
    pub fn span(&self) -> (u64, u64) {
        let start = self.columns.first().map_or(0, |c| c.start_ns);
        (start, self.columns.iter().map(|c| c.end_ns).max().unwrap_or(start + 1).max(start + 1))
    }
}

/// Returns the heatmap of a capture.
pub fn heatmap(capture: &Capture, options: &HeatmapOptions) -> Result<Heatmap, HeatmapError> {
    let events = chosen_events(capture, options)?;
    let panel_by = panel_by(capture, options, &events)?;
    let of = options.event.as_ref().map_or(String::new(), |name| format!(" of event {name:?}"));
    let (mut rows, mut taken) = (Vec::new(), Vec::new());
    let even = evened(capture);
    for (row, even) in capture.rows.iter().zip(even.iter()) {
        check(row, capture)?;
        if row.measures.count > 0 && events.contains(&usize::from(row.event)) {
            rows.push(even);
            taken.push(row.measures.count);
        }
    }
    if rows.is_empty() {
        return Err(HeatmapError::Empty {
            of,
            went: where_they_went(events.iter().map(|&e| &capture.meta.events[e])),
        });
    }

    recorded(capture, &rows, options.panels)?;
    let (columns, column_of) = columns(capture, options.max_columns.max(1));
    let (titles, panel_of) = panels::panels(capture, &rows, panel_by, options.max_panels.max(1));
    let functions = if titles.len() > 2 { DEFAULT_FUNCTIONS_MANY_PANELS } else { DEFAULT_FUNCTIONS };
    let placed = rows::place(capture, &rows, options.y, options.max_rows, functions, &of)?;

    let height = placed.axis.rows() + placed.rest.len();
    let mut panels: Vec<Panel> = titles
        .into_iter()
        .map(|title| Panel { title, samples: 0, weight: 0, cells: vec![0; height * columns.len()] })
        .collect();
    for (i, row) in rows.iter().enumerate() {
        let panel = &mut panels[panel_of[i]];
        let cell = placed.row_of[i] * columns.len() + column_of[row.epoch as usize];
        panel.cells[cell] = panel.cells[cell].saturating_add(row.measures.count);
        panel.samples = panel.samples.saturating_add(taken[i]);
        panel.weight = panel.weight.saturating_add(row.measures.count);
    }
    let max_cell = panels.iter().flat_map(|p| &p.cells).copied().max().unwrap_or(0);
    let mut heatmap = Heatmap {
        header: Header::default(),
        columns,
        axis: placed.axis,
        rest: placed.rest,
        panels,
        max_cell,
    };
    heatmap.header = header(capture, &events, &heatmap);
    Ok(heatmap)
}

/// Checks that the capture has what the panels are to be made of. `Auto` takes what there is.
fn recorded(capture: &Capture, rows: &[&Row], by: PanelBy) -> Result<(), HeatmapError> {
    let has = |dimension| capture.meta.dimensions.contains(&dimension);
    let (what, present) = match by {
        PanelBy::Cgroup => (Dimension::Cgroup, rows.iter().any(|row| row.cgroup_id != 0)),
        PanelBy::Process => (Dimension::Process, rows.iter().any(|row| row.pid != 0)),
        PanelBy::Auto | PanelBy::Event | PanelBy::None => return Ok(()),
    };
    match needs::again(capture, what).filter(|_| !present && !has(what)) {
        Some(again) => Err(HeatmapError::NoPanels { what: what.as_str(), again }),
        None => Ok(()),
    }
}

/// Returns the rows, each with the number of samples that it would have if the governor had kept
/// the shortest period that it chose. Otherwise every change of the period would look like a change
/// of the workload.
fn evened(capture: &Capture) -> Cow<'_, [Row]> {
    if !capture.meta.events.iter().any(EventInfo::governed) {
        return Cow::Borrowed(&capture.rows);
    }
    let each = |row: &Row| row.measures.period_sum as f64 / row.measures.count.max(1) as f64;
    let mut shortest: FxHashMap<u16, f64> = FxHashMap::default();
    for row in capture.rows.iter().filter(|row| row.measures.period_sum > 0) {
        let least = shortest.entry(row.event).or_insert(f64::INFINITY);
        *least = least.min(each(row));
    }
    let mut rows = capture.rows.clone();
    for row in &mut rows {
        let governed = capture.meta.events.get(usize::from(row.event)).is_some_and(EventInfo::governed);
        if let (true, Some(shortest)) = (governed, shortest.get(&row.event)) {
            let count = (row.measures.period_sum as f64 / shortest).round() as u64;
            row.measures.count = count.max(row.measures.count.min(1));
        }
    }
    Cow::Owned(rows)
}

/// Returns the indices of the events to draw.
fn chosen_events(capture: &Capture, options: &HeatmapOptions) -> Result<Vec<usize>, HeatmapError> {
    let all = &capture.meta.events;
    let Some(wanted) = &options.event else { return Ok((0..all.len()).collect()) };
    let chosen: Vec<usize> = (0..all.len()).filter(|&e| all[e].name == *wanted).collect();
    if chosen.is_empty() {
        let present = if all.is_empty() { "none".to_owned() } else { names(all.iter()) };
        return Err(HeatmapError::NoSuchEvent { wanted: wanted.clone(), present });
    }
    Ok(chosen)
}

fn names<'a>(events: impl Iterator<Item = &'a EventInfo>) -> String {
    events.map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Resolves [`PanelBy::Auto`], and returns an error if different events would be added up.
fn panel_by(capture: &Capture, options: &HeatmapOptions, events: &[usize]) -> Result<PanelBy, HeatmapError> {
    let used = |e: &&usize| capture.rows.iter().any(|r| usize::from(r.event) == **e && r.measures.count > 0);
    match options.panels {
        PanelBy::Event => Ok(PanelBy::Event),
        by => {
            let several = events.iter().filter(used).count() > 1;
            match by {
                PanelBy::Auto => Ok(if several { PanelBy::Event } else { PanelBy::Cgroup }),
                _ if several => Err(HeatmapError::SeveralEvents {
                    present: names(events.iter().map(|&e| &capture.meta.events[e])),
                }),
                _ => Ok(by),
            }
        }
    }
}

fn check(row: &Row, capture: &Capture) -> Result<(), HeatmapError> {
    let (epochs, events) = (capture.meta.epochs.len(), capture.meta.events.len());
    if row.epoch as usize >= epochs {
        return Err(HeatmapError::Damaged { what: "epoch", index: row.epoch.into(), present: epochs });
    }
    if usize::from(row.event) >= events {
        return Err(HeatmapError::Damaged { what: "event", index: row.event.into(), present: events });
    }
    Ok(())
}

/// Returns a sentence, with a leading blank, that says where the samples of an empty capture went.
fn where_they_went<'a>(events: impl Iterator<Item = &'a EventInfo>) -> String {
    let (mut seen, mut rejected) = (0u64, 0u64);
    for event in events {
        seen = seen.saturating_add(event.ledger.counter(Counter::Seen));
        rejected = rejected.saturating_add(event.ledger.filtered_total());
    }
    match (seen, rejected) {
        (0, _) => String::new(),
        (s, 0) => format!(" The program saw {} and kept none; the ledger tells why.", counted(s, "sample")),
        (s, r) => format!(
            " The program saw {} and the filter rejected {} of them.",
            counted(s, "sample"),
            thousands(r)
        ),
    }
}

/// Returns whether all epochs but the last have about the same length, without gaps between them.
fn equally_long(epochs: &[Epoch], span: u64) -> bool {
    let length = |epoch: &Epoch| epoch.end_ns.saturating_sub(epoch.start_ns);
    let mut lengths: Vec<u64> = epochs.iter().map(length).collect();
    lengths.compact_sort();
    let (Some(median), Some(longest)) = (lengths.get(lengths.len() / 2), lengths.last()) else { return true };
    let second = lengths.get(1).unwrap_or(median);
    let covered = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
    let near = |length: u64| length.abs_diff(*median) <= median / 8;
    near(*longest) && near(*second) && span.abs_diff(covered) <= *median
}

/// Returns the time axis, and the column of each epoch. An epoch is never split, because its
/// samples cannot be.
fn columns(capture: &Capture, most: usize) -> (Vec<TimeColumn>, Vec<usize>) {
    let epochs = &capture.meta.epochs;
    let mut order: Vec<usize> = (0..epochs.len()).collect();
    order.compact_sort_by_key(|&e| epochs[e].start_ns);
    let start = order.first().map_or(0, |&e| epochs[e].start_ns);
    let end = epochs.iter().map(|e| e.end_ns).max().unwrap_or(0).max(start.saturating_add(1));
    // If all epochs fit, each gets a column. Otherwise, columns of equally long epochs have the
    // same number of them: a column with one epoch more than its neighbours would look like a
    // stripe of more samples. Of unequal epochs, each belongs to the equal step of time in which it
    // starts.
    let each = epochs.len().div_ceil(most).max(1);
    let regular = equally_long(epochs, end - start);
    let step = |position: usize, begin: u64| -> usize {
        if epochs.len() <= most || regular {
            position / each
        } else {
            let step = u128::from(begin - start) * most as u128 / u128::from(end - start);
            (step as usize).min(most - 1)
        }
    };
    let mut columns: Vec<TimeColumn> = Vec::new();
    let mut column_of = vec![0; epochs.len()];
    let mut last = None;
    for (position, &e) in order.iter().enumerate() {
        let epoch = epochs[e];
        let end_ns = epoch.end_ns.max(epoch.start_ns.saturating_add(1));
        let here = step(position, epoch.start_ns);
        match columns.last_mut() {
            Some(column) if last == Some(here) => {
                column.end_ns = column.end_ns.max(end_ns);
                column.epochs += 1;
            }
            _ => columns.push(TimeColumn { start_ns: epoch.start_ns, end_ns, epochs: 1 }),
        }
        last = Some(here);
        column_of[e] = columns.len() - 1;
    }
    (columns, column_of)
}

fn header(capture: &Capture, events: &[usize], heatmap: &Heatmap) -> Header {
    let meta = &capture.meta;
    let (start, end) = heatmap.span();
    let several = events.len() > 1;
    let mut verdict = Vec::new();
    let mut notes = Vec::new();
    for &e in events {
        let event = &meta.events[e];
        let of = if several { format!("{}: ", event.name) } else { String::new() };
        verdict.push(format!("{of}{}", verdict_line(event)));
        if let Some(coverage) = event.ledger.delivered()
            && (coverage - 1.0).abs() > 0.02
        {
            notes.push(format!("{of}The samples account for {} of the counted events.", percent(coverage)));
        }
    }
    let mut gaps: Vec<CpuGap> =
        events.iter().flat_map(|&e| meta.events[e].ledger.gaps.iter().copied()).collect();
    gaps.compact_sort_by_key(|gap| (gap.start_ns, gap.cpu));
    // The events of a run are opened and closed together, but not at the same nanosecond.
    gaps.dedup_by(|next, gap| gap.cpu == next.cpu && next.start_ns < gap.end_ns);
    notes.extend(trust::offline(&gaps));
    let evened = events.iter().any(|&e| meta.events[e].governed());
    if evened {
        notes.push(EVENED.to_owned());
    }
    let mut lengths: Vec<u64> = heatmap.columns.iter().map(|c| c.end_ns - c.start_ns).collect();
    lengths.compact_sort();
    if let (Some(&shortest), Some(&longest)) = (lengths.first(), lengths.last())
        && longest as f64 > 1.5 * lengths[lengths.len() / 2] as f64
    {
        let (from, to) = (shortest as f64 / 1e9, longest as f64 / 1e9);
        notes
            .push(format!("Columns last {from:.3} to {to:.3} s, and a longer column collects more samples."));
    }
    notes.extend(meta.notes.iter().cloned());
    Header {
        host: meta.machine.host.clone(),
        events: events.iter().map(|&e| meta.events[e].name.clone()).collect(),
        target: meta.target.clone(),
        filter: meta.filter.clone(),
        duration_ns: end - start,
        when: Run::of(capture).when(),
        samples: heatmap.panels.iter().fold(0, |sum, p| sum.saturating_add(p.samples)),
        evened,
        verdict,
        notes,
        gaps,
        cpus: events.first().map_or(0, |&e| cpus(&meta.events[e].ledger, end)),
    }
}

/// Returns the number of CPUs on which an event counts in a run that lasts until `end_ns`.
fn cpus(ledger: &Ledger, end_ns: u64) -> u64 {
    let whole = ledger.enabled_ns.saturating_add(ledger.gap_ns()) as f64;
    (whole / end_ns.max(1) as f64).round() as u64
}

/// Returns "precise samples", or the reason why they are not.
fn verdict_line(event: &EventInfo) -> String {
    let verdict = &event.verdict;
    let word = if verdict.precise { "precise" } else { "not precise" };
    // A picture has room for one finding; the report shows all of them.
    match (verdict.findings.first(), verdict.precise) {
        (Some(finding), false) if finding.contains("not precise") => finding.clone(),
        (Some(finding), _) => format!("{word}: {finding}"),
        (None, true) => "precise samples".to_owned(),
        (None, false) => format!("{word}: the kernel granted precision level {}.", verdict.granted),
    }
}
