//! Page walks as text.

use crate::group_table::{Measure, groups_table, key_column, short_text};
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{cycles, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use crate::tlb::{TlbEvent, TlbView, Walks};
use precise_model::digits::thousands;
use precise_model::keys::Key;
use precise_model::text::wrap;

/// Formats for each event how addresses were translated, the page walks by group, the verdict, and
/// the explanation of the terms.
pub fn tlb_text(view: &TlbView, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let samples = event.levels.total.count.saturating_add(event.without);
        out += &header(&view.run, &event.event, samples, options);
        out += &format!("\n{}\n", options.style.paint(Tint::Heading, "How addresses were translated"));
        let mut measures = vec![Measure::Share, Measure::Samples];
        if event.levels.list.iter().any(|g| g.measures.latency_max > 0) {
            measures.extend([Measure::Average, Measure::Maximum]);
        }
        out += &groups_table(&event.levels, &[Key::Op, Key::Tlb], &measures, &event.event.unit, options);
        if event.levels.too_few.is_none() {
            out += &walks(view, event, options);
        }
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    if view.events.iter().all(|event| event.walks.is_empty()) {
        return out;
    }
    out + &legend(
        &[
            "Walk rate: share of the accesses that no TLB served. Share: share of all page walks. Both \
             with their 95% intervals.",
            "Walked, Others: average latency in core cycles of the accesses with and without a page \
             walk: the walk and the data together.",
        ],
        options,
    )
}

fn walks(view: &TlbView, event: &TlbEvent, options: &TextOptions) -> String {
    let all = &event.all;
    if all.walked == 0 {
        return format!("\nNone of {} accesses needed a page walk.\n", thousands(all.accesses));
    }
    let mut line = format!(
        "\n{} of the accesses needed a page walk: {} of {}.",
        share(&all.rate),
        thousands(all.walked),
        thousands(all.accesses)
    );
    if let (Some(walked), Some(other)) = (all.walked_average, all.other_average) {
        line += &format!(
            " They took {} cycles on average, the other accesses {} cycles.",
            cycles(walked),
            cycles(other)
        );
    }
    let mut out = format!("\n{}\n", wrap(line.trim_start(), options.width, 0));
    if !event.sizes.is_empty() {
        out += &table(&event.sizes, &[Key::PageSize], (0, 0), options);
    }
    if !view.by.is_empty() {
        out += &table(&event.walks, &view.by, event.left_out, options);
    }
    out
}

/// Formats the table of page walks by group.
fn table(list: &[Walks], by: &[Key], left_out: (usize, u64), options: &TextOptions) -> String {
    let mut columns =
        vec![TableColumn::number("Walk rate"), TableColumn::number("Share"), TableColumn::number("Walks")];
    let timed = list.iter().any(|w| w.walked_average.is_some());
    if timed {
        columns.extend([TableColumn::number("Walked"), TableColumn::number("Others")]);
    }
    columns.extend(by.iter().map(|key| key_column(*key)));
    let mut table = Table::new(columns);
    for walks in list {
        table.row(cells(walks, by, timed));
    }
    let (groups, rest) = left_out;
    if groups > 0 {
        let mut row = vec![String::new(), String::new(), thousands(rest)];
        row.resize(if timed { 5 } else { 3 }, String::new());
        row.push(format!("({} more)", thousands(groups as u64)));
        table.row(row);
    }
    format!("\n{}", table.render(options.table_width(), options.style))
}

fn cells(walks: &Walks, by: &[Key], timed: bool) -> Vec<String> {
    let average = |a: Option<f64>| a.map_or_else(|| "-".to_owned(), cycles);
    let mut cells = vec![share(&walks.rate), share(&walks.share), thousands(walks.walked)];
    if timed {
        cells.extend([average(walks.walked_average), average(walks.other_average)]);
    }
    cells.extend(walks.values.iter().zip(by).map(|(value, key)| short_text(&value.label(), *key)));
    cells
}
