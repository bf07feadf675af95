//! Samples over time on the HTML page: the cells as SVG, one path per colour, and the numbers as
//! data for the script that shows the value under the pointer. Labels are HTML, so that they keep
//! their size when the picture shrinks to a phone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::json::json;
use super::text::labels;
use super::{AddressRange, Axis, EVENED, Heatmap, HeatmapOptions, Panel, heatmap};
use crate::markup::{json as escaped, text};
use crate::render::plot_colour::CountScale;
use crate::view::{Place, Section};
use precise_model::Capture;
use precise_model::digits::thousands;

/// The number of columns. A phone can still show this many.
const COLUMNS: usize = 120;
/// The largest number of panels.
const PANELS: usize = 4;
/// The number of colours; the style sheet defines as many.
const LEVELS: usize = 8;
/// The number of labels of an axis of numbers.
const TICKS: usize = 5;
/// The height in pixels of a row of numbers, and of a row with a name.
const LOW: usize = 3;
const HIGH: usize = 17;

/// Returns the section of the page: the picture, or the reason why there is none.
///
/// # Errors
///
/// Returns an error if the numbers of the picture cannot be serialized.
pub(super) fn section(capture: &Capture) -> Result<Section, serde_json::Error> {
    let options = HeatmapOptions { max_columns: COLUMNS, max_panels: PANELS, ..HeatmapOptions::default() };
    let body = match heatmap(capture, &options) {
        Ok(heatmap) => picture(&heatmap)?,
        Err(why) => format!("<p>{}</p>\n", text(&why.to_string())),
    };
    Ok(Section { id: "time", title: "Over time", place: Place::Pictures, body })
}

/// Returns the picture with its numbers.
fn picture(heatmap: &Heatmap) -> Result<String, serde_json::Error> {
    let scale = CountScale::new(heatmap.max_cell);
    let mut out = format!(
        "<p>Time runs from left to right; the vertical axis shows {}. The colour is the number of \
         samples in a cell. Point at a cell, or use the arrow keys.</p>\n",
        heatmap.axis.label()
    );
    if heatmap.header.evened {
        out += &format!("<p>{EVENED}</p>\n");
    }
    out += &key(&scale);
    let parts = parts(heatmap);
    for (number, panel) in heatmap.panels.iter().enumerate() {
        let title = if panel.title.is_empty() { "all samples" } else { panel.title.as_str() };
        out += &format!("<figure>\n<h3>{}: {} samples</h3>\n", text(title), thousands(panel.samples));
        for part in &parts {
            out += &block(heatmap, panel, number, part, &scale);
        }
        let (start, end) = heatmap.span();
        let (unit, name) = if end - start < 2_000_000_000 { (1e6, "ms") } else { (1e9, "s") };
        let at = |part: f64| format!("{:.1} {name}", (start as f64 + (end - start) as f64 * part) / unit);
        let (from, middle, to) = (at(0.0), at(0.5), at(1.0));
        out += &format!(
            "<div class=\"times\"><span>{from}</span><span>{middle}</span><span>{to}</span></div>\n</figure>\n"
        );
    }
    for note in &heatmap.header.notes {
        out += &format!("<p class=\"soft\">{}</p>\n", text(note));
    }
    let numbers = serde_json::to_string(&json(heatmap))?;
    out += &format!("<script type=\"application/json\" id=\"heatmap-data\">{}</script>\n", escaped(&numbers));
    Ok(out)
}

/// Adjacent rows of a panel, with labels from the top down.
struct Part {
    rows: Range<usize>,
    labels: Vec<String>,
    height: usize,
}

/// Returns the parts of every panel from the top down: the rows on the axis, then those that have
/// no place on it.
fn parts(heatmap: &Heatmap) -> Vec<Part> {
    let names = labels(heatmap);
    let named = |rows: Range<usize>| Part {
        height: rows.len() * HIGH,
        labels: rows.clone().rev().filter_map(|row| names.get(row).cloned()).collect(),
        rows,
    };
    let on_axis = heatmap.axis.rows();
    let mut parts = match &heatmap.axis {
        Axis::Function { .. } => vec![named(0..on_axis)],
        Axis::Latency { .. } => {
            let ticks = TICKS.min(on_axis).max(2);
            let row = |tick| on_axis.saturating_sub(1) * (ticks - 1 - tick) / (ticks - 1);
            let labels = (0..ticks).filter_map(|tick| names.get(row(tick)).cloned()).collect();
            vec![Part { rows: 0..on_axis, labels, height: on_axis * LOW }]
        }
        Axis::Address { ranges } => {
            let mut from = 0;
            let part = |range: &AddressRange| {
                let rows = from..from + range.rows;
                from = rows.end;
                let labels = vec![range.name.clone(), format!("{:#x}", range.start)];
                Part { height: (rows.len() * LOW).max(2 * HIGH), labels, rows }
            };
            let mut parts: Vec<_> = ranges.iter().map(part).collect();
            parts.reverse();
            parts
        }
    };
    parts.push(named(on_axis..heatmap.rows()));
    parts.retain(|part| !part.rows.is_empty());
    parts
}

/// Returns a part of a panel, with its labels.
fn block(heatmap: &Heatmap, panel: &Panel, number: usize, part: &Part, scale: &CountScale) -> String {
    let items: String = part
        .labels
        .iter()
        .map(|name| {
            let name = text(name);
            format!("<li title=\"{name}\">{name}</li>")
        })
        .collect();
    let (columns, count, height) = (heatmap.columns.len(), part.rows.len(), part.height);
    // The labels of all parts of a panel have the same width.
    let class = if matches!(heatmap.axis, Axis::Latency { .. }) { "plot" } else { "plot named" };
    format!(
        "<div class=\"{class}\"><ol>{items}</ol><svg viewBox=\"0 0 {columns} {count}\" height=\"{height}\" \
         preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\" role=\"img\" tabindex=\"0\" aria-label=\"{} over time: {}\" \
         data-panel=\"{number}\" data-first=\"{}\" data-rows=\"{count}\">{}<rect class=\"here\" width=\"0\" \
         height=\"0\"/></svg></div>\n",
        heatmap.axis.label(),
        text(&panel.title),
        part.rows.start,
        paths(heatmap, panel, &part.rows, scale)
    )
}

/// Returns runs of cells of one colour in a row, one path per colour.
fn paths(heatmap: &Heatmap, panel: &Panel, rows: &Range<usize>, scale: &CountScale) -> String {
    let mut paths: BTreeMap<usize, String> = BTreeMap::new();
    let columns = heatmap.columns.len();
    for row in rows.clone() {
        let y = rows.end - 1 - row;
        let mut from = 0;
        while from < columns {
            let colour = level(heatmap.cell(panel, from, row), scale);
            let same = (from..columns).take_while(|at| level(heatmap.cell(panel, *at, row), scale) == colour);
            let length = same.count().max(1);
            if let Some(colour) = colour {
                // Writing to a string does not fail.
                let _infallible =
                    write!(paths.entry(colour).or_default(), "M{from} {y}h{length}v1h-{length}z");
            }
            from += length;
        }
    }
    paths.iter().map(|(level, path)| format!("<path class=\"l{level}\" d=\"{path}\"/>")).collect()
}

fn level(samples: u64, scale: &CountScale) -> Option<usize> {
    scale.position(samples as f64).map(|at| (at * (LEVELS - 1) as f64).round() as usize)
}

/// Returns the legend of the colours.
fn key(scale: &CountScale) -> String {
    let boxes: String = (0..LEVELS)
        .map(|level| format!("<rect class=\"l{level}\" x=\"{level}\" width=\"1\" height=\"1\"/>"))
        .collect();
    let steps = if scale.is_log() { ", logarithmic" } else { "" };
    format!(
        "<div class=\"key\"><span>1</span><svg viewBox=\"0 0 {LEVELS} 1\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">{boxes}</svg><span>{} samples in a cell{steps}</span></div>\n",
        thousands(scale.max())
    )
}
