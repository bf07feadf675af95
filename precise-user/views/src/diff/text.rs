//! The comparison of two captures as text.

use crate::diff::totals::amount;
use crate::diff::{Diff, EventDiff, EventTotals, GroupDifference, Growth, LatencyDiff};
use crate::group_table::{key_column, short_text};
use crate::render::number::{cycles, duration, percent_change, share};
use crate::render::table::{Table, TableColumn};
use crate::render::{TextOptions, Tint};
use crate::run_text::{legend, notes, verdict};
use crate::stats::{Percentile, SIGNIFICANT};
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};

/// Formats for each event what changed, starting with the conclusion in words.
pub fn diff_text(diff: &Diff, options: &TextOptions) -> String {
    let mut out = String::new();
    for (name, run) in [("BASE", &diff.base), ("NEW", &diff.new)] {
        let line = format!("{name}: {} on {}", sanitize(&run.target), sanitize(&run.host));
        out += &format!("{}\n", wrap(&line, options.width, 2));
    }
    for event in &diff.events {
        out += &format!("\n{}\n", options.style.paint(Tint::Heading, &sanitize(&event.base.name)));
        out += &totals_table(event, options);
        out.push('\n');
        out += &body(diff, event, options);
        out.push('\n');
        out += &notes(&event.notes, options);
        for (name, event) in [("BASE", &event.base), ("NEW", &event.new)] {
            out += &format!("{name}\n{}", verdict(event, false, options));
        }
    }
    out += &notes(&diff.notes, options);
    if diff.events.iter().all(|event| event.too_few.is_some()) {
        return out;
    }
    out + &legend(
        &[
            "BASE, NEW: share of the samples (of the events that they stand for, if a note says so), \
             with its 95% interval. Change: percentage points. Significant: yes if sampling noise does \
             not explain the change (z-test of two proportions, Holm's correction for the number of \
             entries, 5%); - if there are too few samples to test.",
            "Changes of events and rates have the 95% interval of sampling alone: two runs of the same \
             program differ by more if its load differs.",
            "Latencies are compared by the Mann-Whitney test. Samples of one burst are not independent: \
             repeat both runs before you act on a small change.",
        ],
        options,
    )
}

fn body(diff: &Diff, event: &EventDiff, options: &TextOptions) -> String {
    let mut out = String::new();
    for line in &event.words {
        out += &format!("{}\n", wrap(&sanitize(line), options.width, 2));
    }
    if let Some(needed) = event.too_few {
        let text =
            format!("Too few samples to compare shares: both captures need at least {}.", thousands(needed));
        return out + &options.style.paint(Tint::Warning, &wrap(&text, options.width, 0)) + "\n";
    }
    if let Some(latency) = &event.latency {
        out += "\n";
        out += &percentiles(latency, options);
    }
    let timed = event.entries.iter().any(|e| e.p50.iter().any(Option::is_some));
    let mut columns = ["BASE", "NEW", "Change", "Significant"].map(TableColumn::number).to_vec();
    if timed {
        columns.extend(["p50 BASE", "p50 NEW"].map(TableColumn::number));
    }
    columns.extend(diff.by.iter().map(|key| key_column(*key)));
    let mut table = Table::new(columns);
    for entry in &event.entries {
        let mut cells = vec![share(&entry.base), share(&entry.new), change(entry), certain(entry)];
        if timed {
            cells.extend(
                entry.p50.iter().zip(["", mark(entry)]).map(|(p, mark)| format!("{mark}{}", median(p))),
            );
        }
        let values = entry.values.iter().zip(&diff.by);
        cells.extend(values.map(|(value, key)| short_text(&value.label(), *key)));
        table.row(cells);
    }
    out += "\n";
    out += &table.render(options.table_width(), options.style);
    let (more, changed) = event.left_out;
    if more > 0 {
        out += &format!("({} more, {} of them changed significantly)\n", thousands(more as u64), changed);
    }
    out
}

/// Formats the samples and events of both captures.
fn totals_table(event: &EventDiff, options: &TextOptions) -> String {
    let mut table = Table::new(
        [vec![TableColumn::text("", Cut::End)], ["BASE", "NEW", "Change"].map(TableColumn::number).to_vec()]
            .concat(),
    );
    let mut row = |name: &str, [base, new]: [String; 2], growth: Option<&Growth>| {
        table.row(vec![name.to_owned(), base, new, growth.map(Growth::text).unwrap_or_default()]);
    };
    let unit = event.base.unit.as_str();
    let name = match unit {
        "ns" => "CPU time".to_owned(),
        "" => "Events".to_owned(),
        unit => capitalized(&sanitize(unit)),
    };
    let [base, new] = &event.totals;
    let both = |of: &dyn Fn(&EventTotals) -> String| [of(base), of(new)];
    row("Samples", event.samples.map(thousands), None);
    row(&name, both(&|one| amount(one.events.value as f64, unit)), event.event_growth.as_ref());
    row("Duration", both(&|one| duration(one.duration_ns)), None);
    let rate = |one: &EventTotals| one.per_second.map_or_else(|| "-".to_owned(), |rate| amount(rate, unit));
    row("Per second", both(&rate), event.rate_growth.as_ref());
    table.render(options.table_width(), options.style)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn percentiles(latency: &LatencyDiff, options: &TextOptions) -> String {
    let mut columns = vec![TableColumn::text("Latency", Cut::End)];
    columns.extend(["BASE", "NEW", "Change"].map(TableColumn::number));
    let mut table = Table::new(columns);
    for (percent_of, base, new) in &latency.percentiles {
        let within = |p: &Option<Percentile>| {
            p.map_or_else(
                || "-".to_owned(),
                |p| {
                    format!(
                        "{} ({}-{})",
                        cycles(p.cycles),
                        thousands(p.interval[0]),
                        thousands(p.interval[1])
                    )
                },
            )
        };
        let change = base.zip(*new).filter(|(base, _)| base.cycles > 0.0);
        let change = change
            .map_or_else(|| "-".to_owned(), |(base, new)| percent_change(new.cycles / base.cycles - 1.0, 0));
        table.row(vec![format!("p{percent_of}"), within(base), within(new), change]);
    }
    table.render(options.table_width(), options.style)
}

fn change(entry: &GroupDifference) -> String {
    format!("{:+.1}", 100.0 * (entry.new.value - entry.base.value))
}

fn certain(entry: &GroupDifference) -> String {
    match (entry.p, entry.changed) {
        (None, _) => "-",
        (_, true) => "yes",
        (_, false) => "no",
    }
    .to_owned()
}

/// Returns the mark before a median that changed significantly.
fn mark(entry: &GroupDifference) -> &'static str {
    match entry.latency {
        Some(shift) if shift.p <= SIGNIFICANT && shift.slower > 0.5 => "slower ",
        Some(shift) if shift.p <= SIGNIFICANT => "faster ",
        _ => "",
    }
}

fn median(p: &Option<Percentile>) -> String {
    p.map_or_else(|| "-".to_owned(), |p| cycles(p.cycles))
}
