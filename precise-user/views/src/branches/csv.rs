//! Branches as CSV.

use super::Branches;
use crate::csv::{CsvLines, NOTHING, shares};

/// Formats branches as CSV, one line per branch site. Unknown values are empty.
pub fn branches_csv(view: &Branches, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["event", "branch", "module", "line", "kind", "target"], &[]);
    table.header(&["other_targets", "branches", "taken", "taken_low", "taken_high"], &["mispredicted"]);
    table.header(&["rate", "rate_low", "rate_high"], &["share", "share_low", "share_high"]);
    table.header(&["cycles"], &[]);
    for event in &view.events {
        for site in &event.sites {
            let mut fields = vec![event.event.name.clone(), site.place.clone(), site.module.clone()];
            fields.push(site.line.clone().unwrap_or_default());
            fields.push(site.kind.map_or_else(String::new, |kind| kind.words().to_owned()));
            fields.extend(match &site.target {
                Some(target) => [target.to.clone(), target.others.to_string()],
                None => [const { String::new() }; 2],
            });
            fields.push(site.branches.to_string());
            fields.extend(site.taken.map_or(NOTHING, shares));
            fields.push(site.mispredicted.to_string());
            fields.extend(site.rate.map_or(NOTHING, shares));
            fields.extend(shares(site.share));
            fields.push(site.cycles.map_or_else(String::new, |cycles| format!("{cycles:.1}")));
            table.line(fields);
        }
    }
    table.done()
}
