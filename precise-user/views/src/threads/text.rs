//! Threads and their CPUs as text.

use super::csv::list;
use super::{Thread, Threads, ThreadsEvent};
use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::number::share;
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use crate::stats::Share;
use precise_model::digits::thousands;
use precise_model::text::Cut;
use precise_model::values::Value;

/// Formats the threads of each event, with their CPUs and nodes.
pub fn threads_text(view: &Threads, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&view.run, &event.event, event.samples, options);
        out.push('\n');
        out += &match event.too_few {
            Some(needed) => too_few(event.samples, needed, options),
            None => table(event, view.nodes > 0, options),
        };
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    if view.events.iter().all(|event| event.threads.is_empty()) {
        return out;
    }
    let mut lines = vec![
        "Share: part of the event's samples; the true value is within ± of it in 95% of runs.",
        "CPUs: how many CPUs the thread was sampled on. Most used: part of the thread's samples on one CPU, and that CPU.",
    ];
    if view.nodes > 0 {
        lines.push("Off node: part of the thread's samples on other nodes than the one that it used most.");
    }
    lines.push("-: too few samples of the thread for a share.");
    out + &legend(&lines, options)
}

fn table(event: &ThreadsEvent, nodes: bool, options: &TextOptions) -> String {
    let mut columns = vec![
        TableColumn::number("Share"),
        TableColumn::number("Samples"),
        TableColumn::number("CPUs"),
        TableColumn::number("Most used"),
    ];
    if nodes {
        columns.extend([TableColumn::number("Off node"), TableColumn::text("Nodes", Cut::End)]);
    }
    columns.extend([TableColumn::number("TID"), TableColumn::text("Thread", Cut::End)]);
    let mut table = Table::new(columns);
    for thread in &event.threads {
        let mut cells = vec![share(&thread.share), thousands(thread.samples), thread.cpus.len().to_string()];
        cells.push(most_used(thread));
        if nodes {
            cells.extend([part(thread.off_main_node), list(&thread.nodes)]);
        }
        cells.extend([thread.tid.to_string(), name(thread)]);
        table.row(cells);
    }
    let (more, samples) = event.left_out;
    if more > 0 {
        let mut cells = vec![String::new(), thousands(samples), String::new(), String::new()];
        if nodes {
            cells.extend([const { String::new() }; 2]);
        }
        cells.extend([String::new(), format!("({} more)", thousands(more))]);
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

/// Returns the name of a thread, followed by that of its process if that is another.
fn name(thread: &Thread) -> String {
    let (own, process) = (thread.name.label(), thread.process.label());
    match &thread.name {
        Value::Unknown(_) => process,
        name if *name == thread.process => own,
        _ => format!("{own} ({process})"),
    }
}

fn most_used(thread: &Thread) -> String {
    match (thread.on_main_cpu, thread.cpus.first()) {
        (Some(part), Some(cpu)) => format!("{} on {}", share(&part), cpu.id),
        _ => "-".to_owned(),
    }
}

fn part(part: Option<Share>) -> String {
    part.as_ref().map_or_else(|| "-".to_owned(), share)
}
