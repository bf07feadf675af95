//! Page walks as CSV.

use super::TlbView;
use crate::csv::{CsvLines, SHARE, average, shares};

/// Formats page walks as CSV, one line per group.
pub fn tlb_csv(view: &TlbView, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event"], &view.by);
    table.header(&["accesses", "walks", "walk_rate", "walk_rate_low", "walk_rate_high"], &SHARE);
    table.header(&["latency_avg_walked", "latency_avg_others"], &[]);
    for event in &view.events {
        for walks in &event.walks {
            let mut fields = vec![event.event.name.clone()];
            fields.extend(walks.values.iter().map(|value| value.text()));
            fields.extend([walks.accesses.to_string(), walks.walked.to_string()]);
            fields.extend(shares(walks.rate));
            fields.extend(shares(walks.share));
            fields.extend([average(walks.walked_average), average(walks.other_average)]);
            table.line(fields);
        }
    }
    table.done()
}
