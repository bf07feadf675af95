//! Groups as a table: the measures, the titles of the columns, and the cells.

use crate::grouping::{Group, Groups};
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{cycles, percent, share, short};
use crate::render::table::{Table, TableColumn};
use crate::stats::Percentile;
use precise_model::digits::{counted, thousands};
use precise_model::keys::Key;
use precise_model::text::{Cut, sanitize, wrap};

/// A measure that a table shows. Measures come before the group keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Fraction of the samples.
    Share,
    /// Number of samples.
    Samples,
    /// Number of events that the samples stand for.
    Period,
    /// Fraction of the sum of latencies, with this column title.
    LatencyShare(&'static str),
    /// The average latency.
    Average,
    /// Percentiles.
    P50,
    P90,
    P99,
    /// Percentiles with their intervals.
    P50Within,
    P90Within,
    P99Within,
    P999Within,
    /// The largest latency.
    Maximum,
}

impl Measure {
    fn title(self, unit: &str) -> String {
        match self {
            Self::Share => "Share".to_owned(),
            Self::Samples => "Samples".to_owned(),
            Self::Period => sanitize(&capitalised(unit)),
            Self::LatencyShare(title) => title.to_owned(),
            Self::Average => "Avg".to_owned(),
            Self::P50 | Self::P50Within => "p50".to_owned(),
            Self::P90 | Self::P90Within => "p90".to_owned(),
            Self::P99 | Self::P99Within => "p99".to_owned(),
            Self::P999Within => "p99.9".to_owned(),
            Self::Maximum => "Max".to_owned(),
        }
    }

    fn cell(self, group: &Group) -> String {
        let dash = || "-".to_owned();
        let percentile = |p: &Option<Percentile>| p.map_or_else(dash, |p| cycles(p.cycles));
        let within = |p: &Option<Percentile>| {
            p.map_or_else(dash, |p| {
                let [from, to] = p.interval.map(thousands);
                format!("{} ({from}-{to})", cycles(p.cycles))
            })
        };
        match self {
            Self::Share => share(&group.share),
            Self::Samples => thousands(group.measures.count),
            Self::Period => match group.estimate {
                Some(estimate) => {
                    format!("{} ±{}", short(estimate.value), percent(estimate.relative_half_width()))
                }
                None => short(group.measures.period_sum),
            },
            Self::LatencyShare(_) => group.latency_share.map_or_else(dash, |s| share(&s)),
            Self::Average => group.average.map_or_else(dash, cycles),
            Self::P50 => percentile(&group.p50),
            Self::P90 => percentile(&group.p90),
            Self::P99 => percentile(&group.p99),
            Self::P50Within => within(&group.p50),
            Self::P90Within => within(&group.p90),
            Self::P99Within => within(&group.p99),
            Self::P999Within => within(&group.p999),
            Self::Maximum if group.average.is_none() => dash(),
            Self::Maximum => thousands(group.measures.latency_max.into()),
        }
    }

    /// Returns the cell that sums up the groups that were left out.
    fn rest(self, groups: &Groups) -> String {
        let (_, rest) = &groups.left_out;
        match self {
            Self::Share => share(&groups.left_out_share),
            Self::Samples => thousands(rest.count),
            _ => String::new(),
        }
    }
}

/// Formats the groups, after a warning if they are too few to be ranked. `unit` is the unit of the
/// event's period.
pub(crate) fn groups_table(
    groups: &Groups,
    by: &[Key],
    measures: &[Measure],
    unit: &str,
    options: &TextOptions,
) -> String {
    let warning =
        groups.too_few.map_or_else(String::new, |needed| unranked(groups.total.count, needed, options));
    warning + &rows_table(groups, by, measures, unit, options)
}

/// Formats the groups without a warning.
pub(crate) fn rows_table(
    groups: &Groups,
    by: &[Key],
    measures: &[Measure],
    unit: &str,
    options: &TextOptions,
) -> String {
    if groups.list.is_empty() {
        return String::new();
    }
    let mut columns: Vec<_> = measures.iter().map(|m| TableColumn::number(&m.title(unit))).collect();
    columns.extend(by.iter().map(|key| key_column(*key)));
    let mut table = Table::new(columns);
    for group in &groups.list {
        let mut cells: Vec<_> = measures.iter().map(|m| m.cell(group)).collect();
        cells.extend(group.values.iter().zip(by).map(|(value, key)| short_text(&value.label(), *key)));
        table.row(cells);
    }
    if groups.left_out.0 > 0 {
        let mut cells: Vec<_> = measures.iter().map(|m| m.rest(groups)).collect();
        cells.push(format!("({} more)", thousands(groups.left_out.0 as u64)));
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

/// Returns the warning above a table with too few samples to be ranked.
pub(crate) fn unranked(have: u64, needed: u64, options: &TextOptions) -> String {
    let text = match have {
        0 => "No samples.".to_owned(),
        have => format!(
            "Only {}: the rows are in no reliable order, for which at least {} are needed. Sample for longer, or \
             more often.",
            counted(have, "sample"),
            thousands(needed),
        ),
    };
    options.style.paint(Tint::Warning, &wrap(&text, options.width, 0)) + if have == 0 { "\n" } else { "\n\n" }
}

/// Returns the sentence that replaces a table with too few samples.
pub(crate) fn too_few(have: u64, needed: u64, options: &TextOptions) -> String {
    let text = format!(
        "Only {}. At least {} are needed to rank entries, so no table is shown. Sample for longer, or more often.",
        counted(have, "sample"),
        thousands(needed),
    );
    options.style.paint(Tint::Warning, &wrap(&text, options.width, 0)) + "\n"
}

/// Returns the column of a group key.
pub(crate) fn key_column(key: Key) -> TableColumn {
    match key {
        Key::Ip | Key::Address | Key::LineAddress | Key::Page => TableColumn::number(key.title()),
        Key::Pid | Key::Cpu | Key::Node | Key::Epoch | Key::Latency => TableColumn::number(key.title()),
        // The number, or the function that touched the memory, comes first, and the end may go.
        Key::Tid | Key::Object => TableColumn::text(key.title(), Cut::End),
        Key::Line | Key::Module | Key::Region | Key::Cgroup => TableColumn::text(key.title(), Cut::Start),
        _ => TableColumn::text(key.title(), Cut::Middle),
    }
}

/// Returns a value as tables show it: for a module, the file name. JSON and CSV contain the whole
/// path.
pub(crate) fn short_text(text: &str, key: Key) -> String {
    match key {
        Key::Module => text.rsplit('/').next().unwrap_or_default().to_owned(),
        _ => text.to_owned(),
    }
}

fn capitalised(unit: &str) -> String {
    let mut chars = unit.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "Events".to_owned(),
    }
}
