//! Threads and their CPUs as CSV.

use super::{On, Threads};
use crate::csv::{CsvLines, NOTHING, SHARE, shares};
use precise_model::CompactSort as _;
use precise_model::format_cpu_list;

/// Formats one line per thread. CPUs and nodes are in ascending order; unknown values are empty.
pub fn threads_csv(view: &Threads, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "process", "pid", "tid", "name", "samples"], &[]);
    table.header(&SHARE, &["cpus", "nodes"]);
    table.header(&["main_cpu", "on_main_cpu", "on_main_cpu_low", "on_main_cpu_high"], &[]);
    table.header(&["main_node", "off_main_node", "off_main_node_low", "off_main_node_high"], &[]);
    for event in &view.events {
        for thread in &event.threads {
            let mut fields = vec![event.event.name.clone(), thread.process.text()];
            fields.extend([thread.pid.to_string(), thread.tid.to_string(), thread.name.text()]);
            fields.push(thread.samples.to_string());
            fields.extend(shares(thread.share));
            fields.extend([list(&thread.cpus), list(&thread.nodes)]);
            fields.push(main(&thread.cpus));
            fields.extend(thread.on_main_cpu.map_or(NOTHING, shares));
            fields.push(main(&thread.nodes));
            fields.extend(thread.off_main_node.map_or(NOTHING, shares));
            table.line(fields);
        }
    }
    table.done()
}

/// Formats the numbers of CPUs or nodes as a list such as `0-3,7`.
pub(super) fn list(places: &[On]) -> String {
    let mut ids: Vec<_> = places.iter().map(|on| on.id).collect();
    ids.compact_sort();
    format_cpu_list(&ids)
}

fn main(places: &[On]) -> String {
    places.first().map_or_else(String::new, |on| on.id.to_string())
}
