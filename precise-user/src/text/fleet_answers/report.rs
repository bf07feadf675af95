//! `precise fleet report`.

use precise_fleet::{FleetEvent, FleetReport};
use precise_model::digits::{counted, percent_to, thousands};
use precise_views::render::TextOptions;
use precise_views::render::number::{cycles, short};
use precise_views::render::table::{Table, TableColumn};

use super::{
    AnswerLines, average_field, doubts, first_fields, head, interval_fields, key_cells, key_columns,
    ledger_line, legend, sentence, share, warning,
};

/// Formats where the samples of a fleet are.
pub fn report_text(report: &FleetReport, options: &TextOptions) -> String {
    let mut out = head(&report.asked, options);
    for event in &report.events {
        out.push('\n');
        out += &sentence(&about(report, event), options);
        if let Some(typed) = &event.typed {
            let text = format!("Typed: {} of the accesses to memory.", share(typed));
            out += &sentence(&text, options);
        }
        out += &doubts(event.samples_read, event.too_few, event.node_groups, options);
        out += &table(report, event, options);
        if let Some(cut) = &event.cut {
            let text = format!(
                "Memory had no room for all groups: {} left out, with their samples in (more). A group that \
                 is shown may lack {} of all. --memory takes more.",
                counted(cut.groups, "group"),
                percent_to(cut.most, 2)
            );
            out += &warning(&text, options);
        }
        out += &sentence(&ledger_line(&event.ledger), options);
    }
    let mut lines = vec![
        "Share: share of the events that the samples stand for, ± its 95% interval in percentage points, \
         which includes the differences between nodes.",
    ];
    if report.events.iter().any(|event| event.typed.is_some()) {
        lines.push(
            "Type, Field: what the instructions access; [why not known] otherwise. Programs are looked for \
             on this machine; --symfs and DEBUGINFOD_URLS name other places.",
        );
    }
    if report.events.len() > 1 {
        lines.push("Events of different units or kinds are not added up, and have no common shares.");
    }
    if report.events.iter().any(|event| event.latency_avg.is_some()) {
        lines.push("Avg, Max: latency in core cycles.");
    }
    out + &legend(&lines, options)
}

fn about(report: &FleetReport, event: &FleetEvent) -> String {
    let FleetEvent { event: name, kind, unit, samples, samples_read, weight, nodes, .. } = event;
    let about = if report.asked.read.tier > 0 { "about " } else { "" };
    let read =
        if samples == samples_read { String::new() } else { format!(" ({} read)", thousands(*samples_read)) };
    let nodes = nodes.map_or_else(String::new, |nodes| {
        let least = if report.asked.read.tier > 0 { "at least " } else { "" };
        format!(" on {least}{}", counted(nodes, "node"))
    });
    format!("{name} ({kind}): {about}{}{read}{nodes}, {} {unit}", counted(*samples, "sample"), short(*weight))
}

fn table(report: &FleetReport, event: &FleetEvent, options: &TextOptions) -> String {
    let timed = event.latency_avg.is_some();
    let mut columns = ["Share", "Samples"].map(TableColumn::number).to_vec();
    if timed {
        columns.extend(["Avg", "Max"].map(TableColumn::number));
    }
    columns.extend(key_columns(&report.by));
    let mut table = Table::new(columns);
    let dash = || "-".to_owned();
    for group in &event.groups {
        let mut cells = vec![share(&group.share), thousands(group.samples)];
        if timed {
            cells.push(group.latency_avg.map_or_else(dash, cycles));
            cells.push(group.latency_max.map_or_else(dash, |most| thousands(most.into())));
        }
        cells.extend(key_cells(&group.values, &report.by));
        table.row(cells);
    }
    if event.left_out.groups > 0 {
        let mut cells = vec![share(&event.left_out.share), thousands(event.left_out.samples)];
        if timed {
            cells.extend([String::new(), String::new()]);
        }
        cells.push(format!("({} more)", thousands(event.left_out.groups)));
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

/// Formats where the samples of a fleet are as separated values.
pub fn report_csv(report: &FleetReport, separator: &str) -> String {
    let names = [
        "samples",
        "samples_read",
        "weight",
        "share",
        "share_low",
        "share_high",
        "latency_avg",
        "latency_max",
        "tier",
    ];
    let mut lines = AnswerLines::new(separator, &report.by, &names);
    for event in &report.events {
        for group in &event.groups {
            let mut fields = first_fields([&event.event, &event.unit, &event.kind], &group.values);
            fields.extend([group.samples, group.samples_read, group.weight].map(|number| number.to_string()));
            fields.extend(interval_fields(&group.share));
            fields.push(average_field(group.latency_avg));
            fields.push(group.latency_max.map_or_else(String::new, |most| most.to_string()));
            fields.push(report.asked.read.tier.to_string());
            lines.line(fields);
        }
    }
    lines.out
}
