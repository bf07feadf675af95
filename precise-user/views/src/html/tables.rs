//! HTML tables. Those of a report can be sorted by their columns: with a button in the header, and
//! `aria-sort` for screen readers.

use super::element::{bar, text};
use crate::group_table::short_text;
use crate::grouping::Group;
use crate::render::number::{cycles, share, short};
use crate::report::{Report, Section};
use crate::stats::{Percentile, Share};
use precise_model::digits::thousands;
use precise_model::keys::Key;
use precise_model::values::Value;

/// Returns a table that cannot be sorted; every cell is text.
pub(crate) fn plain(caption: &str, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: String = titles.iter().map(|title| format!("<th scope=\"col\">{}</th>", text(title))).collect();
    let rows = rows.map(|cells| {
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", text(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    });
    framed(caption, &head, &rows.collect::<String>())
}

/// The kind of a column in a sortable table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Share,
    Number,
    Text,
}

impl ColumnKind {
    fn class(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Number => "n",
            Self::Text => "text",
        }
    }
}

/// A cell: its content, and the value that it is sorted by.
pub(crate) struct Cell {
    html: String,
    value: Option<f64>,
}

impl Cell {
    /// Makes a cell with a name.
    pub fn text(name: &str) -> Self {
        Self { html: text(name), value: None }
    }

    /// Makes a cell with code.
    pub fn code(code: &str) -> Self {
        Self { html: format!("<code>{}</code>", text(code)), value: None }
    }

    /// Makes a cell with a number in its displayed form.
    pub fn number(value: f64, shown: &str) -> Self {
        Self { html: text(shown), value: Some(value) }
    }

    /// Makes a cell with a share and its bar.
    pub fn share(part: &Share) -> Self {
        Self { html: bar(part) + &text(&share(part)), value: Some(part.value) }
    }

    /// Makes a cell for an unknown value.
    pub fn nothing() -> Self {
        Self { html: String::new(), value: None }
    }
}

/// Returns a sortable table. It starts sorted by its first column, descending.
pub(crate) fn sortable(
    caption: &str,
    columns: &[(ColumnKind, String)],
    rows: &[Vec<Cell>],
    rest: &str,
) -> String {
    let head = columns.iter().enumerate().map(|(at, (kind, title))| {
        let sorted = if at == 0 { " aria-sort=\"descending\"" } else { "" };
        let (class, title) = (kind.class(), text(title));
        format!("<th scope=\"col\" class=\"{class}\"{sorted}><button type=\"button\">{title}</button></th>")
    });
    let mut body = String::new();
    for row in rows {
        body += "<tr>";
        for (cell, (kind, _)) in row.iter().zip(columns) {
            let value = cell.value.map_or_else(String::new, |value| format!(" data-v=\"{value}\""));
            body += &format!("<td class=\"{}\"{value}>{}</td>", kind.class(), cell.html);
        }
        body += "</tr>\n";
    }
    if !rest.is_empty() {
        body += &format!("<tr class=\"rest\"><td colspan=\"{}\">{}</td></tr>\n", columns.len(), text(rest));
    }
    framed(caption, &head.collect::<String>(), &body)
}

/// Returns a table that scrolls by itself if it is wide, so that the page does not.
fn framed(caption: &str, head: &str, body: &str) -> String {
    let caption = text(caption);
    format!(
        "<p class=\"caption\">{caption}</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\"><table>\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}

/// Returns the tables of a capture, event by event: samples of different events are never in one
/// table.
pub(crate) fn section(reports: &[Report]) -> String {
    let mut out = String::from("<h2 id=\"tables\">Where the samples are</h2>\n");
    let events = reports.first().map_or(0, |report| report.events.len());
    for event in 0..events {
        for (at, report) in reports.iter().enumerate() {
            let Some(section) = report.events.get(event) else { continue };
            if at == 0 {
                let (name, samples) = (text(&section.event.name), thousands(section.groups.total.count));
                out += &format!("<h3>{name}: {samples} samples</h3>\n");
            }
            match section.groups.too_few {
                // One sentence is enough for all tables of an event.
                Some(needed) if at == 0 => {
                    out += &format!(
                        "<p>Too few samples to rank: at least {} are needed. Sample for longer, or more \
                         often.</p>\n",
                        thousands(needed)
                    );
                }
                Some(_) => {}
                None => out += &groups(report, section),
            }
        }
    }
    out
}

fn groups(report: &Report, section: &Section) -> String {
    let list = &section.groups.list;
    // A table with a single group that has no value tells nothing.
    let empty = |group: &Group| group.values.iter().all(|v| matches!(v, Value::NotGiven | Value::Unknown(_)));
    if list.iter().all(empty) && report.by != [Key::Function, Key::Module] {
        return String::new();
    }
    let timed = section.event.has_latency && list.iter().any(|group| group.measures.latency_max > 0);
    let ranked = list.iter().any(|group| group.p50.is_some());
    let mut columns =
        vec![(ColumnKind::Share, "Share".to_owned()), (ColumnKind::Number, "Samples".to_owned())];
    if section.event.period.is_none() {
        columns.push((ColumnKind::Number, format!("Σ {}", section.event.unit)));
    }
    if timed {
        columns.push((ColumnKind::Number, "Average".to_owned()));
    }
    if ranked {
        columns.extend(["p50", "p90", "p99"].map(|title| (ColumnKind::Number, title.to_owned())));
    }
    columns.extend(report.by.iter().map(|key| (ColumnKind::Text, key.title().to_owned())));
    let percentile =
        |p: &Option<Percentile>| p.map_or_else(Cell::nothing, |p| Cell::number(p.cycles, &cycles(p.cycles)));
    let rows: Vec<_> = list
        .iter()
        .map(|group| {
            let measures = &group.measures;
            let mut cells = vec![
                Cell::share(&group.share),
                Cell::number(measures.count as f64, &thousands(measures.count)),
            ];
            if section.event.period.is_none() {
                cells.push(Cell::number(measures.period_sum as f64, &short(measures.period_sum)));
            }
            if timed {
                cells.push(group.average.map_or_else(Cell::nothing, |a| Cell::number(a, &cycles(a))));
            }
            if ranked {
                cells.extend([&group.p50, &group.p90, &group.p99].map(percentile));
            }
            let names = group.values.iter().zip(&report.by);
            cells.extend(names.map(|(value, key)| Cell::text(&short_text(&value.label(), *key))));
            cells
        })
        .collect();
    let (more, left) = &section.groups.left_out;
    let rest = match more {
        0 => String::new(),
        more => format!("({} more, with {} samples)", thousands(*more as u64), thousands(left.count)),
    };
    let by: Vec<_> = report.by.iter().map(|key| key.title().to_lowercase()).collect();
    let unit = if timed { "; latencies in core cycles" } else { "" };
    sortable(&format!("{} by {}{unit}", section.event.name, by.join(" and ")), &columns, &rows, &rest)
}
