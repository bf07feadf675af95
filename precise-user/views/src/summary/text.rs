//! Summaries as text.

use super::Summary;
use crate::render::TextOptions;
use crate::report::text::{more, section_header, table, words};
use crate::run_text::notes;
use crate::trust_text::trust_text;

/// Returns the text at the end of a run: for each event its tables, then the ledger and the
/// verdict.
pub fn summary_text(summary: &Summary, options: &TextOptions) -> String {
    let mut out = String::new();
    let events = summary.reports.first().map_or(0, |report| report.events.len());
    for event in 0..events {
        for (i, report) in summary.reports.iter().enumerate() {
            let Some(section) = report.events.get(event) else { continue };
            if i == 0 {
                out += &section_header(report, section, options);
            }
            out.push('\n');
            // One warning about too few samples is enough for all tables of an event.
            out += &if i == 0 { table(report, section, options) } else { more(report, section, options) };
        }
        out.push('\n');
    }
    out += &notes(&summary.notes, options);
    if !summary.notes.is_empty() {
        out.push('\n');
    }
    out += &trust_text(&summary.trust, options);
    out + &words(&summary.reports.iter().collect::<Vec<_>>(), options)
}
