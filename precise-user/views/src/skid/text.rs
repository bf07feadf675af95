//! The result of `precise skid` as text.

use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{percent, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use crate::skid::{Blamed, FunctionSkid, Skid, SkidPair};
use crate::stats::{Band, Difference, Transport};
use precise_code::SourceLine;
use precise_model::CompactSort as _;
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};

/// Formats for each pair the errors of an ordinary profile, the lines, the distances, and both
/// verdicts.
pub fn skid_text(skid: &Skid, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, pair) in skid.pairs.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&skid.run, &pair.precise, pair.samples[0], options);
        out += &header(&skid.run, &pair.plain, pair.samples[1], options);
        out.push('\n');
        out += &body(pair, options);
        out.push('\n');
        out += &notes(&pair.notes, options);
        out += &verdict(&pair.precise, true, options);
        out += &verdict(&pair.plain, true, options);
    }
    if skid.pairs.iter().all(|pair| pair.too_few.is_some()) {
        return out;
    }
    out + &legend(
        &[
            "Precise, Plain: share of the samples with and without precision; in 95% of runs the true \
             value is within ± percentage points of it. Excess: Plain minus Precise, percentage points.",
            "Wrong: lines and functions whose share differs by more than sampling noise explains (5%). \
             The surplus of one line belongs to others, so at least this share of the plain samples is \
             wrong.",
            "Distance: no precise sample has a known plain counterpart, so samples are paired such that \
             they move the least; the mean shift is right for any pairing. A sample that skids past the \
             end of a loop lands at its start; such rows are marked \"back\".",
        ],
        options,
    )
}

fn body(pair: &SkidPair, options: &TextOptions) -> String {
    if let Some(needed) = pair.too_few {
        return too_few(pair.samples[0].min(pair.samples[1]), needed, options);
    }
    let mut out = conclusion(pair, options);
    out += &blamed("Wrongly blamed lines", &pair.wrong_lines, pair.left_out[1], options);
    if !pair.wrong_functions.is_empty() {
        out += &blamed("Wrongly blamed functions", &pair.wrong_functions, pair.left_out[0], options);
    }
    for function in &pair.functions {
        out += &distances(function, options);
    }
    out
}

fn conclusion(pair: &SkidPair, options: &TextOptions) -> String {
    let at_least = |d: &Difference| {
        format!("{} (95%: {} to {})", percent(d.value), percent(d.low.max(0.0)), percent(d.high))
    };
    let (tint, mut text) = match &pair.wrong_line {
        Some(wrong) if wrong.value > 0.0 => {
            (Tint::Warning, format!("At least {} of the plain samples blame the wrong line", at_least(wrong)))
        }
        _ => {
            (Tint::Good, "No line's share differs significantly between plain and precise samples".to_owned())
        }
    };
    text += &match &pair.wrong_function {
        Some(wrong) if wrong.value > 0.0 => format!(", {} the wrong function.", at_least(wrong)),
        _ => "; no function's share does.".to_owned(),
    };
    if let Some(kernel) = pair.into_kernel.filter(|kernel| kernel.low > 0.0) {
        text += &format!(" {} of them blame the kernel for user code.", at_least(&kernel));
    }
    options.style.paint(tint, &wrap(&text, options.width, 0)) + "\n"
}

fn blamed(title: &str, list: &[Blamed], left_out: usize, options: &TextOptions) -> String {
    if list.is_empty() {
        return String::new();
    }
    let columns = vec![
        TableColumn::number("Excess"),
        TableColumn::number("Precise"),
        TableColumn::number("Plain"),
        TableColumn::text(title, Cut::End),
    ];
    let mut table = Table::new(columns);
    for one in list {
        let name = match &one.place {
            Some(place) => {
                let source = one.source.as_deref().unwrap_or_default().trim();
                format!("{}  {source}", position(place))
            }
            None => format!("{} in {}", one.function, one.module),
        };
        let excess = format!("{:+.1} ±{:.1}", one.excess.value * 100.0, half(&one.excess) * 100.0);
        table.row(vec![excess, share(&one.precise), share(&one.plain), name.trim_end().to_owned()]);
    }
    if left_out > 0 {
        let mut row = vec![String::new(); 3];
        row.push(format!("({} more)", thousands(left_out as u64)));
        table.row(row);
    }
    format!("\n{}", table.render(options.table_width(), options.style))
}

fn distances(function: &FunctionSkid, options: &TextOptions) -> String {
    let title = format!(
        "{} in {}: {} of the precise samples, {} of the plain",
        sanitize(&function.function),
        sanitize(&function.module),
        share(&function.precise),
        share(&function.plain),
    );
    let mut out = format!("\n{}\n", options.style.paint(Tint::Heading, &wrap(&title, options.width, 2)));
    if let Some(needed) = function.too_few {
        return out
            + &format!("Fewer than {} samples on one side, so there are no distances.\n", thousands(needed));
    }
    if let Some(reason) = function.no_code {
        let text = format!("The code cannot be read ({}), so distances are in lines only.", reason.words());
        out += &format!("{}\n", wrap(&text, options.width, 2));
    }
    for (transport, unit) in [(&function.instructions, "instructions"), (&function.lines, "lines")] {
        if let Some(transport) = transport {
            out += &format!("{}\n", wrap(&moved(transport, unit), options.width, 2));
        }
    }
    let sides = [&function.instructions, &function.lines];
    let mut bands: Vec<(Option<i64>, Option<i64>)> = sides
        .iter()
        .filter_map(|side| side.as_ref())
        .flat_map(|t| &t.bands)
        .map(|b| (b.from, b.to))
        .collect();
    bands.compact_sort_by_key(|(from, _)| from.unwrap_or(i64::MIN));
    bands.dedup();
    if bands.is_empty() {
        return out;
    }
    let columns = vec![
        TableColumn::number("Instructions"),
        TableColumn::number("Lines"),
        TableColumn::text("Distance", Cut::End),
    ];
    let mut table = Table::new(columns);
    for (from, to) in bands {
        let cell = |side: &Option<Transport>| {
            let band = side.as_ref().and_then(|t| t.bands.iter().find(|b| (b.from, b.to) == (from, to)));
            band.map_or_else(String::new, |band: &Band| share(&band.share))
        };
        table.row(vec![cell(sides[0]), cell(sides[1]), words(from, to)]);
    }
    out + &table.render(options.table_width(), options.style)
}

fn moved(transport: &Transport, unit: &str) -> String {
    let shift = &transport.shift;
    let way = if shift.value < 0.0 { "back" } else { "ahead" };
    format!(
        "Mean shift {:.1} ±{:.1} {unit} {way}; at least {:.1} {unit} off on average ({:.1} from \
         sampling noise alone).",
        shift.value.abs(),
        half(shift),
        transport.least,
        transport.by_chance,
    )
}

fn words(from: Option<i64>, to: Option<i64>) -> String {
    match (from, to) {
        (Some(0), Some(0)) => "none".to_owned(),
        (Some(from), Some(to)) if from > 0 => format!("{from} to {to} ahead"),
        (Some(from), Some(to)) => format!("{} to {} back", -to, -from),
        (Some(from), None) => format!("{from} or more ahead"),
        (None, Some(to)) => format!("{} or more back", -to),
        (None, None) => "any".to_owned(),
    }
}

fn half(difference: &Difference) -> f64 {
    (difference.high - difference.value).max(difference.value - difference.low)
}

fn position(place: &SourceLine) -> String {
    format!("{}:{}", place.file.rsplit('/').next().unwrap_or(&place.file), place.line)
}
