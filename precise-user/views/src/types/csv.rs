//! Types and fields as CSV.

use super::TypeProfile;
use crate::csv::{CsvLines, NOTHING, SHARE, average, shares};

/// Formats one line per type, or with `fields` one line per field.
pub fn types_csv(view: &TypeProfile, fields: bool, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "type", "size"], &[]);
    if fields {
        table.header(&["offset", "field_size", "field", "field_type"], &[]);
    }
    table.header(&["samples"], &[]);
    table.header(&SHARE, &[]);
    if !fields {
        table.header(&["latency_share", "latency_share_low", "latency_share_high"], &[]);
    }
    table.header(&["loads", "stores", "latency_avg"], &[]);
    table.header(if fields { &["threads"] } else { &["confirmed", "contradicted", "not_checkable"] }, &[]);
    for event in &view.events {
        for ty in &event.types {
            let first = [event.event.name.clone(), ty.name.clone(), ty.size.to_string()];
            if !fields {
                let mut line = first.to_vec();
                line.push(ty.samples.to_string());
                line.extend(shares(ty.share));
                line.extend(ty.latency_share.map_or(NOTHING, shares));
                line.extend([ty.loads.to_string(), ty.stores.to_string(), average(ty.average)]);
                let checked = ty.checked;
                let checked = [checked.confirmed, checked.contradicted, checked.not_checkable];
                line.extend(checked.map(|n| n.to_string()));
                table.line(line);
                continue;
            }
            for field in &ty.fields {
                let mut line = first.to_vec();
                line.extend([field.offset.to_string(), field.size.to_string()]);
                line.extend([field.name.clone(), field.type_name.clone(), field.samples.to_string()]);
                line.extend(shares(field.share));
                line.extend([field.loads.to_string(), field.stores.to_string(), average(field.average)]);
                line.push(field.threads.map_or_else(String::new, |threads| threads.to_string()));
                table.line(line);
            }
        }
    }
    table.done()
}
