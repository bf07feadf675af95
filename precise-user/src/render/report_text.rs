//! Reports and summaries as text.

use super::TextOptions;
use super::number::{cycles, duration, percent, share, short, thousands};
use super::style::Tint;
use super::table::{Column, Table};
use super::text::{Cut, sanitize, wrap};
use super::trust_text::{bullet, trust_text, verdict_line};
use crate::views::keys::{Key, Sort};
use crate::views::report::{Group, Report, Section, Value};
use crate::views::stats::{Percentile, Share};
use crate::views::summary::Summary;

/// One report: for each event what was sampled, its table, its verdict, and what the words mean.
pub fn report_text(report: &Report, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, section) in report.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(report, section, options);
        out.push('\n');
        out += &table(report, section, options);
        out.push('\n');
        out += &verdict_line(&section.trust, options);
        for finding in &section.trust.findings {
            bullet(&mut out, finding, options);
        }
    }
    out + &legend(&[report], options)
}

/// The end of a run: for each event its tables, then ledger and verdict.
pub fn summary_text(summary: &Summary, options: &TextOptions) -> String {
    let mut out = String::new();
    let events = summary.reports.first().map_or(0, |report| report.events.len());
    for event in 0..events {
        for (i, report) in summary.reports.iter().enumerate() {
            let Some(section) = report.events.get(event) else { continue };
            if i == 0 {
                out += &header(report, section, options);
            }
            // One sentence about too few samples is enough for all tables of an event.
            if i == 0 || section.too_few.is_none() {
                out.push('\n');
                out += &table(report, section, options);
            }
        }
        out.push('\n');
    }
    out += &trust_text(&summary.trust, options);
    out + &legend(&summary.reports.iter().collect::<Vec<_>>(), options)
}

/// What was sampled: event, period, duration, target.
fn header(report: &Report, section: &Section, options: &TextOptions) -> String {
    let width = options.width;
    let mut title = sanitize(&section.event);
    if !section.encoding.is_empty() && section.encoding != section.event {
        title += &format!("  ({})", sanitize(&section.encoding));
    }
    let mut out = options.style.paint(Tint::Heading, &wrap(&title, width, 2));
    let unit = if section.unit.is_empty() { "events".to_owned() } else { sanitize(&section.unit) };
    let rate = match (section.period, section.frequency) {
        (Some(1), _) => format!("every one of the {unit}"),
        (Some(period), _) => format!("one sample per {} {unit}", thousands(period)),
        (None, Some(frequency)) => format!("about {} samples per second and CPU", thousands(frequency)),
        (None, None) => "at a varying period".to_owned(),
    };
    let mut line = format!(
        "{} samples, {rate}, {} of {}",
        thousands(section.total.count),
        duration(report.duration_ns),
        sanitize(&report.target),
    );
    if !report.host.is_empty() {
        line += &format!(" on {}", sanitize(&report.host));
    }
    out += &format!("\n{}\n", wrap(&line, width, 2));
    if !report.filter.is_empty() {
        out += &format!("{}\n", wrap(&format!("Filter: {}", sanitize(&report.filter)), width, 2));
    }
    out
}

fn table(report: &Report, section: &Section, options: &TextOptions) -> String {
    if let Some(needed) = section.too_few {
        let have = section.total.count;
        let text = format!(
            "Too few samples to rank: {} of the {} that are needed to tell entries apart. \
             Sample for longer, or more often.",
            thousands(have),
            thousands(needed),
        );
        return options.style.paint(Tint::Warning, &wrap(&text, options.width, 0)) + "\n";
    }
    let shown = Shown::of(report, section);
    let mut table = Table::new(shown.columns(report, section));
    for group in &section.groups {
        table.row(shown.cells(group));
    }
    let (groups, rest) = &section.left_out;
    if *groups > 0 {
        let mut cells = vec![share(&Share::wilson(rest.count, section.total.count)), thousands(rest.count)];
        cells.resize(shown.measures(), String::new());
        cells.push(format!("({} more)", thousands(*groups as u64)));
        table.row(cells);
    }
    let mut out = table.render(options.width, options.style);
    for note in &section.notes {
        bullet(&mut out, note, options);
    }
    out
}

/// Which measures a table shows.
struct Shown {
    by: Vec<Key>,
    period: bool,
    latency_share: bool,
    latency: bool,
    percentiles: bool,
}

impl Shown {
    fn of(report: &Report, section: &Section) -> Self {
        let latency = section.has_latency && section.groups.iter().any(|g| g.measures.latency_max > 0);
        Self {
            by: report.by.clone(),
            period: section.period.is_none() || report.sort == Sort::Period,
            latency_share: latency && report.sort == Sort::Latency,
            latency,
            percentiles: section.groups.iter().any(|g| g.p50.is_some()),
        }
    }

    fn measures(&self) -> usize {
        2 + usize::from(self.period)
            + usize::from(self.latency_share)
            + 2 * usize::from(self.latency)
            + 3 * usize::from(self.percentiles)
    }

    fn columns(&self, report: &Report, section: &Section) -> Vec<Column> {
        let mut columns = vec![Column::number("Share"), Column::number("Samples")];
        if self.period {
            columns.push(Column::number(&sanitize(&capitalised(&section.unit))));
        }
        if self.latency_share {
            columns.push(Column::number("Latency"));
        }
        if self.latency {
            columns.push(Column::number("Avg"));
            columns.extend(self.percentile_titles().map(Column::number));
            columns.push(Column::number("Max"));
        } else {
            columns.extend(self.percentile_titles().map(Column::number));
        }
        columns.extend(report.by.iter().map(|key| match key {
            Key::Ip | Key::Address | Key::LineAddress | Key::Page => Column::number(key.title()),
            Key::Pid | Key::Tid | Key::Cpu | Key::Epoch | Key::Latency => Column::number(key.title()),
            Key::Line | Key::Module | Key::Region | Key::Cgroup => Column::text(key.title(), Cut::Start),
            _ => Column::text(key.title(), Cut::Middle),
        }));
        columns
    }

    fn percentile_titles(&self) -> impl Iterator<Item = &'static str> {
        ["p50", "p90", "p99"].into_iter().filter(|_| self.percentiles)
    }

    fn cells(&self, group: &Group) -> Vec<String> {
        let dash = || "-".to_owned();
        let percentile = |p: &Option<Percentile>| p.map_or_else(dash, |p| cycles(p.cycles));
        let mut cells = vec![share(&group.share), thousands(group.measures.count)];
        if self.period {
            cells.push(short(group.measures.period_sum));
        }
        if self.latency_share {
            cells.push(group.latency_share.map_or_else(dash, percent));
        }
        if self.latency {
            cells.push(group.average.map_or_else(dash, cycles));
        }
        if self.percentiles {
            cells.extend([&group.p50, &group.p90, &group.p99].map(percentile));
        }
        if self.latency {
            cells.push(thousands(group.measures.latency_max.into()));
        }
        cells.extend(group.values.iter().zip(&self.by).map(|(value, key)| short_text(value, *key)));
        cells
    }
}

/// The line that explains each word of the tables.
fn legend(reports: &[&Report], options: &TextOptions) -> String {
    let tables = || reports.iter().flat_map(|r| r.events.iter().map(move |s| (*r, s)));
    let shown: Vec<_> =
        tables().filter(|(_, s)| !s.groups.is_empty()).map(|(r, s)| Shown::of(r, s)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut lines =
        vec!["Share: part of the event's samples; the true value is within ± of it in 95% of runs."];
    if shown.iter().any(|s| s.period) {
        lines.push("The column after Samples: events that the samples stand for.");
    }
    if shown.iter().any(|s| s.latency_share) {
        lines.push("Latency: part of the sum of all latencies.");
    }
    if shown.iter().any(|s| s.percentiles) {
        lines.push(
            "Avg, Max: latency in core cycles. p50, p90, p99: that part of the samples took no longer, within 6.3%; \
             - where there are too few.",
        );
    } else if shown.iter().any(|s| s.latency) {
        lines.push("Avg, Max: latency in core cycles.");
    }
    let mut out = String::from("\n");
    for line in lines {
        out += &options.style.paint(Tint::Dim, &wrap(line, options.width, 2));
        out.push('\n');
    }
    out
}

/// A value as a table shows it: a module by its file name. JSON and CSV have the whole path.
fn short_text(value: &Value, key: Key) -> String {
    let text = value.text();
    match key {
        Key::Module => text.rsplit('/').next().unwrap_or_default().to_owned(),
        _ => text,
    }
}

fn capitalised(unit: &str) -> String {
    let mut chars = unit.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "Events".to_owned(),
    }
}
