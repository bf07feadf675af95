//! Narrowing a capture after it was read: by a filter, by time, or by both.
//!
//! The result is a capture with fewer rows, so that every view can answer its question about a
//! part of a run. Ledger and verdict stay those of the run, because the run cannot tell for which
//! part of it a sample was lost.
//!
//! A filter means the same as in `record`: [`precise_filter::eval`] evaluates it on each row. A row
//! is a sum of samples, so it may be that some of its samples pass and others do not, as with a
//! latency in the middle of a bucket. Then there is no answer, and the error names bounds that
//! work.

mod rows;
#[cfg(test)]
mod tests;
pub mod time;

use precise_filter::{Expr, FilterFlags};
use precise_model::digits::{counted, thousands, trimmed};
use precise_model::{Capture, Epoch, Projection, RowPart, Selection};

use crate::view::{NoAnswer, Why};
pub use time::TimeRange;

/// The part of a run that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedPart {
    /// The conditions on samples.
    pub flags: FilterFlags,
    /// The time; `None` for all of the run.
    pub time: Option<TimeRange>,
}

impl WantedPart {
    /// Returns whether all of the run is wanted.
    pub fn is_everything(&self) -> bool {
        self.time.is_none() && self.flags.expr().is_none()
    }

    /// Returns the parts of rows that decide which of them are wanted.
    pub fn reads(&self) -> Projection {
        let time = if self.time.is_some() { Projection::of(&[RowPart::Epoch]) } else { Projection::NOTHING };
        self.flags.expr().map_or(Projection::NOTHING, |expr| rows::reads(&expr)).and(time)
    }
}

/// Narrows a capture to the part that is wanted, and describes that part in
/// [`Meta::selection`](precise_model::Meta::selection). A capture of which everything is wanted is
/// returned unchanged.
///
/// # Errors
///
/// Returns an error if the capture cannot tell which samples are wanted, if the time is outside the
/// run, or if no sample is left.
pub fn narrow(mut capture: Capture, wanted: &WantedPart) -> Result<Capture, NoAnswer> {
    if wanted.is_everything() {
        return Ok(capture);
    }
    let of_samples = total(&capture);
    let mut selection = Selection { of_samples, ..Selection::default() };
    if let Some(range) = &wanted.time {
        in_time(&mut capture, range, &mut selection)?;
    }
    if let Some(expr) = wanted.flags.expr() {
        selection.filter = expr.to_string();
        selection.nameless = rows::keep(&mut capture, &expr)?;
    }
    selection.samples = total(&capture);
    if selection.samples == 0 {
        return Err(NoAnswer {
            why: Why::NoSamples,
            text: format!(
                "none of the {} samples of the capture is in the selection ({})",
                thousands(of_samples),
                what(&selection)
            ),
            advice: None,
        });
    }
    selection.text = sentences(&selection);
    capture.meta.selection = Some(selection);
    Ok(capture)
}

fn total(capture: &Capture) -> u64 {
    capture.rows.iter().fold(0, |sum, row| sum.saturating_add(row.measures.count))
}

/// Keeps the epochs that overlap the range, and their rows.
fn in_time(capture: &mut Capture, range: &TimeRange, selection: &mut Selection) -> Result<(), NoAnswer> {
    let meta = &mut capture.meta;
    let first = meta.epochs.iter().map(|epoch| epoch.start_ns).min().unwrap_or(0);
    let last = meta.epochs.iter().map(|epoch| epoch.end_ns).max().unwrap_or(0);
    let (from, to) = range.within(meta.start_unix_ns, first, last).map_err(NoAnswer::usage)?;
    let wanted = |epoch: &Epoch| epoch.start_ns < to && epoch.end_ns > from;
    // The new number of each epoch, if it stays.
    let mut numbers = Vec::with_capacity(meta.epochs.len());
    let mut kept = Vec::new();
    for epoch in &meta.epochs {
        numbers.push(wanted(epoch).then_some(kept.len() as u32));
        kept.extend(wanted(epoch).then_some(*epoch));
    }
    let bounds = kept.iter().map(|epoch| epoch.start_ns).min().zip(kept.iter().map(|e| e.end_ns).max());
    let Some((start_ns, end_ns)) = bounds else {
        return Err(NoAnswer::usage(format!(
            "no epoch of the capture is within --time; its epochs are from {} to {} after the start",
            seconds(first),
            seconds(last)
        )));
    };
    selection.widened = start_ns < from || end_ns > to;
    (selection.start_ns, selection.end_ns) = (Some(start_ns), Some(end_ns));
    meta.epochs = kept;
    capture.rows.retain_mut(|row| match numbers.get(row.epoch as usize).copied() {
        Some(Some(number)) => {
            row.epoch = number;
            true
        }
        Some(None) => false,
        // A row of an epoch that does not exist: the views report the damage.
        None => {
            row.epoch = u32::MAX;
            true
        }
    });
    Ok(())
}

/// Formats a time since the start of the run.
fn seconds(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", trimmed(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", trimmed(ns as f64 / 1e6)),
        _ => format!("{} s", (ns as f64 / 1e9 * 1000.0).round() / 1000.0),
    }
}

/// Returns the conditions of a selection in words.
fn what(selection: &Selection) -> String {
    let filter = (!selection.filter.is_empty()).then(|| selection.filter.clone());
    let time = selection.start_ns.zip(selection.end_ns);
    let time = time.map(|(start, end)| format!("{} to {}", seconds(start), seconds(end)));
    filter.into_iter().chain(time).collect::<Vec<_>>().join(", ")
}

fn sentences(selection: &Selection) -> String {
    let mut text = format!(
        "Only {}: {} of {} samples. Shares are of these samples; coverage and losses are of the whole run.",
        what(selection),
        thousands(selection.samples),
        thousands(selection.of_samples)
    );
    if selection.widened {
        text += " The time was widened to whole epochs.";
    }
    if selection.nameless > 0 {
        text += &format!(
            " Left out: {}, for which the name that the filter tests is not known.",
            counted(selection.nameless, "sample")
        );
    }
    text
}

/// Returns the terms of an expression, each test once.
fn tests(expr: &Expr) -> Vec<&precise_filter::TermTest> {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => parts.iter().flat_map(tests).collect(),
        Expr::Not(inner) => tests(inner),
        Expr::Test(test) => vec![test],
    }
}
