//! Branches as text.

use crate::branches::{BranchBasis, BranchEvent, BranchSite, Branches};
use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::number::share;
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::text::{Cut, wrap};

/// Formats for each event how often branches were mispredicted, and which ones.
pub fn branches_text(view: &Branches, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&view.run, &event.event, event.branches.saturating_add(event.without), options);
        out.push('\n');
        match event.too_few {
            Some(needed) => out += &too_few(event.branches, needed, options),
            None => out += &sites(event, options),
        }
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    if view.events.iter().all(|event| event.sites.is_empty()) {
        return out;
    }
    let rates = view.events.iter().any(|event| event.basis == BranchBasis::Branches);
    out + &legend(
        &[
            if rates {
                "Misp.: mispredicted samples. Rate: share of the samples of this branch that were \
                 mispredicted. Taken: share that was taken. Both with their 95% intervals."
            } else {
                "Misp.: samples, each a misprediction. Share: share of all mispredictions, with its 95% \
                 interval."
            },
            "Target +0x1c: in the same function. (+2): two more targets were sampled.",
        ],
        options,
    )
}

fn sites(event: &BranchEvent, options: &TextOptions) -> String {
    let mut out = String::new();
    if let Some(rate) = &event.rate {
        let line = format!(
            "{} of the branches were mispredicted: {} of {}.",
            share(rate),
            thousands(event.mispredicted),
            thousands(event.branches)
        );
        out += &format!("{}\n\n", wrap(&line, options.width, 0));
    }
    let rates = event.basis == BranchBasis::Branches;
    let mut columns = vec![TableColumn::number("Misp.")];
    if rates {
        columns.extend([TableColumn::number("Rate"), TableColumn::number("Taken")]);
    } else {
        columns.push(TableColumn::number("Share"));
    }
    let timed = event.sites.iter().any(|site| site.cycles.is_some());
    if timed {
        columns.push(TableColumn::number("Cycles"));
    }
    columns.extend([
        TableColumn::text("Kind", Cut::End),
        TableColumn::text("Branch", Cut::Middle),
        TableColumn::text("Target", Cut::Start),
    ]);
    let mut table = Table::new(columns);
    for site in &event.sites {
        let part = |part| Option::map_or(part, "-".to_owned(), |part| share(&part));
        let mut cells = vec![thousands(site.mispredicted)];
        if rates {
            cells.extend([part(site.rate), part(site.taken)]);
        } else {
            cells.push(share(&site.share));
        }
        if timed {
            cells.push(site.cycles.map_or("-".to_owned(), |cycles| format!("{cycles:.0}")));
        }
        cells.extend([kind(site), site.place.clone(), target(site)]);
        table.row(cells);
    }
    let (sites, rest) = event.left_out;
    if sites > 0 {
        let mut cells = vec![thousands(rest), String::new()];
        cells.resize(3 + usize::from(rates) + usize::from(timed), String::new());
        cells.push(format!("({} more)", thousands(sites as u64)));
        table.row(cells);
    }
    out + &table.render(options.table_width(), options.style)
}

fn kind(site: &BranchSite) -> String {
    match (site.kind, site.no_code) {
        (Some(kind), _) => kind.words().to_owned(),
        (None, Some(reason)) => format!("[{}]", reason.words()),
        (None, None) => "not a branch".to_owned(),
    }
}

fn target(site: &BranchSite) -> String {
    match &site.target {
        None => "unknown".to_owned(),
        Some(target) if target.others > 0 => format!("{} (+{})", target.to, target.others),
        Some(target) => target.to.clone(),
    }
}
