//! The result of `precise chase` as text.

use crate::chase::{Chase, ChaseEvent, LoadBound, LoadSite, Reference, WaitKind};
use crate::code::PlaceSamples;
use crate::group_table::too_few;
use crate::render::number::{cycles, percent, percent_to, share};
use crate::render::table::{Table, TableColumn};
use crate::render::{TextOptions, Tint};
use crate::run_text::{header, legend, notes, verdict};
use crate::stats::Share;
use precise_code::{Dependence, SourceLine};
use precise_model::digits::thousands;
use precise_model::text::{Cut, fit, sanitize, wrap};

/// Formats for each event the conclusion, what its loads wait for, the loads, and the verdict.
pub fn chase_text(chase: &Chase, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in chase.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&chase.run, &event.event, event.samples, options);
        out.push('\n');
        out += &body(event, options);
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, chase.events.len() > 1, options);
    }
    if chase.events.iter().all(|event| event.kinds.is_empty()) {
        return out;
    }
    let timed = chase.events.iter().any(|event| event.by_latency);
    let share = if timed {
        "Latency: share of the latency of all sampled loads; in 95% of runs the true value is within ± \
         percentage points of it. Avg: core cycles."
    } else {
        "Share: share of the sampled loads; in 95% of runs the true value is within ± percentage points \
         of it."
    };
    out + &legend(
        &[
            share,
            "The dependence of a load is derived from the code of its function and its innermost loop. \
             Chase, N a round: a load needs its own result of the previous round, through N loads.",
            "Unknown: how many loads were in flight when a sample was taken (the hardware does not \
             record it), and dependences across calls.",
        ],
        options,
    )
}

fn body(event: &ChaseEvent, options: &TextOptions) -> String {
    if let Some(needed) = event.too_few {
        return if event.loads == 0 {
            "No load in known code was sampled.\n".to_owned()
        } else {
            too_few(event.loads, needed, options)
        };
    }
    let columns = Columns {
        timed: event.by_latency,
        level: event.kinds.iter().any(|kind| kind.measured.level.is_some()),
    };
    let mut out = conclusion(event, options);
    let mut table = columns.table(&[TableColumn::text("What loads wait for", Cut::End)]);
    for kind in &event.kinds {
        table.row(columns.row(&kind.measured, kind.latency_share, vec![kind.kind.long().to_owned()]));
    }
    out.push('\n');
    out += &table.render(options.table_width(), options.style);
    out.push('\n');
    out + &sites(event, options)
}

/// Formats the loads: one table row each, followed by its details, wrapped to the width of the
/// text.
fn sites(event: &ChaseEvent, options: &TextOptions) -> String {
    let columns = Columns { timed: event.by_latency, level: false };
    let mut table =
        columns.table(&[TableColumn::text("Kind", Cut::End), TableColumn::text("Load", Cut::End)]);
    for site in &event.sites {
        let load = format!("{}+{:#x}  {}", site.function, site.at.offset, words(&site.at.instruction));
        table.row(columns.row(&site.measured, site.latency_share, vec![what(site), load]));
    }
    let (more, samples) = event.left_out;
    if more > 0 {
        let mut cells = columns.blank();
        cells[1] = thousands(samples);
        cells.extend([String::new(), format!("({} more)", thousands(more as u64))]);
        table.row(cells);
    }
    let mut out = String::new();
    let table = table.render(options.table_width(), options.style);
    let details = std::iter::once(Vec::new()).chain(event.sites.iter().map(details));
    for (row, details) in table.lines().zip(details.chain(std::iter::repeat(Vec::new()))) {
        out += row;
        out.push('\n');
        for line in details {
            let line = format!("      {}", sanitize(&line));
            out += &options.style.paint(Tint::Dim, &fit(&line, options.width, Cut::End));
            out.push('\n');
        }
    }
    out
}

/// Returns the conclusion, in one or two sentences.
fn conclusion(event: &ChaseEvent, options: &TextOptions) -> String {
    let part = |kinds: &[WaitKind]| {
        let kinds = event.kinds.iter().filter(|kind| kinds.contains(&kind.kind));
        percent(kinds.fold(0.0, |sum, kind| sum + kind.latency_share.unwrap_or(kind.measured.share).value))
    };
    let serial = part(&[WaitKind::Chase, WaitKind::BehindChase]);
    let free = part(&[WaitKind::Gather, WaitKind::Independent]);
    let belong = if event.by_latency {
        "of the latency of the sampled loads belongs"
    } else {
        "of the sampled loads belong"
    };
    let (tint, mut text) = match event.verdict {
        Some(LoadBound::Latency) => (
            Tint::Warning,
            format!(
                "{}: {serial} {belong} to pointer chases, where each load waits for the previous \
                 one and bandwidth is idle. Use fewer hops, closer memory, or several chases at once.",
                if event.by_latency { "LATENCY-BOUND" } else { "POINTER CHASE" },
            ),
        ),
        Some(LoadBound::Bandwidth) => (
            Tint::Good,
            format!(
                "NO POINTER CHASE: {free} {belong} to independent loads. They are limited by \
                 bandwidth or by the number of misses that a core can have in flight. Move fewer bytes, \
                 or improve locality."
            ),
        ),
        Some(LoadBound::Undecided) | None => (
            Tint::Heading,
            format!(
                "UNDECIDED: {serial} {belong} to pointer chases and {free} to independent loads; \
                 neither is more than half with 95% confidence."
            ),
        ),
    };
    if let Some(under_way) = &event.under_way {
        text += &format!(
            " {} of the loads hit a miss already in flight; if there are many of these, accesses overlap.",
            share(under_way)
        );
    }
    options.style.paint(tint, &wrap(&text, options.width, 0)) + "\n"
}

fn what(site: &LoadSite) -> String {
    match site.waits_for {
        Dependence::Chase { hops } => format!("{}, {hops} a round", WaitKind::Chase.short()),
        _ => site.kind().short().to_owned(),
    }
}

/// Returns the details of a load: its source line, the level that served it, the loads that its
/// address is computed from, and the other loads of its loop.
fn details(site: &LoadSite) -> Vec<String> {
    let mut lines: Vec<String> = line(&site.at).into_iter().collect();
    if let Some(most) = &site.measured.level {
        lines.push(format!("{} of it: {}", percent(most.share.value), most.level));
    }
    for from in &site.address_from {
        let place = from.place.as_ref().map_or_else(String::new, |place| format!("  {}", position(place)));
        lines.push(format!("address: +{:#x}  {}{place}", from.offset, words(&from.instruction)));
    }
    lines.extend(site.why().map(|why| why.words().to_owned()));
    if !site.beside.is_empty() {
        let beside: Vec<_> =
            site.beside.iter().map(|(kind, count)| format!("{count} {}", kind.short())).collect();
        lines.push(format!("other loads of the loop: {}", beside.join(", ")));
    }
    lines
}

fn words(instruction: &str) -> String {
    instruction.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line(at: &Reference) -> Option<String> {
    let place = at.place.as_ref()?;
    Some(
        format!("{}  {}", position(place), at.source.as_deref().unwrap_or_default().trim())
            .trim_end()
            .to_owned(),
    )
}

fn position(place: &SourceLine) -> String {
    format!("{}:{}", place.file.rsplit('/').next().unwrap_or(&place.file), place.line)
}

struct Columns {
    timed: bool,
    level: bool,
}

impl Columns {
    fn table(&self, last: &[TableColumn]) -> Table {
        let title = if self.timed { "Latency" } else { "Share" };
        let mut columns = vec![TableColumn::number(title), TableColumn::number("Samples")];
        if self.timed {
            columns.push(TableColumn::number("Avg"));
        }
        if self.level {
            columns.push(TableColumn::number("Level"));
        }
        columns.extend_from_slice(last);
        Table::new(columns)
    }

    fn blank(&self) -> Vec<String> {
        vec![String::new(); 2 + usize::from(self.timed) + usize::from(self.level)]
    }

    fn row(&self, measured: &PlaceSamples, latency: Option<Share>, last: Vec<String>) -> Vec<String> {
        let mut cells = vec![share(&latency.unwrap_or(measured.share)), thousands(measured.samples)];
        if self.timed {
            cells.push(measured.average.map_or_else(|| "-".to_owned(), cycles));
        }
        if self.level {
            cells.push(measured.level.as_ref().map_or_else(
                || "-".to_owned(),
                |most| format!("{} {}", most.level.trim_end_matches(" hit"), percent_to(most.share.value, 0)),
            ));
        }
        cells.extend(last);
        cells
    }
}
