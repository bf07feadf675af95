//! Annotated code as CSV.

use crate::annotate::Annotation;
use crate::code::PlaceSamples;
use crate::csv::{CsvLines, average, percentile, shares};
use precise_code::SourceLine;

const MEASURES: [&str; 9] = [
    "share_low",
    "share_high",
    "latency_avg",
    "latency_p99",
    "latency_p99_low",
    "latency_p99_high",
    "level",
    "level_share",
    "source",
];

/// Formats annotated code as CSV: one line per instruction, or one per source line if `lines` is
/// set.
pub fn annotate_csv(annotation: &Annotation, lines: bool, separator: &str) -> String {
    let place = ["file", "line", "inlined_function"];
    let first: &[&str] = if lines {
        &["event", "function", "module"]
    } else {
        &["event", "function", "module", "offset", "instruction"]
    };
    let mut table = CsvLines::new(separator, first, &[]);
    table.header(&place, &["samples", "share"]);
    table.header(&MEASURES, &[]);
    for event in &annotation.events {
        for function in &event.functions {
            let common = [event.event.name.clone(), function.name.clone(), function.module.clone()];
            if lines {
                for line in &function.lines {
                    let mut fields = common.to_vec();
                    fields.extend(where_from(line.place.as_ref()));
                    fields.extend(measures(&line.measured));
                    fields.push(line.source.clone().unwrap_or_default());
                    table.line(fields);
                }
                continue;
            }
            for listed in &function.instructions {
                let mut fields = common.to_vec();
                fields.extend([format!("{:#x}", listed.offset), listed.text.clone()]);
                fields.extend(where_from(listed.frames.first()));
                fields.extend(measures(&listed.measured));
                fields.push(listed.source.clone().unwrap_or_default());
                table.line(fields);
            }
        }
    }
    table.done()
}

fn where_from(place: Option<&SourceLine>) -> [String; 3] {
    place.map_or([const { String::new() }; 3], |place| {
        [place.file.clone(), place.line.to_string(), place.function.clone()]
    })
}

fn measures(measured: &PlaceSamples) -> Vec<String> {
    let mut fields = vec![measured.samples.to_string()];
    fields.extend(shares(measured.share));
    fields.push(average(measured.average));
    fields.extend(percentile(measured.p99));
    fields.extend(match &measured.level {
        None => [const { String::new() }; 2],
        Some(most) => [most.level.clone(), format!("{:.6}", most.share.value)],
    });
    fields
}
