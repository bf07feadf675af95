//! A call graph as CSV.

use crate::call_graph::CallGraphReport;
use crate::csv::{CsvLines, average, shares};

/// Formats a call graph as CSV: one line per function of the table.
pub fn call_graph_csv(graph: &CallGraphReport, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "function", "module"], &[]);
    table.header(&["total", "total_share", "total_share_low", "total_share_high"], &[]);
    table.header(&["self", "self_share", "self_share_low", "self_share_high"], &[]);
    table.header(&["total_latency_share", "self_latency_share"], &[]);
    for calls in &graph.events {
        for cost in &calls.functions {
            let mut fields = vec![calls.event.name.clone(), cost.function.text(), cost.module.text()];
            for part in [&cost.inclusive, &cost.exclusive] {
                fields.push(part.samples.to_string());
                fields.extend(shares(part.share));
            }
            for part in [&cost.inclusive, &cost.exclusive] {
                fields.push(average(part.latency_share.map(|share| share.value)));
            }
            table.line(fields);
        }
    }
    table.done()
}
