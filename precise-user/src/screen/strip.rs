//! Strips over time: one panel for each cgroup, drawn into cells.

use precise_model::Capture;
use precise_model::digits::{counted, thousands};
use precise_model::text::{Cut, fit, sanitize};
use precise_views::heatmap::{Axis, Heatmap, HeatmapOptions, PanelBy, heatmap};
use precise_views::render::plot_colour::{CountScale, LEVELS, on_dark};
use precise_views::render::plot_scale::short as short_cycles;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::draw::put;
use super::{Colours, TabAnswer};

/// The width of the labels at the left.
const LABELS: usize = 18;
/// Blocks for terminals without many colours, from few samples to many.
const BLOCKS: [char; 4] = ['░', '▒', '▓', '█'];

/// Returns the strips of an event that fit into some columns and lines.
pub(super) fn strips(capture: &Capture, event: usize, columns: usize, lines: usize) -> TabAnswer {
    // A panel has a title and at least four rows.
    let panels = (lines / 7).clamp(1, 6);
    let rows = (lines / panels).saturating_sub(3).max(2);
    let name = capture.meta.events.get(event).map(|event| event.name.clone());
    let options = HeatmapOptions {
        panels: PanelBy::Cgroup,
        max_panels: panels,
        event: name,
        max_columns: columns.saturating_sub(LABELS + 1).max(1),
        max_rows: Some(rows),
        ..HeatmapOptions::default()
    };
    let drawn = heatmap(capture, &options).or_else(|_| {
        let whole = HeatmapOptions { panels: PanelBy::None, max_panels: 1, ..options };
        heatmap(capture, &whole)
    });
    match drawn {
        Ok(drawn) => TabAnswer::Strips(Box::new(drawn)),
        Err(error) => TabAnswer::Nothing(sanitize(&error.to_string())),
    }
}

/// Returns the labels of the rows, the lowest first.
fn labels(heatmap: &Heatmap) -> Vec<String> {
    let mut labels: Vec<String> = match &heatmap.axis {
        Axis::Latency { edges } => edges.windows(2).map(|edges| short_cycles(edges[0] as f64)).collect(),
        Axis::Function { names } | Axis::Values { names, .. } => names.clone(),
        Axis::Address { ranges } => {
            ranges.iter().flat_map(|range| std::iter::repeat_n(range.name.clone(), range.rows)).collect()
        }
    };
    labels.extend(heatmap.rest.iter().cloned());
    labels.iter().map(|label| fit(&sanitize(label), LABELS - 1, Cut::End)).collect()
}

/// Draws the strips. The newest column is at the right.
pub(super) fn draw(heatmap: &Heatmap, colours: Colours, area: Rect, buffer: &mut Buffer) {
    let scale = CountScale::new(heatmap.max_cell);
    let labels = labels(heatmap);
    let mut y = area.top();
    for panel in &heatmap.panels {
        let title = format!("{} ({})", sanitize(&panel.title), counted(panel.samples, "sample"));
        put(buffer, area, y, &title, Style::new().add_modifier(Modifier::BOLD));
        y += 1;
        for (row, label) in labels.iter().enumerate().rev() {
            // Rows for samples that have no place on the axis are not worth a line if empty.
            let used = (0..heatmap.columns.len()).any(|column| heatmap.cell(panel, column, row) > 0);
            if row >= heatmap.axis.rows() && !used {
                continue;
            }
            if y >= area.bottom() {
                return;
            }
            put(buffer, area, y, &format!("{label:>width$}", width = LABELS - 1), Style::new());
            for column in 0..heatmap.columns.len() {
                let x = area.left() + (LABELS + column) as u16;
                let Some(level) = scale.level(heatmap.cell(panel, column, row)) else { continue };
                if x < area.right() {
                    cell(buffer, x, y, level, colours);
                }
            }
            y += 1;
        }
    }
    let unit = match heatmap.axis {
        Axis::Latency { .. } => "core cycles upwards",
        Axis::Function { .. } => "functions upwards",
        Axis::Values { .. } => "values upwards",
        Axis::Address { .. } => "addresses upwards",
    };
    let note = format!("{unit}; time to the right; 1 to {} samples per cell", thousands(scale.max()));
    put(buffer, area, y, &note, Style::new().add_modifier(Modifier::DIM));
}

fn cell(buffer: &mut Buffer, x: u16, y: u16, level: usize, colours: Colours) {
    let Some(cell) = buffer.cell_mut((x, y)) else { return };
    if colours == Colours::True {
        let colour = on_dark(level);
        cell.set_char('█').set_fg(Color::Rgb(colour.0, colour.1, colour.2));
    } else {
        cell.set_char(BLOCKS[(level * BLOCKS.len() / LEVELS).min(BLOCKS.len() - 1)]);
    }
}
