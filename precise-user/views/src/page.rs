//! The contents of the HTML page, complete for a reader without the capture: findings, verdicts,
//! tables, code, a heatmap, and how the capture was made.

use super::ViewError;
use super::annotate::{AnnotateOptions, Annotation, annotate};
use super::code::Code;
use super::explain::{ExplainOptions, Explanation, explain};
use super::heatmap::{Heatmap, HeatmapOptions, heatmap};
use super::report::{Report, ReportOptions, report};
use super::summary::summary;
use super::trust::Trust;
use precise_model::keys::Key;
use precise_model::{Capture, Dimension, Machine};

/// Columns of the heatmap. A phone can still show this many.
const COLUMNS: usize = 120;
/// Maximum number of panels of the heatmap.
const PANELS: usize = 4;
/// Number of groups in each table.
const GROUPS: usize = 25;
/// Number of functions per event whose code is shown.
const FUNCTIONS: usize = 3;

/// The contents of the HTML page about a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The findings.
    pub explanation: Explanation,
    /// The ledger and the verdict of every event.
    pub trust: Trust,
    /// Tables: by function and by line, then by other keys that the run recorded.
    pub reports: Vec<Report>,
    /// The hottest code; `None` if the run did not record instructions.
    pub annotation: Option<Annotation>,
    /// Samples over time, or the reason why there is no heatmap.
    pub heatmap: Result<Heatmap, String>,
    /// How the capture was made.
    pub made: Made,
}

/// How a capture was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Version of `precise` that made the capture.
    pub producer: String,
    /// The command line of the recording.
    pub command: Vec<String>,
    /// The machine that was sampled.
    pub machine: Machine,
    /// Start of the recording, in nanoseconds since the Unix epoch; 0 if it is unknown.
    pub start_unix_ns: u64,
}

/// Returns the contents of the HTML page about a capture.
///
/// # Errors
///
/// Returns an error if a view that provides a table cannot answer.
pub fn page(capture: &Capture, options: &ExplainOptions, files: &mut dyn Code) -> Result<Page, ViewError> {
    let shape = ReportOptions { limit: Some(GROUPS), ..ReportOptions::default() };
    let summary = summary(capture, &shape)?;
    let mut reports = summary.reports;
    let has = |d| capture.meta.dimensions.contains(&d);
    let more = [
        (Dimension::Cgroup, Key::Cgroup),
        (Dimension::Process, Key::Process),
        (Dimension::Source, Key::Level),
        (Dimension::Address, Key::Variable),
    ];
    let more = more.into_iter().filter(|(dimension, _)| has(*dimension) && has(Dimension::Ip));
    for (_, key) in more {
        reports.push(report(capture, &ReportOptions { by: vec![key], ..shape.clone() })?);
    }
    let annotated = AnnotateOptions { limit: FUNCTIONS, ..AnnotateOptions::default() };
    let annotation = if has(Dimension::Ip) { Some(annotate(capture, &annotated, files)?) } else { None };
    let picture = HeatmapOptions { max_columns: COLUMNS, max_panels: PANELS, ..HeatmapOptions::default() };
    let meta = &capture.meta;
    Ok(Page {
        explanation: explain(capture, options, files),
        trust: summary.trust,
        reports,
        annotation,
        heatmap: heatmap(capture, &picture).map_err(|error| error.to_string()),
        made: Made {
            producer: meta.producer.clone(),
            command: meta.command.clone(),
            machine: meta.machine.clone(),
            start_unix_ns: meta.start_unix_ns,
        },
    })
}
