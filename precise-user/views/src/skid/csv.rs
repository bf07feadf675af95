//! The result of `precise skid` as CSV.

use crate::csv::{CsvLines, shares};
use crate::skid::Skid;
use crate::stats::Difference;

/// Formats the result of `precise skid` as CSV: first the wrongly blamed places, one line each,
/// then the distances. The column `what` is `line`, `function`, `instructions` or `lines`.
pub fn skid_csv(skid: &Skid, separator: &str) -> String {
    let mut table =
        CsvLines::new(separator, &["precise_event", "plain_event", "what", "function", "module"], &[]);
    table.header(
        &["file", "line"],
        &["precise", "precise_low", "precise_high", "plain", "plain_low", "plain_high"],
    );
    table.header(&["excess", "excess_low", "excess_high", "p"], &["distance_from", "distance_to"]);
    table.header(
        &["share", "share_low", "share_high"],
        &["shift", "shift_low", "shift_high", "least", "by_chance"],
    );
    let number = |d: &Difference| [d.value, d.low, d.high].map(|value| format!("{value:.6}"));
    for pair in &skid.pairs {
        let events = [pair.precise.name.clone(), pair.plain.name.clone()];
        for (what, list) in [("function", &pair.wrong_functions), ("line", &pair.wrong_lines)] {
            for one in list {
                let mut fields = events.to_vec();
                fields.extend([what.to_owned(), one.function.clone(), one.module.clone()]);
                fields.extend(one.place.as_ref().map_or([const { String::new() }; 2], |place| {
                    [place.file.clone(), place.line.to_string()]
                }));
                fields.extend(shares(one.precise));
                fields.extend(shares(one.plain));
                fields.extend(number(&one.excess));
                fields.push(format!("{:.6}", one.p));
                fields.resize(COLUMNS, String::new());
                table.line(fields);
            }
        }
        for function in &pair.functions {
            for (what, side) in [("instructions", &function.instructions), ("lines", &function.lines)] {
                for (transport, band) in side.iter().flat_map(|t| t.bands.iter().map(move |band| (t, band))) {
                    let mut fields = events.to_vec();
                    fields.extend([what.to_owned(), function.function.clone(), function.module.clone()]);
                    fields.extend([const { String::new() }; 2]);
                    fields.extend(shares(function.precise));
                    fields.extend(shares(function.plain));
                    fields.extend([const { String::new() }; 4]);
                    fields.extend(
                        [band.from, band.to].map(|end| end.map_or_else(String::new, |end| end.to_string())),
                    );
                    fields.extend(shares(band.share));
                    fields.extend(number(&transport.shift));
                    fields.extend([transport.least, transport.by_chance].map(|value| format!("{value:.6}")));
                    table.line(fields);
                }
            }
        }
    }
    table.done()
}

/// Number of columns of [`skid_csv`].
const COLUMNS: usize = 27;
