//! `precise fleet diff`.

use precise_fleet::{FleetDiff, FleetDifference, FleetEventDiff, FleetTotals};
use precise_model::digits::{percent_change, thousands};
use precise_model::text::Cut;
use precise_views::render::TextOptions;
use precise_views::render::number::{cycles, short};
use precise_views::render::table::{Table, TableColumn};

use super::{
    AnswerLines, average_field, doubts, first_fields, head, interval_fields, key_cells, key_columns,
    ledger_line, legend, sentence, share, warning,
};

/// Formats what changed in a fleet.
pub fn diff_text(diff: &FleetDiff, options: &TextOptions) -> String {
    let mut out = format!("BEFORE: {}", head(&diff.before, options));
    out += &format!("AFTER: {}", head(&diff.after, options));
    for event in &diff.events {
        out.push('\n');
        out += &sentence(&format!("{} ({}), {}", event.event, event.kind, event.unit), options);
        out += &totals(event, options);
        out += &sentence(&conclusion(event), options);
        let [base, new] = &event.totals;
        out += &doubts(base.samples.min(new.samples), event.too_few, event.node_groups, options);
        out += "\n";
        out += &table(diff, event, options);
        if event.left_out[0] > 0 {
            let [more, changed] = event.left_out.map(thousands);
            out += &format!("({more} more, {changed} of them changed)\n");
        }
        if event.cut != [0, 0] {
            let [base, new] = event.cut.map(thousands);
            let text = format!(
                "Memory had no room for all groups: {base} before and {new} after were left out, which may \
                 look like a change. --memory takes more."
            );
            out += &warning(&text, options);
        }
        for (name, total) in [("BEFORE", base), ("AFTER", new)] {
            out += &sentence(&format!("{name}: {}", ledger_line(&total.ledger)), options);
        }
    }
    for note in &diff.notes {
        out += &sentence(&format!("* {note}"), options);
    }
    out + &legend(
        &["BEFORE, AFTER: share of the events that the samples stand for, ± its 95% interval. Change: \
             percentage points, ± the 95% interval of the difference; nodes that are in both times are \
             compared with themselves. Changed: yes if neither the samples nor the differences between nodes \
             explain it (Holm's correction for the number of rows, 5%); - if there are too few samples."],
        options,
    )
}

/// Returns in a sentence whether there is more to do than before.
fn conclusion(event: &FleetEventDiff) -> String {
    let Some(growth) = event.growth else { return "How much there is to do cannot be compared.".to_owned() };
    let within = format!("({} to {})", percent_change(growth.low, 1), percent_change(growth.high, 1));
    let value = percent_change(growth.value, 1);
    let unit = &event.unit;
    if growth.low > 0.0 {
        format!("More {unit} in a second of a node: {value} {within}.")
    } else if growth.high < 0.0 {
        format!("Fewer {unit} in a second of a node: {value} {within}.")
    } else {
        format!("No certain change of the {unit} in a second of a node: {value} {within}.")
    }
}

fn totals(event: &FleetEventDiff, options: &TextOptions) -> String {
    let mut columns = vec![TableColumn::text("", Cut::End)];
    columns.extend(["BEFORE", "AFTER"].map(TableColumn::number));
    let mut table = Table::new(columns);
    let dash = || "-".to_owned();
    let mut row = |name: &str, of: &dyn Fn(&FleetTotals) -> String| {
        let [base, new] = &event.totals;
        table.row(vec![name.to_owned(), of(base), of(new)]);
    };
    row("Samples", &|of| thousands(of.samples));
    if event.totals.iter().any(|of| of.nodes.is_some()) {
        row("Nodes", &|of| of.nodes.map_or_else(dash, thousands));
    }
    row("Per second of a node", &|of| of.rate.map_or_else(dash, rate));
    if event.totals.iter().any(|of| of.latency_avg.is_some()) {
        row("Mean latency (cycles)", &|of| of.latency_avg.map_or_else(dash, cycles));
    }
    table.render(options.table_width(), options.style)
}

fn rate(rate: f64) -> String {
    if rate < 99.95 { format!("{rate:.1}") } else { short(rate.round() as u64) }
}

fn table(diff: &FleetDiff, event: &FleetEventDiff, options: &TextOptions) -> String {
    let timed = event.groups.iter().any(|group| group.latency_avg.iter().any(Option::is_some));
    let mut columns = ["BEFORE", "AFTER", "Change", "Changed"].map(TableColumn::number).to_vec();
    if timed {
        columns.extend(["Avg BEFORE", "AFTER"].map(TableColumn::number));
    }
    columns.extend(key_columns(&diff.by));
    let mut table = Table::new(columns);
    for group in &event.groups {
        let half = (group.change.half_width() * 100.0).max(0.1);
        let change = format!("{:+.1} ±{half:.1}", group.change.value * 100.0);
        let mut cells = vec![share(&group.before), share(&group.after), change, changed(group).to_owned()];
        if timed {
            cells.extend(group.latency_avg.iter().map(|of| of.map_or_else(|| "-".to_owned(), cycles)));
        }
        cells.extend(key_cells(&group.values, &diff.by));
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

fn changed(group: &FleetDifference) -> &'static str {
    match (group.p, group.changed) {
        (None, _) => "-",
        (_, true) => "yes",
        (_, false) => "no",
    }
}

/// Formats what changed in a fleet as separated values.
pub fn diff_csv(diff: &FleetDiff, separator: &str) -> String {
    let mut names = vec!["samples_before".to_owned(), "samples_after".to_owned()];
    for of in ["before", "after", "change"] {
        names.extend(["", "_low", "_high"].map(|end| format!("{of}{end}")));
    }
    names.extend(["p", "changed", "latency_avg_before", "latency_avg_after"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lines = AnswerLines::new(separator, &diff.by, &names);
    for event in &diff.events {
        for group in &event.groups {
            let mut fields = first_fields([&event.event, &event.unit, &event.kind], &group.values);
            fields.extend(group.samples.map(|number| number.to_string()));
            fields.extend([&group.before, &group.after, &group.change].into_iter().flat_map(interval_fields));
            fields.push(group.p.map_or_else(String::new, |p| format!("{p:.6}")));
            fields.push(group.changed.to_string());
            fields.extend(group.latency_avg.map(average_field));
            lines.line(fields);
        }
    }
    lines.out
}
