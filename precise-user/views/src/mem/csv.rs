//! The memory levels of loads and stores as CSV.

use super::Mem;
use crate::csv::{CsvLines, LATENCIES, NOTHING, SHARE, latencies, shares};

/// Formats the memory levels of loads and stores as CSV, one line per group.
pub fn mem_csv(mem: &Mem, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "op"], &mem.by);
    table.header(&["samples"], &SHARE);
    table.header(&["latency_sum", "overhead", "overhead_low", "overhead_high"], &LATENCIES);
    for event in &mem.events {
        for accesses in &event.accesses {
            for group in &accesses.groups.list {
                let mut fields = vec![event.event.name.clone(), accesses.op.to_owned()];
                fields.extend(group.values.iter().map(|value| value.text()));
                fields.push(group.measures.count.to_string());
                fields.extend(shares(group.share));
                let timed = group.latency_share.filter(|_| accesses.timed);
                fields.push(timed.map_or_else(String::new, |_| group.measures.latency_sum.to_string()));
                fields.extend(timed.map_or(NOTHING, shares));
                fields.extend(latencies(group));
                table.line(fields);
            }
        }
    }
    table.done()
}
