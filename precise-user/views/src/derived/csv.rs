//! Derived events as CSV.

use super::DerivedView;
use crate::csv::{CsvLines, NOTHING, average, shares};

/// Formats derived events as CSV, one line each, including those without samples in the capture.
/// Unknown values are empty, with the reason in a column of its own.
pub fn derived_csv(view: &DerivedView, separator: &str) -> String {
    let mut table =
        CsvLines::new(separator, &["event", "select", "abbreviation", "name", "unit", "value"], &[]);
    table.header(&["share", "share_low", "share_high", "average"], &["of", "meaning", "unknown"]);
    let of_events =
        view.events.iter().flat_map(|event| event.derived.iter().map(|one| (event.event.name.as_str(), one)));
    for (event, one) in of_events.chain(view.absent.iter().map(|one| ("", one))) {
        let mut fields =
            vec![event.to_owned(), one.select.clone(), one.abbreviation.to_owned(), one.name.to_owned()];
        fields.extend([one.unit.to_owned(), one.value.map_or_else(String::new, |value| value.to_string())]);
        fields.extend(one.share.map_or(NOTHING, shares));
        fields.push(average(one.average));
        fields.extend([one.of.unwrap_or_default().to_owned(), one.meaning.to_owned()]);
        fields.push(one.unknown.clone().unwrap_or_default());
        table.line(fields);
    }
    table.done()
}
