//! The comparison of two captures as CSV.

use crate::csv::{CsvLines, shares};
use crate::diff::Diff;

/// Formats a comparison as CSV, one line per entry.
pub fn diff_csv(diff: &Diff, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event"], &diff.by);
    table.header(
        &["samples_base", "samples_new", "base", "base_low", "base_high", "new", "new_low", "new_high"],
        &["p", "changed", "latency_p50_base", "latency_p50_new", "latency_slower", "latency_p"],
    );
    for event in &diff.events {
        for entry in &event.entries {
            let mut fields = vec![event.base.name.clone()];
            fields.extend(entry.values.iter().map(|value| value.text()));
            fields.extend(entry.samples.map(|count| count.to_string()));
            fields.extend(shares(entry.base));
            fields.extend(shares(entry.new));
            fields.push(entry.p.map_or_else(String::new, |p| format!("{p:.6}")));
            fields.push(entry.changed.to_string());
            fields.extend(entry.p50.iter().map(|p| p.map_or_else(String::new, |p| p.cycles.to_string())));
            let shift =
                entry.latency.map(|shift| [shift.slower, shift.p].map(|number| format!("{number:.6}")));
            fields.extend(shift.unwrap_or([const { String::new() }; 2]));
            table.line(fields);
        }
    }
    table.done()
}
