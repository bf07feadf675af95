//! All that a reader without the capture needs: what stands out, whether it is true, the tables,
//! the code, the picture, and how it was made.

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

/// Columns of the picture: what a phone still shows apart.
const COLUMNS: usize = 120;
/// Panels of the picture.
const PANELS: usize = 4;
/// Groups of a table.
const GROUPS: usize = 25;
/// Functions whose code is shown, of each event.
const FUNCTIONS: usize = 3;

/// One page about a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The findings.
    pub explanation: Explanation,
    /// Ledger and verdict of every event.
    pub trust: Trust,
    /// Tables: functions and lines, then by other keys that the run recorded.
    pub reports: Vec<Report>,
    /// The hottest code; `None` where the run did not record instructions.
    pub annotation: Option<Annotation>,
    /// Samples over time, or why there is no picture.
    pub heatmap: Result<Heatmap, String>,
    /// How the capture was made.
    pub made: Made,
}

/// How a capture was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Version of `precise` that made it.
    pub producer: String,
    /// The command line.
    pub command: Vec<String>,
    /// Where.
    pub machine: Machine,
    /// Start, nanoseconds since the Unix epoch; 0 where nobody knows.
    pub start_unix_ns: u64,
}

/// The page of a capture.
///
/// # Errors
///
/// When a table has no answer.
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
