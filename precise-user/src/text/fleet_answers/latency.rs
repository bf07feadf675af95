//! `precise fleet latency`.

use precise_fleet::{FleetDistribution, FleetLatency, FleetLatencyEvent, FleetPercentile};
use precise_model::digits::{counted, thousands};
use precise_views::render::TextOptions;
use precise_views::render::number::{cycles, short};
use precise_views::render::table::{Table, TableColumn};

use super::{
    AnswerLines, doubts, first_fields, head, interval_fields, key_cells, key_columns, ledger_line, legend,
    sentence, share,
};

fn percentiles(of: &FleetDistribution) -> [Option<FleetPercentile>; 4] {
    [of.p50, of.p90, of.p99, of.p999]
}

/// Formats how long the accesses of a fleet take.
pub fn latency_text(latency: &FleetLatency, options: &TextOptions) -> String {
    let mut out = head(&latency.asked, options);
    for event in &latency.events {
        let FleetLatencyEvent { event: name, kind, unit, all, .. } = event;
        let about = format!(
            "{name} ({kind}): {} with a latency, {} {unit}",
            counted(all.samples, "sample"),
            short(all.weight)
        );
        out.push('\n');
        out += &sentence(&about, options);
        out += &doubts(all.samples, event.too_few, event.node_groups, options);
        out += &table(latency, event, options);
        out += &sentence(&ledger_line(&event.ledger), options);
    }
    out + &legend(
        &[
            "Latencies in core cycles, from buckets, within 6.3%. p50: half of the accesses took at most this \
             long. In parentheses: the 95% interval, which includes the differences between nodes; - if there \
             are too few samples.",
        ],
        options,
    )
}

fn table(latency: &FleetLatency, event: &FleetLatencyEvent, options: &TextOptions) -> String {
    // The last one is in the other forms: a table of four is wider than a terminal.
    let shown = 3;
    let mut columns = ["Share", "Samples"].map(TableColumn::number).to_vec();
    columns.extend(["p50", "p90", "p99"].map(TableColumn::number));
    columns.extend(key_columns(&latency.by));
    let mut table = Table::new(columns);
    let line = |of: &FleetDistribution| {
        let mut cells = vec![share(&of.share), thousands(of.samples)];
        cells.extend(percentiles(of).iter().take(shown).map(|found| {
            found.map_or_else(
                || "-".to_owned(),
                |found| {
                    let [from, to] = found.interval.map(thousands);
                    format!("{} ({from}-{to})", cycles(found.cycles))
                },
            )
        }));
        cells
    };
    for group in &event.groups {
        let mut cells = line(group);
        cells.extend(key_cells(&group.values, &latency.by));
        table.row(cells);
    }
    if event.left_out.groups > 0 {
        let mut cells = vec![share(&event.left_out.share), thousands(event.left_out.samples)];
        cells.resize(2 + shown, String::new());
        cells.push(format!("({} more)", thousands(event.left_out.groups)));
        table.row(cells);
    }
    let mut cells = line(&event.all);
    if let Some(first) = cells.first_mut() {
        *first = "all".to_owned();
    }
    table.row(cells);
    table.render(options.table_width(), options.style)
}

/// Formats how long the accesses of a fleet take as separated values. Without keys there is one
/// line for each event.
pub fn latency_csv(latency: &FleetLatency, separator: &str) -> String {
    let mut names = ["samples", "weight", "share", "share_low", "share_high"].map(str::to_owned).to_vec();
    for percentile in ["latency_p50", "latency_p90", "latency_p99", "latency_p999"] {
        names.extend(["", "_low", "_high"].map(|end| format!("{percentile}{end}")));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lines = AnswerLines::new(separator, &latency.by, &names);
    for event in &latency.events {
        let all = Some(&event.all).filter(|_| latency.by.is_empty());
        for of in event.groups.iter().chain(all) {
            let mut fields = first_fields([&event.event, &event.unit, &event.kind], &of.values);
            fields.extend([of.samples, of.weight].map(|number| number.to_string()));
            fields.extend(interval_fields(&of.share));
            for found in percentiles(of) {
                fields.extend(found.map_or([const { String::new() }; 3], |found| {
                    let [from, to] = found.interval;
                    [found.cycles.to_string(), from.to_string(), to.to_string()]
                }));
            }
            lines.line(fields);
        }
    }
    lines.out
}
