//! The views of the front end as lines of separated values.

use super::views_csv::{Lines, average};
use crate::branches::Branches;
use crate::derived::DerivedView;
use crate::fetch::{Fact, FetchView};
use crate::report::csv::shares;

const NOTHING: [String; 3] = [const { String::new() }; 3];

/// Fetches: a line per group. What is not known is empty.
pub fn fetch_csv(view: &FetchView, separator: &str) -> String {
    let mut table = Lines::new(separator, &["events"], &view.by);
    table.header(&["share", "share_low", "share_high", "latency_avg"], &[]);
    for fact in Fact::ALL {
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

/// Branches: a line per site. What is not known is empty.
pub fn branches_csv(view: &Branches, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event", "branch", "module", "line", "kind", "target"], &[]);
    table.header(&["other_targets", "branches", "taken", "taken_low", "taken_high"], &["mispredicted"]);
    table.header(&["rate", "rate_low", "rate_high"], &["share", "share_low", "share_high"]);
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
            table.line(fields);
        }
    }
    table.done()
}

/// Derived events: a line each, those of which the capture has no samples too. What is not known is empty, with its reason.
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
