//! Reports as text. A summary is made of the same parts.

use crate::group_table::{Measure, groups_table, rows_table};
use crate::render::TextOptions;
use crate::report::{Report, ReportEvent};
use crate::run_text::{header_of, legend, notes, verdict};
use precise_model::keys::Sort;

/// Explains the `±` of a share.
pub(crate) const SHARE: &str =
    "Share: share of the event's samples; in 95% of runs the true value is within ± percentage points of it.";

/// Returns a report as text: for each event its description, its table, its verdict, and an
/// explanation of the words.
pub fn report_text(report: &Report, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, section) in report.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &section_header(report, section, options);
        out.push('\n');
        out += &table(report, section, options);
        out.push('\n');
        out += &verdict(&section.event, report.events.len() > 1, options);
    }
    out + &words(&[report], options)
}

/// Returns the description of an event of a report.
pub(crate) fn section_header(report: &Report, section: &ReportEvent, options: &TextOptions) -> String {
    let groups = &section.groups;
    header_of(&report.run, &section.event, groups.total.count, groups.estimate, options)
}

/// Returns the table of an event, and notes about it.
pub(crate) fn table(report: &Report, section: &ReportEvent, options: &TextOptions) -> String {
    let table =
        groups_table(&section.groups, &report.by, &measures(report, section), &section.event.unit, options);
    // Without a ranking, notes about it are of no use.
    if section.groups.too_few.is_some() { table } else { table + &notes(&section.notes, options) }
}

/// Returns the table of an event below another one of the same event.
pub(crate) fn more(report: &Report, section: &ReportEvent, options: &TextOptions) -> String {
    rows_table(&section.groups, &report.by, &measures(report, section), &section.event.unit, options)
}

/// Returns the measures that a table shows.
fn measures(report: &Report, section: &ReportEvent) -> Vec<Measure> {
    let groups = &section.groups.list;
    let mut measures = vec![Measure::Share, Measure::Samples];
    let latency = section.event.has_latency && groups.iter().any(|g| g.measures.latency_max > 0);
    if section.event.period.is_none() || report.sort == Sort::Period {
        measures.push(Measure::Period);
    }
    if latency && report.sort == Sort::Latency {
        measures.push(Measure::LatencyShare("Latency"));
    }
    if latency {
        measures.push(Measure::Average);
    }
    if groups.iter().any(|g| g.p50.is_some()) {
        measures.extend([Measure::P50, Measure::P90, Measure::P99]);
    }
    if latency {
        measures.push(Measure::Maximum);
    }
    measures
}

/// Returns the line that explains the words of the tables.
pub(crate) fn words(reports: &[&Report], options: &TextOptions) -> String {
    let tables = reports.iter().flat_map(|r| r.events.iter().map(move |s| (*r, s)));
    let shown: Vec<_> =
        tables.filter(|(_, s)| !s.groups.list.is_empty()).map(|(r, s)| measures(r, s)).collect();
    let any = |measure| shown.iter().any(|measures| measures.contains(&measure));
    if shown.is_empty() {
        return String::new();
    }
    let mut lines = vec![SHARE];
    if any(Measure::Period) {
        lines.push(
            "The column after Samples: events that the samples stand for; in 95% of runs the \
            true value is within ± of it.",
        );
    }
    if any(Measure::LatencyShare("Latency")) {
        lines.push("Latency: share of the sum of all latencies.");
    }
    if any(Measure::P50) {
        lines.push(
            "Avg, Max: latency in core cycles. p50, p90, p99: latency that this share of the samples \
             does not exceed, within 6.3%; - if there are too few samples.",
        );
    } else if any(Measure::Average) {
        lines.push("Avg, Max: latency in core cycles.");
    }
    legend(&lines, options)
}
