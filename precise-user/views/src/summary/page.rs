//! Tables on the HTML page: by function and by line, then by other keys that the run recorded.

use super::following::Following;
use super::summary;
use crate::ViewError;
use crate::about::EventSummary;
use crate::group_table::short_text;
use crate::grouping::Group;
use crate::idle;
use crate::loss::Loss;
use crate::markup::tables::{ColumnKind, HtmlCell, following_table};
use crate::markup::text;
use crate::render::number::{cycles, short};
use crate::report::{Report, ReportEvent, ReportOptions, report};
use crate::stats::Percentile;
use crate::view::{Section, SectionNumbers, SectionPlace};
use precise_model::digits::{counted, thousands};
use precise_model::keys::Key;
use precise_model::text::ending;
use precise_model::values::Value;
use precise_model::{Capture, Dimension};

/// Number of groups in each table.
const GROUPS: usize = 25;

/// Returns the section of the page.
pub(super) fn section(capture: &Capture) -> Result<Section, ViewError> {
    let shape = ReportOptions { limit: Some(GROUPS), ..ReportOptions::default() };
    let summary = summary(capture, &shape)?;
    let mut reports = summary.reports;
    let has = |d| capture.meta.dimensions.contains(&d);
    let shown: Vec<Vec<Key>> = reports.iter().map(|report| report.by.clone()).collect();
    let more = [
        (Dimension::Cgroup, Key::Cgroup),
        (Dimension::Process, Key::Process),
        (Dimension::Source, Key::Level),
        (Dimension::Address, Key::Variable),
    ];
    let more = more.into_iter().filter(|(dimension, _)| has(*dimension) && has(Dimension::Ip));
    let more = more.filter(|(_, key)| !shown.contains(&vec![*key]));
    for (_, key) in more {
        reports.push(report(capture, &ReportOptions { by: vec![key], ..shape.clone() })?);
    }
    let notes = summary.notes.iter().map(|note| format!("<p class=\"soft\">{}</p>\n", text(&ending(note))));
    let mut following = Following::new(capture);
    let body = tables(&reports, &mut following) + &notes.collect::<String>();
    let numbers = following
        .and_then(|following| serde_json::to_string(&following).ok())
        .map(|json| SectionNumbers { id: "tables-data", json });
    Ok(Section { id: "tables", title: "Where the samples are", place: SectionPlace::Tables, body, numbers })
}

/// Returns the tables, event by event: samples of different events are never in one table.
fn tables(reports: &[Report], following: &mut Option<Following<'_>>) -> String {
    let mut out = String::new();
    let events = reports.first().map_or(0, |report| report.events.len());
    for event in 0..events {
        for (at, report) in reports.iter().enumerate() {
            let Some(section) = report.events.get(event) else { continue };
            if at == 0 {
                let samples = counted(section.groups.total.count, "sample");
                out += &format!("<h3>{}: {samples}</h3>\n", text(&section.event.name));
                out += &above(&section.event);
            }
            // One sentence is enough for all tables of an event.
            if let Some(needed) = section.groups.too_few.filter(|_| at == 0) {
                out += &format!(
                    "<p>Too few samples to rank: the rows are in no reliable order, for which at least {} are \
                     needed. Sample for longer, or more often.</p>\n",
                    thousands(needed)
                );
            }
            let number = following.as_mut().and_then(|following| following.add(report, event, section));
            out += &groups(report, section, number);
        }
    }
    out
}

/// Returns what a reader must know before the tables: idle CPUs, and lost samples.
fn above(event: &EventSummary) -> String {
    let idle = event.idle.as_ref().map(idle::sentence);
    let loss = event.trust.loss.as_ref().map(Loss::sentence);
    idle.into_iter().chain(loss).map(|sentence| format!("<p>{}</p>\n", text(&sentence))).collect()
}

fn groups(report: &Report, section: &ReportEvent, number: Option<usize>) -> String {
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
    let percentile = |p: &Option<Percentile>| {
        p.map_or_else(HtmlCell::nothing, |p| HtmlCell::number(p.cycles, &cycles(p.cycles)))
    };
    let rows: Vec<_> = list
        .iter()
        .map(|group| {
            let measures = &group.measures;
            let mut cells = vec![
                HtmlCell::share(&group.share),
                HtmlCell::number(measures.count as f64, &thousands(measures.count)),
            ];
            if section.event.period.is_none() {
                cells.push(HtmlCell::number(measures.period_sum as f64, &short(measures.period_sum)));
            }
            if timed {
                cells.push(group.average.map_or_else(HtmlCell::nothing, |a| HtmlCell::number(a, &cycles(a))));
            }
            if ranked {
                cells.extend([&group.p50, &group.p90, &group.p99].map(percentile));
            }
            let names = group.values.iter().zip(&report.by);
            cells.extend(names.map(|(value, key)| HtmlCell::text(&short_text(&value.label(), *key))));
            cells
        })
        .collect();
    let (more, left) = &section.groups.left_out;
    let rest = match more {
        0 => String::new(),
        more => format!("({} more, with {})", thousands(*more as u64), counted(left.count, "sample")),
    };
    let by: Vec<_> = report.by.iter().map(|key| key.title().to_lowercase()).collect();
    let unit = if timed { "; latencies in core cycles" } else { "" };
    let caption = format!("{} by {}{unit}", section.event.name, by.join(", "));
    following_table(&caption, &columns, &rows, &rest, number)
}
