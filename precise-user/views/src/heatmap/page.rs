//! Samples over time on the HTML page: the cells as SVG, one path per colour, and the numbers as
//! data for the script that shows the value under the pointer. Labels are HTML, so that they keep
//! their size when the picture shrinks to a phone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::json::json;
use super::text::labels;
use super::{AddressRange, Axis, EVENED, Heatmap, HeatmapOptions, Panel, heatmap};
use crate::markup::text;
use crate::render::plot_colour::CountScale;
use crate::render::plot_scale::log_ticks;
use crate::view::{Section, SectionNumbers, SectionPlace};
use precise_model::Capture;
use precise_model::digits::{counted, thousands};

/// The number of columns. A phone can still show this many.
const COLUMNS: usize = 120;
/// The largest number of panels.
const PANELS: usize = 4;
/// The number of colours; the style sheet defines as many.
const LEVELS: usize = 8;
/// The space of a label of an axis of numbers, in pixels.
const TICK_HEIGHT: f64 = 22.0;
/// The height in pixels of a row of numbers, and of a row with a name.
const LOW: usize = 3;
const HIGH: usize = 17;

/// Returns what the page draws.
pub(super) fn options() -> HeatmapOptions {
    HeatmapOptions { max_columns: COLUMNS, max_panels: PANELS, ..HeatmapOptions::default() }
}

/// Returns the section of the page: the picture, or the reason why there is none.
///
/// # Errors
///
/// Returns an error if the numbers of the picture cannot be serialized.
pub(super) fn section(capture: &Capture) -> Result<Section, serde_json::Error> {
    let (body, numbers) = match heatmap(capture, &options()) {
        Ok(mut heatmap) => {
            // The notes of the capture stand under its reliability.
            heatmap.header.notes.retain(|note| !capture.meta.notes.contains(note));
            let json = serde_json::to_string(&json(&heatmap))?;
            (picture(&heatmap), Some(SectionNumbers { id: "heatmap-data", json }))
        }
        Err(why) => (format!("<p>{}</p>\n", text(&why.to_string())), None),
    };
    Ok(Section { id: "time", title: "Over time", place: SectionPlace::Pictures, body, numbers })
}

/// Returns the picture.
fn picture(heatmap: &Heatmap) -> String {
    let scale = CountScale::new(heatmap.max_cell);
    let mut out = format!(
        "<p>Time runs from left to right; the vertical axis shows {}. The colour is the number of \
         samples in a cell.<span class=\"js-only\"> Point at a cell, or use the arrow keys. Drag over a \
         picture, or hold Shift with the arrow keys, to select a time: the tables then show \
         only that.</span></p>\n",
        heatmap.axis.label()
    );
    if heatmap.header.evened {
        out += &format!("<p>{EVENED}</p>\n");
    }
    out += &key(&scale);
    let parts = parts(heatmap);
    for (number, panel) in heatmap.panels.iter().enumerate() {
        let title = if panel.title.is_empty() { "all samples" } else { panel.title.as_str() };
        out += &format!("<figure>\n<h3>{}: {}</h3>\n", text(title), counted(panel.samples, "sample"));
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
    out
}

/// Adjacent rows of a panel, with their labels.
struct Part {
    rows: Range<usize>,
    labels: Labels,
    height: usize,
}

/// The labels of a part.
enum Labels {
    /// One for each row, or spread evenly, from the top down.
    Even(Vec<String>),
    /// At heights in pixels from the top.
    Ticks(Vec<(f64, String)>),
}

/// Returns the parts of every panel from the top down: the rows on the axis, then those that have
/// no place on it.
fn parts(heatmap: &Heatmap) -> Vec<Part> {
    let names = labels(heatmap);
    let named = |rows: Range<usize>| Part {
        height: rows.len() * HIGH,
        labels: Labels::Even(rows.clone().rev().filter_map(|row| names.get(row).cloned()).collect()),
        rows,
    };
    let on_axis = heatmap.axis.rows();
    let mut parts = match &heatmap.axis {
        Axis::Function { .. } | Axis::Values { .. } => vec![named(0..on_axis)],
        Axis::Latency { edges } => {
            let height = on_axis * LOW;
            vec![Part { rows: 0..on_axis, labels: Labels::Ticks(ticks(edges, height as f64)), height }]
        }
        Axis::Address { ranges } => {
            let mut from = 0;
            let part = |range: &AddressRange| {
                let rows = from..from + range.rows;
                from = rows.end;
                let labels = Labels::Even(vec![range.name.clone(), format!("from {:#x}", range.start)]);
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

/// Returns round numbers of an axis of latencies, `height` pixels high, with their places from the
/// top. Rows are equally high, whatever latencies they hold.
fn ticks(edges: &[u64], height: f64) -> Vec<(f64, String)> {
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return Vec::new() };
    let most = (height / TICK_HEIGHT) as usize;
    let place = |at: f64| {
        let row = edges.partition_point(|edge| *edge as f64 <= at).clamp(1, edges.len() - 1) - 1;
        let (low, high) = (edges[row] as f64, edges[row + 1] as f64);
        let part = (at.max(1.0) / low.max(1.0)).ln() / (high / low.max(1.0)).ln().max(1e-9);
        height * (1.0 - (row as f64 + part.clamp(0.0, 1.0)) / (edges.len() - 1) as f64)
    };
    let ticks = log_ticks((*first as f64).max(1.0), (*last as f64).max(2.0), most.max(2));
    ticks.into_iter().map(|tick| (place(tick.at), tick.label)).collect()
}

/// Returns the labels of a part.
fn axis(labels: &Labels, height: usize) -> String {
    match labels {
        Labels::Even(names) => {
            let items = names.iter().map(|name| {
                let name = text(name);
                format!("<li title=\"{name}\">{name}</li>")
            });
            format!("<ol>{}</ol>", items.collect::<String>())
        }
        Labels::Ticks(ticks) => {
            let items = ticks.iter().map(|(y, label)| {
                // Whole letters, also at the ends.
                let y = y.clamp(6.0, (height as f64 - 5.0).max(6.0));
                format!("<text x=\"100%\" y=\"{y:.0}\" dy=\".35em\">{}</text>", text(label))
            });
            let items = items.collect::<String>();
            format!("<svg class=\"axis\" height=\"{height}\" aria-hidden=\"true\">{items}</svg>")
        }
    }
}

/// Returns a part of a panel, with its labels.
fn block(heatmap: &Heatmap, panel: &Panel, number: usize, part: &Part, scale: &CountScale) -> String {
    let (columns, count, height) = (heatmap.columns.len(), part.rows.len(), part.height);
    // The labels of all parts of a panel have the same width.
    let class = if matches!(heatmap.axis, Axis::Latency { .. }) { "plot" } else { "plot named" };
    format!(
        "<div class=\"{class}\">{}<svg viewBox=\"0 0 {columns} {count}\" height=\"{height}\" \
         preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\" role=\"img\" tabindex=\"0\" aria-label=\"{} over time: {}\" \
         data-panel=\"{number}\" data-first=\"{}\" data-rows=\"{count}\">{}<rect class=\"here\" width=\"0\" \
         height=\"0\"/></svg></div>\n",
        axis(&part.labels, height),
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
