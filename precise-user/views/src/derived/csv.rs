//! Derived events as lines of separated values.

use super::DerivedView;
use crate::csv::{Lines, NOTHING, average, shares};

/// Derived events: a line each, those of which the capture has no samples too. What is not known is
/// empty, with its reason.
pub fn derived_csv(view: &DerivedView, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event", "select", "abbreviation", "name", "unit", "value"], &[]);
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
