//! Latencies as CSV.

use super::Latency;
use crate::csv::{CsvLines, LATENCIES, NOTHING, SHARE, latencies, shares};

/// Formats latencies as CSV: one line per group, or one line for all samples if there are no
/// groups.
pub fn latency_csv(view: &Latency, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event"], &view.by);
    table.header(&["samples"], &SHARE);
    table.header(&[], &LATENCIES);
    table.header(&["mode_low", "mode_high", "mode_level"], &[]);
    for event in &view.events {
        let all = event.all.iter().filter(|_| view.by.is_empty());
        for distribution in event.groups.iter().chain(all) {
            let group = &distribution.group;
            let mut fields = vec![event.event.name.clone()];
            fields.extend(group.values.iter().map(|value| value.text()));
            fields.push(group.measures.count.to_string());
            fields.extend(shares(group.share));
            fields.extend(latencies(group));
            fields.extend(distribution.mode.as_ref().map_or(NOTHING, |mode| {
                let level = mode.served.as_ref().map_or_else(String::new, |(level, _)| level.clone());
                [mode.bucket.low.to_string(), mode.bucket.high.to_string(), level]
            }));
            table.line(fields);
        }
    }
    table.done()
}
