//! CodeAnalyst's derived events as text.

use std::collections::BTreeMap;

use crate::again::Again;
use crate::derived::{Derived, DerivedView};
use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::number::{cycles, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize};

/// Formats the derived events of each IBS event, and why some are unknown.
pub fn derived_text(view: &DerivedView, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&view.run, &event.event, event.samples, options);
        out.push('\n');
        match event.too_few {
            Some(needed) => out += &too_few(event.samples, needed, options),
            None => out += &table(&event.derived, options),
        }
        out.push('\n');
        out += &notes(&unknown(&event.derived), options);
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    let mut last = Vec::new();
    if !view.absent.is_empty() {
        let (first, end) = (&view.absent[0], &view.absent[view.absent.len() - 1]);
        last.push(format!(
            "Unknown: {} events from {} to {}, because the capture has no such samples. `{}` records both \
             kinds.",
            view.absent.len(),
            first.abbreviation,
            end.abbreviation,
            view.record.as_ref().map_or("", Again::command)
        ));
    }
    if !view.left_out.is_empty() {
        last.push(format!(
            "Left out, because they count on another basis and must not be added: {}.",
            sanitize(&view.left_out.join(", "))
        ));
    }
    if !last.is_empty() {
        out.push('\n');
        out += &notes(&last, options);
    }
    out + &legend(
        &[
            "Share: share of the parent event (`of` in --json and -x): attempted fetches, all ops, \
             branches, load/store ops or loads. For cycles: the average.",
            "These are counts of samples. Do not combine them with the counts of hardware counters.",
        ],
        options,
    )
}

fn table(derived: &[Derived], options: &TextOptions) -> String {
    let mut table = Table::new(vec![
        TableColumn::text("Event", Cut::End),
        TableColumn::number("Count"),
        TableColumn::number("Share"),
        TableColumn::text("What it counts", Cut::End),
    ]);
    for one in derived {
        let part = match (one.share, one.average) {
            (Some(part), _) => share(&part),
            (_, Some(average)) => format!("{} each", cycles(average)),
            _ => "-".to_owned(),
        };
        let value = one.value.map_or_else(|| "unknown".to_owned(), thousands);
        table.row(vec![one.abbreviation.to_owned(), value, part, one.meaning.to_owned()]);
    }
    table.render(options.table_width(), options.style)
}

/// Returns one sentence for each reason.
fn unknown(derived: &[Derived]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in derived {
        if let Some(why) = &one.unknown {
            reasons.entry(why).or_default().push(one.abbreviation);
        }
    }
    reasons.into_iter().map(|(why, events)| format!("Unknown: {}: {why}.", events.join(", "))).collect()
}
