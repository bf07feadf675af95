//! Hot lines on the HTML page: the functions with the most samples, line by line and instruction by
//! instruction.

use super::text::short_path;
use super::{AnnotateOptions, AnnotatedEvent, AnnotatedFunction, Annotation, annotate};
use crate::ViewError;
use crate::code::{Code, PlaceSamples};
use crate::markup::tables::{ColumnKind, HtmlCell, sortable};
use crate::markup::text;
use crate::render::number::{cycles, percent, share};
use crate::view::{Section, SectionPlace};
use precise_model::digits::{counted, thousands};
use precise_model::{Capture, Dimension};

/// Number of functions per event whose code is shown.
const FUNCTIONS: usize = 3;
/// The largest number of lines shown per function.
const LINES: usize = 30;

/// Returns the section of the page; `None` if the run did not record instructions.
pub(super) fn section(capture: &Capture, files: &mut dyn Code) -> Result<Option<Section>, ViewError> {
    if !capture.meta.dimensions.contains(&Dimension::Ip) {
        return Ok(None);
    }
    let options = AnnotateOptions { limit: FUNCTIONS, ..AnnotateOptions::default() };
    let body = functions(&annotate(capture, &options, files)?);
    Ok(Some(Section { id: "code", title: "Hot lines", place: SectionPlace::Code, body, numbers: None }))
}

/// Returns the code of each event.
fn functions(annotation: &Annotation) -> String {
    if annotation.events.iter().all(|event| event.functions.is_empty()) {
        return "<p>No function of these samples has a name.</p>\n".to_owned();
    }
    let mut out = String::new();
    for event in &annotation.events {
        for function in &event.functions {
            out += &of_function(event, function, annotation.events.len() > 1);
        }
    }
    out
}

fn of_function(event: &AnnotatedEvent, function: &AnnotatedFunction, one_of_several: bool) -> String {
    let measured = &function.measured;
    let of = if one_of_several { format!(" of {}", event.event.name) } else { String::new() };
    let mut out = format!(
        "<h3><code>{}</code></h3>\n<p class=\"soft\">in {}: {}{}, {} of all</p>\n",
        text(&function.name),
        text(&function.module),
        counted(measured.samples, "sample"),
        text(&of),
        share(&measured.share)
    );
    if let Some(needed) = function.too_few {
        let needed = thousands(needed);
        out +=
            &format!("<p>Its lines are in no reliable order, for which {needed} samples are needed.</p>\n");
    }
    if let Some(reason) = function.no_code {
        out += &format!("<p>The instructions cannot be shown: {}.</p>\n", text(reason.words()));
    }
    let columns = Columns { timed: event.event.has_latency, level: measured.level.is_some() };
    let lines: Vec<_> = function
        .lines
        .iter()
        .take(LINES)
        .map(|line| {
            let place = line.place.as_ref().map_or_else(
                || "[no line info]".to_owned(),
                |p| format!("{}:{}", short_path(&p.file), p.line),
            );
            let source = line.source.as_deref().unwrap_or_default().trim();
            columns.row(&line.measured, &place, source)
        })
        .collect();
    let left = function.lines.len().saturating_sub(LINES);
    let rest = if left > 0 { format!("({})", counted(left as u64, "more line")) } else { String::new() };
    out += &sortable("Lines of source", &columns.titles("Line", "Source"), &lines, &rest);
    let sampled = function.instructions.iter().filter(|listed| listed.measured.samples > 0);
    let instructions: Vec<_> = sampled
        .map(|listed| {
            let mut row = columns.row(&listed.measured, "", &listed.text);
            row[columns.first_text()] =
                HtmlCell::number(listed.offset as f64, &format!("+{:#x}", listed.offset));
            row
        })
        .collect();
    let mut titles = columns.titles("Offset", "Instruction");
    titles[columns.first_text()].0 = ColumnKind::Number;
    out += "<details><summary>Sampled instructions</summary>\n";
    out += &sortable("Offset: bytes from the start of the function", &titles, &instructions, "");
    out + "</details>\n"
}

struct Columns {
    timed: bool,
    level: bool,
}

impl Columns {
    /// Returns the index of the first column after the numbers.
    fn first_text(&self) -> usize {
        2 + usize::from(self.timed) + usize::from(self.level)
    }

    fn titles(&self, place: &str, code: &str) -> Vec<(ColumnKind, String)> {
        let mut titles = vec![(ColumnKind::Share, "Share"), (ColumnKind::Number, "Samples")];
        if self.timed {
            titles.push((ColumnKind::Number, "Average"));
        }
        if self.level {
            titles.push((ColumnKind::Text, "Mostly from"));
        }
        titles.extend([(ColumnKind::Text, place), (ColumnKind::Text, code)]);
        titles.into_iter().map(|(kind, title)| (kind, title.to_owned())).collect()
    }

    fn row(&self, measured: &PlaceSamples, place: &str, code: &str) -> Vec<HtmlCell> {
        let samples = measured.samples;
        let mut row =
            vec![HtmlCell::share(&measured.share), HtmlCell::number(samples as f64, &thousands(samples))];
        if self.timed {
            row.push(measured.average.map_or_else(HtmlCell::nothing, |a| HtmlCell::number(a, &cycles(a))));
        }
        if self.level {
            let level = measured.level.as_ref();
            row.push(level.map_or_else(HtmlCell::nothing, |most| {
                HtmlCell::text(&format!("{} {}", most.level, percent(most.share.value)))
            }));
        }
        row.extend([HtmlCell::text(place), HtmlCell::code(code)]);
        row
    }
}
