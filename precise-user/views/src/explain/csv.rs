//! Findings as separated values.

use crate::again::Again;
use crate::csv::CsvLines;
use crate::explain::{Explanation, FindingUnit, Number, Topic};

/// Returns one line per finding, then one per check without a finding. Unknown values are empty.
pub fn explain_csv(view: &Explanation, separator: &str) -> String {
    let first = ["what", "topic", "event", "unit", "value", "low", "high", "threshold", "says", "command"];
    let mut table = CsvLines::new(separator, &first, &[]);
    let numbers = |number: Option<Number>, threshold: Option<f64>| {
        let unit = number.map_or("", |number| match number.unit {
            FindingUnit::Share => "share",
            FindingUnit::Times => "times",
            FindingUnit::Count => "count",
        });
        let text = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
        let [value, low, high] =
            [number.map(|n| n.value), number.and_then(|n| n.low), number.and_then(|n| n.high)];
        [unit.to_owned(), text(value), text(low), text(high), text(threshold)]
    };
    let mut line =
        |what: &str, topic: Topic, event: &str, numbers: [String; 5], says: &str, command: &str| {
            let mut fields = vec![what.to_owned(), topic.words().to_owned(), event.to_owned()];
            fields.extend(numbers);
            fields.extend([says.to_owned(), command.to_owned()]);
            table.line(fields);
        };
    for f in &view.findings {
        line("finding", f.topic, &f.event, numbers(f.number, f.threshold), &f.says, &f.command);
    }
    for q in &view.quiet {
        line("quiet", q.topic, &q.event, numbers(q.number, Some(q.threshold)), q.of, "");
    }
    for u in &view.unknown {
        let record = u.record.as_ref().map_or("", Again::command);
        line("unknown", u.topic, "", numbers(None, None), &u.why, record);
    }
    table.done()
}
