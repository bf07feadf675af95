//! Results of conditions as separated values.

use crate::check::CheckReport;
use crate::csv::{CsvLines, NOTHING};

/// Returns one line per group of each condition.
pub fn check_csv(check: &CheckReport, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["condition", "event", "group"], &[]);
    table.header(
        &[
            "verdict",
            "samples_base",
            "samples_new",
            "base",
            "base_low",
            "base_high",
            "new",
            "new_low",
            "new_high",
        ],
        &["change", "change_low", "change_high", "bound", "p"],
    );
    for judgement in &check.conditions {
        for group in &judgement.groups {
            let values: Vec<_> = group.values.iter().map(|value| value.text()).collect();
            let mut fields = vec![judgement.condition.clone(), judgement.event.clone(), values.join(", ")];
            fields.push(group.verdict.words().to_owned());
            fields.extend(group.samples.map(|count| count.to_string()));
            for estimate in [group.base, group.new, group.change] {
                let number =
                    |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
                fields.extend(
                    estimate.map_or(NOTHING, |e| [number(e.value), number(Some(e.low)), number(e.high)]),
                );
            }
            fields.push(judgement.bound.to_string());
            fields.push(group.p.map_or_else(String::new, |p| format!("{p:.6}")));
            table.line(fields);
        }
    }
    table.done()
}
