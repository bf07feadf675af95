//! Accesses by NUMA node as CSV.

use super::Numa;
use super::text::title;
use crate::csv::{CsvLines, NOTHING, SHARE, average, shares};

/// Formats accesses by NUMA node as CSV: one line per node of the CPU and place that served.
pub fn numa_csv(numa: &Numa, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "cpu_node", "place"], &[]);
    table.header(&["samples"], &SHARE);
    table.header(&["latency_avg"], &[]);
    for event in &numa.events {
        for row in &event.from {
            for to in &row.to {
                let node = row.node.map_or_else(String::new, |node| node.to_string());
                let mut fields =
                    vec![event.event.name.clone(), node, title(to.place), to.samples.to_string()];
                fields.extend(to.share.map_or(NOTHING, shares));
                fields.push(average(to.average));
                table.line(fields);
            }
        }
    }
    table.done()
}
