//! Annotated code as text.

use crate::annotate::{AnnotatedEvent, AnnotatedFunction, Annotation, ListedInstruction};
use crate::code::PlaceSamples;
use crate::group_table::unranked;
use crate::render::number::{cycles, percent, percent_to, share};
use crate::render::table::{Table, TableColumn};
use crate::render::{TextOptions, Tint};
use crate::run_text::{header, legend, verdict};
use crate::typing::AccessedField;
use precise_code::SourceLine;
use precise_model::digits::{counted, thousands};
use precise_model::text::{Cut, sanitize, wrap};

/// Number of instructions without samples that are shown around a sampled one.
const CONTEXT: usize = 3;

/// How much of a function is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Instructions near the sampled ones, between their source lines.
    Hot,
    /// All instructions.
    All,
    /// One row per source line.
    Lines,
}

/// Formats annotated code as text: for each event its functions and its verdict.
pub fn annotate_text(annotation: &Annotation, detail: Detail, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in annotation.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&annotation.run, &event.event, event.samples, options);
        for function in &event.functions {
            out += &function_text(event, function, detail, options);
        }
        out += &rest(event, options);
        out.push('\n');
        out += &verdict(&event.event, annotation.events.len() > 1, options);
    }
    let levels = annotation.events.iter().flat_map(|e| &e.functions).any(|f| f.measured.level.is_some());
    let timed = annotation.events.iter().any(|e| e.event.has_latency);
    let mut words = vec![
        "Share: share of the function's samples; in 95% of runs the true value is within ± \
            percentage points of it.",
    ];
    if timed {
        words.push("Avg: average latency in core cycles.");
    }
    if levels {
        words.push("Level: the level that served most of the accesses, and its share of them.");
    }
    let known = |f: &AnnotatedFunction| f.instructions.iter().any(|listed| listed.field.is_some());
    if detail != Detail::Lines && annotation.events.iter().flat_map(|e| &e.functions).any(known) {
        words.push("Field: field of the object that the instruction accesses, from debug information.");
    }
    if detail != Detail::Lines {
        words.push("+0x1c: offset from the start of the function, bytes.");
    }
    out + &legend(&words, options)
}

fn function_text(
    event: &AnnotatedEvent,
    function: &AnnotatedFunction,
    detail: Detail,
    options: &TextOptions,
) -> String {
    let title = format!(
        "{} in {}: {}, {} of all",
        sanitize(&function.name),
        sanitize(&function.module),
        counted(function.measured.samples, "sample"),
        share(&function.measured.share).trim(),
    );
    let mut out = format!("\n{}\n", options.style.paint(Tint::Heading, &wrap(&title, options.width, 2)));
    if let Some(needed) = function.too_few {
        out += &unranked(function.measured.samples, needed, options);
    }
    if let Some(reason) = function.no_code {
        let text = format!(
            "The code cannot be shown ({}), so samples are listed by offset. precise needs the same \
             binary at the path that the process used.",
            reason.words()
        );
        out += &options.style.paint(Tint::Warning, &wrap(&text, options.width, 2));
        out.push('\n');
    }
    let fields = detail != Detail::Lines && function.instructions.iter().any(|listed| listed.field.is_some());
    let (timed, level) = (event.event.has_latency, function.measured.level.is_some());
    let columns = Columns { timed, level, fields };
    let title = if detail == Detail::Lines { "Line" } else { "Code" };
    let mut table = columns.table(title);
    match detail {
        Detail::Lines => {
            for line in &function.lines {
                let place = match &line.place {
                    None => "[no line info]".to_owned(),
                    Some(place) => format!("{}:{}", short_path(&place.file), place.line),
                };
                let text = line.source.as_deref().unwrap_or_default().trim();
                table.row(columns.row(&line.measured, None, format!("{place}  {text}")));
            }
        }
        Detail::Hot | Detail::All => instructions(function, detail, &columns, &mut table),
    }
    out + &table.render(options.table_width(), options.style)
}

fn instructions(function: &AnnotatedFunction, detail: Detail, columns: &Columns, table: &mut Table) {
    let shown = shown(&function.instructions, detail);
    let mut last: &[SourceLine] = &[];
    let mut skipped = 0;
    for (listed, shown) in function.instructions.iter().zip(shown) {
        if !shown {
            skipped += 1;
            continue;
        }
        if skipped > 0 {
            table.row(columns.text(None, skipped_over(skipped)));
            skipped = 0;
        }
        if listed.frames != last {
            for line in place_lines(listed) {
                table.row(columns.text(None, line));
            }
            last = &listed.frames;
        }
        let text = format!("  {:>7}  {}", format!("+{:#x}", listed.offset), listed.text);
        let cells = if listed.measured.samples > 0 {
            columns.row(&listed.measured, listed.field.as_ref(), text)
        } else {
            columns.text(listed.field.as_ref(), text)
        };
        table.row(cells);
    }
    if skipped > 0 {
        table.row(columns.text(None, skipped_over(skipped)));
    }
}

fn skipped_over(instructions: u64) -> String {
    format!("… {} without a sample", counted(instructions, "instruction"))
}

/// Returns for each instruction whether it is shown: those with samples, and some around them.
fn shown(instructions: &[ListedInstruction], detail: Detail) -> Vec<bool> {
    let mut shown = vec![detail == Detail::All; instructions.len()];
    for (i, listed) in instructions.iter().enumerate() {
        if listed.measured.samples > 0 {
            let end = (i + CONTEXT + 1).min(instructions.len());
            shown[i.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    shown
}

/// Returns the source line of an instruction, and the lines that it was inlined into.
fn place_lines(listed: &ListedInstruction) -> Vec<String> {
    let Some((innermost, outer)) = listed.frames.split_first() else {
        return vec!["[no line info]".to_owned()];
    };
    let mut lines = Vec::new();
    if let Some(caller) = outer.first() {
        lines.push(format!("{} inlined at {}:{}", innermost.function, short_path(&caller.file), caller.line));
    }
    let text = listed.source.as_deref().unwrap_or_default();
    lines.push(format!("{}:{}  {}", short_path(&innermost.file), innermost.line, text.trim()));
    lines
}

fn rest(event: &AnnotatedEvent, options: &TextOptions) -> String {
    let mut said = Vec::new();
    if event.functions.is_empty() {
        said.push("No sample lies in such a function.".to_owned());
    }
    if event.left_out > 0 {
        let more = counted(event.left_out as u64, "more function");
        let have = if event.left_out == 1 { "has" } else { "have" };
        said.push(format!("{more} {have} samples; -n shows more."));
    }
    if event.nameless > 0 {
        let share = percent(event.nameless as f64 / event.samples as f64);
        said.push(format!(
            "{} ({}) {} in code without a function name: see `precise report --by module,ip`.",
            counted(event.nameless, "sample"),
            share.trim(),
            if event.nameless == 1 { "lies" } else { "lie" },
        ));
    }
    if said.is_empty() {
        return String::new();
    }
    format!("\n{}\n", wrap(&said.join(" "), options.width, 0))
}

pub(crate) fn short_path(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The columns that a listing has.
struct Columns {
    timed: bool,
    level: bool,
    fields: bool,
}

impl Columns {
    fn table(&self, last: &str) -> Table {
        let mut columns = vec![TableColumn::number("Share"), TableColumn::number("Samples")];
        if self.timed {
            columns.push(TableColumn::number("Avg"));
        }
        if self.level {
            columns.push(TableColumn::number("Level"));
        }
        if self.fields {
            columns.push(TableColumn::text("Field", Cut::Middle));
        }
        columns.push(TableColumn::text(last, Cut::End));
        Table::new(columns)
    }

    fn row(&self, measured: &PlaceSamples, field: Option<&AccessedField>, text: String) -> Vec<String> {
        let mut cells = vec![share(&measured.share), thousands(measured.samples)];
        if self.timed {
            cells.push(measured.average.map_or_else(|| "-".to_owned(), cycles));
        }
        if self.level {
            let most = measured.level.as_ref();
            cells.push(most.map_or_else(
                || "-".to_owned(),
                |most| format!("{} {}", most.level.trim_end_matches(" hit"), percent_to(most.share.value, 0)),
            ));
        }
        self.end(cells, field, text)
    }

    fn text(&self, field: Option<&AccessedField>, text: String) -> Vec<String> {
        let numbers = 2 + usize::from(self.timed) + usize::from(self.level);
        self.end(vec![String::new(); numbers], field, text)
    }

    fn end(&self, mut cells: Vec<String>, field: Option<&AccessedField>, text: String) -> Vec<String> {
        if self.fields {
            cells.push(field.map_or_else(String::new, |field| sanitize(&field.to_string())));
        }
        cells.push(text);
        cells
    }
}
