//! Fetches as text.

use crate::fetch::{FetchBasis, FetchFact, FetchGroup, FetchTable, FetchView};
use crate::group_table::{key_column, short_text, too_few};
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{cycles, share, short};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::text::Cut;

/// Formats the outcomes of all fetches, then the code of the slow ones.
pub fn fetch_text(view: &FetchView, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, section) in view.sections.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for event in &section.events {
            out += &header(&view.run, event, samples_of(section, &event.name), options);
        }
        out.push('\n');
        match section.too_few {
            Some(needed) => out += &too_few(section.samples, needed, options),
            None => {
                out += &facts(section, options);
                out.push('\n');
                out += &groups(view, section, options);
            }
        }
        out.push('\n');
        out += &notes(&section.notes, options);
        for event in &section.events {
            out += &verdict(event, view.sections.len() > 1 || section.events.len() > 1, options);
        }
    }
    if view.sections.iter().any(|section| section.basis == FetchBasis::Fetches && section.too_few.is_none()) {
        out += &legend(
            &[
                "Killed: abandoned before it asked ITLB and cache. Attempted: all other fetches; shares \
                 are relative to these. Aborted: not delivered to the decoder, as after a mispredicted \
                 branch.",
                "Time: share of the cycles of all attempted fetches. Avg: average cycles per fetch.",
            ],
            options,
        );
    }
    out
}

/// Returns the number of samples of one event. In a section with several events, this is the number
/// of its fact.
fn samples_of(section: &FetchTable, name: &str) -> u64 {
    if section.events.len() == 1 {
        return section.samples;
    }
    let fact = FetchFact::of_event(name);
    section.facts.iter().find(|known| Some(known.fact) == fact).and_then(|known| known.samples).unwrap_or(0)
}

fn facts(section: &FetchTable, options: &TextOptions) -> String {
    let retired = section.basis == FetchBasis::Retired;
    let mut table = Table::new(vec![
        TableColumn::number(if retired { "Events" } else { "Share" }),
        TableColumn::number("Samples"),
        TableColumn::text("Outcome", Cut::End),
    ]);
    for known in &section.facts {
        let samples = known.samples.map_or_else(|| "unknown".to_owned(), thousands);
        let first = match (known.share, known.period_sum) {
            (Some(part), _) => share(&part),
            (None, Some(events)) => short(events),
            (None, None) => "-".to_owned(),
        };
        table.row(vec![first, samples, known.fact.words().to_owned()]);
    }
    let title = if retired { "Instructions that waited for the front end" } else { "All fetches" };
    format!(
        "{}\n{}",
        options.style.paint(Tint::Heading, title),
        table.render(options.table_width(), options.style)
    )
}

fn groups(view: &FetchView, section: &FetchTable, options: &TextOptions) -> String {
    let retired = section.basis == FetchBasis::Retired;
    // Columns: for IBS fetches the most informative facts, for Intel the recorded ones.
    let known = |fact: &FetchFact| section.facts.iter().any(|k| k.fact == *fact && k.samples.is_some());
    let mut shown: Vec<(FetchFact, &str)> = if retired {
        vec![
            (FetchFact::Waited, "Waited"),
            (FetchFact::OpCacheMiss, "DSB miss"),
            (FetchFact::IcMiss, "IC miss"),
            (FetchFact::L2Miss, "L2 miss"),
            (FetchFact::ItlbMiss, "ITLB miss"),
            (FetchFact::ItlbWalk, "Walk"),
        ]
    } else {
        vec![(FetchFact::Aborted, "Aborted"), (FetchFact::IcMiss, "IC miss")]
    };
    shown.retain(|(fact, _)| known(fact));
    let timed = section.groups.iter().any(|group| group.average.is_some());
    let mut columns = vec![TableColumn::number(if timed { "Time" } else { "Share" })];
    if !retired {
        columns.push(TableColumn::number("Fetches"));
    }
    columns.extend(shown.iter().map(|(_, title)| TableColumn::number(title)));
    if timed {
        columns.push(TableColumn::number("Avg"));
    }
    columns.extend(view.by.iter().map(|key| key_column(*key)));
    let width = columns.len() - view.by.len();
    let mut table = Table::new(columns);
    for group in &section.groups {
        let mut cells = vec![share(&group.share)];
        if !retired {
            cells.push(samples(group, FetchFact::Attempted));
        }
        cells.extend(shown.iter().map(
            |(fact, _)| match group.facts.iter().find(|known| known.fact == *fact) {
                Some(known) if !retired => known.share.map_or_else(|| "-".to_owned(), |part| share(&part)),
                _ => samples(group, *fact),
            },
        ));
        if timed {
            cells.push(group.average.map_or_else(|| "-".to_owned(), cycles));
        }
        cells.extend(group.values.iter().zip(&view.by).map(|(value, key)| short_text(&value.label(), *key)));
        table.row(cells);
    }
    if section.left_out > 0 {
        let mut cells = vec![String::new(); width];
        cells.push(format!("({} more)", thousands(section.left_out as u64)));
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

fn samples(group: &FetchGroup, fact: FetchFact) -> String {
    let known = group.facts.iter().find(|known| known.fact == fact).and_then(|known| known.samples);
    known.map_or_else(|| "-".to_owned(), thousands)
}
