//! The result of `precise chase` as CSV.

use crate::chase::Chase;
use crate::csv::{CsvLines, NOTHING, average, shares};
use precise_code::Dependence;

/// Formats the result of `precise chase` as CSV: one line per load.
pub fn chase_csv(chase: &Chase, separator: &str) -> String {
    let mut table =
        CsvLines::new(separator, &["event", "waits_for", "hops", "function", "module", "offset"], &[]);
    table.header(&["instruction", "file", "line", "address_from", "samples"], &[]);
    table.header(
        &["share", "share_low", "share_high"],
        &["latency_share", "latency_share_low", "latency_share_high"],
    );
    table.header(&["latency_avg", "level"], &[]);
    for event in &chase.events {
        for site in &event.sites {
            let hops = match site.waits_for {
                Dependence::Chase { hops } => hops.to_string(),
                _ => String::new(),
            };
            let place = site.at.place.as_ref();
            let from: Vec<_> = site.address_from.iter().map(|from| format!("{:#x}", from.offset)).collect();
            let mut fields = vec![
                event.event.name.clone(),
                site.kind().tag().to_owned(),
                hops,
                site.function.clone(),
                site.module.clone(),
                format!("{:#x}", site.at.offset),
                site.at.instruction.clone(),
                place.map_or_else(String::new, |place| place.file.clone()),
                place.map_or_else(String::new, |place| place.line.to_string()),
                from.join(" "),
                site.measured.samples.to_string(),
            ];
            fields.extend(shares(site.measured.share));
            fields.extend(site.latency_share.map_or(NOTHING, shares));
            fields.push(average(site.measured.average));
            fields.push(site.measured.level.as_ref().map_or_else(String::new, |most| most.level.clone()));
            table.line(fields);
        }
    }
    table.done()
}
