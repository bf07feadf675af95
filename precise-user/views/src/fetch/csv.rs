//! Fetches as CSV.

use super::{FetchFact, FetchView};
use crate::csv::{CsvLines, NOTHING, average, shares};

/// Formats fetches as CSV, one line per group. Unknown values are empty.
pub fn fetch_csv(view: &FetchView, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["events"], &view.by);
    table.header(&["share", "share_low", "share_high", "latency_avg"], &[]);
    for fact in FetchFact::ALL {
        let name = fact.column();
        let share = format!("{name}_share");
        let (low, high) = (format!("{share}_low"), format!("{share}_high"));
        table.header(&[name, &share, &low, &high], &[]);
    }
    for section in &view.sections {
        let events: Vec<_> = section.events.iter().map(|event| event.name.as_str()).collect();
        for group in &section.groups {
            let mut fields = vec![events.join(" ")];
            fields.extend(group.values.iter().map(|value| value.text()));
            fields.extend(shares(group.share));
            fields.push(average(group.average));
            for known in &group.facts {
                fields.push(known.samples.map_or_else(String::new, |samples| samples.to_string()));
                fields.extend(known.share.map_or(NOTHING, shares));
            }
            table.line(fields);
        }
    }
    table.done()
}
