//! The ledger and the verdict as text.

use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::percent;
use crate::render::table::{Table, TableColumn};
use crate::trust::{EventTrust, Trust};
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};

/// Formats the ledger and verdict of every event: what became of the samples, then the findings.
pub fn trust_text(trust: &Trust, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in trust.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &event_text(event, trust.events.len() > 1, options);
    }
    if !trust.notes.is_empty() {
        out += &format!("\n{}\n", options.style.paint(Tint::Heading, "Notes"));
        for note in &trust.notes {
            bullet(&mut out, note, options);
        }
    }
    out
}

fn event_text(event: &EventTrust, one_of_several: bool, options: &TextOptions) -> String {
    let style = options.style;
    let mut out = verdict_line(event, one_of_several, options);
    for finding in &event.findings {
        bullet(&mut out, finding, options);
    }
    if event.ledger.is_empty() {
        return out;
    }
    let title = format!("Ledger of {}: where the samples went", sanitize(&event.event));
    out += &format!("\n{}\n", style.paint(Tint::Heading, &title));
    let mut table = Table::new(vec![
        TableColumn::number("Samples"),
        TableColumn::number("Share"),
        TableColumn::text("What", Cut::Middle),
        TableColumn::text("Meaning", Cut::End),
    ]);
    for row in &event.ledger {
        let share = row.share.map_or_else(String::new, percent);
        table.row(vec![thousands(row.count), share, row.what.clone(), row.meaning.clone()]);
    }
    out += &table.render(options.table_width(), style);
    let closing = match (event.closes, event.coverage) {
        (true, _) => {
            "The ledger closes: every sample that the program saw is in one of these rows.".to_owned()
        }
        (false, _) => {
            format!(
                "The ledger does not close: it is off by {} of the samples that the program saw.",
                thousands(event.unaccounted.unsigned_abs())
            )
        }
    };
    out += &style.paint(if event.closes { Tint::Dim } else { Tint::Bad }, &wrap(&closing, options.width, 0));
    out.push('\n');
    if let Some(coverage) = event.coverage {
        let of_time = if event.present < 1.0 {
            format!(
                " The event counted {} of the CPUs' time; the rest is not covered.",
                percent(event.present)
            )
        } else {
            String::new()
        };
        let text = format!(
            "Coverage {}: the events that the samples account for, of those that the event counted.{of_time}",
            percent(coverage)
        );
        let tint = if event.coverage_remarkable { Tint::Warning } else { Tint::Dim };
        out += &style.paint(tint, &wrap(&text, options.width, 0));
        out.push('\n');
    }
    out
}

/// Formats the verdict in one line. The line names its event if there are several.
pub(crate) fn verdict_line(event: &EventTrust, one_of_several: bool, options: &TextOptions) -> String {
    let tint = match (event.precise, event.findings.is_empty()) {
        (false, _) => Tint::Bad,
        (true, false) => Tint::Warning,
        (true, true) => Tint::Good,
    };
    let of = if one_of_several { format!(" of {}", sanitize(&event.event)) } else { String::new() };
    let text = wrap(&format!("Verdict{of}: {}.", event.summary), options.width, 2);
    options.style.paint(tint, &text) + "\n"
}

pub(crate) fn bullet(out: &mut String, sentence: &str, options: &TextOptions) {
    *out += &wrap(&format!("* {}", sanitize(sentence)), options.width, 2);
    out.push('\n');
}
