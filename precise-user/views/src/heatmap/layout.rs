//! The layout of a heatmap in pixels. It draws nothing, so that PNG and SVG agree to the pixel.

use crate::heatmap::{AddressRange, Axis, Heatmap, Panel, RangeBase};
use crate::render::plot::{clean, shorten, text_width, wrap};
use crate::render::plot_area::{LARGE, LINE, MARGIN, SMALL, TITLE};
use crate::render::plot_colour::CountScale;
use crate::render::plot_scale::{Tick, duration, log_ticks};
use precise_model::digits::{bytes, counted};
use precise_model::keys::Key;

/// The height below a plot: tick labels, the name of the axis, and space.
const FOOT: i32 = 56;
/// The gap between two address ranges, and between the axis and the rows below it.
const GAP: i32 = 6;
/// The height of a row with a name.
const NAMED_ROW: i32 = 20;
const MAX_GUTTER: u32 = 340;
pub(crate) const LEGEND: i32 = 52;
/// The top and bottom of the bar above each panel that shows when a CPU was not measured, in pixels
/// below the top of the plot.
pub(crate) const ABSENT: (i32, i32) = (-7, -2);

/// A line of the header.
pub(crate) struct HeaderLine {
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

/// The style of a line of the header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Title,
    Plain,
    Doubt,
}

/// A label beside the plot.
pub(crate) struct RowLabel {
    /// The middle of the text, in pixels below the top of the plot.
    pub(crate) y: i32,
    pub(crate) text: String,
    /// Whether a tick joins the label to the axis.
    pub(crate) tick: bool,
}

/// A rectangle of one colour in a panel, in pixels from the top left of the picture. The ends are
/// exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellRun {
    pub(crate) x0: i32,
    pub(crate) x1: i32,
    pub(crate) y0: i32,
    pub(crate) y1: i32,
    pub(crate) level: usize,
}

/// The geometry of one picture.
pub(crate) struct PictureLayout {
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) header: Vec<HeaderLine>,
    pub(crate) legend_top: i32,
    /// The left and right edge of every plot; the right edge is exclusive.
    pub(crate) left: i32,
    pub(crate) right: i32,
    /// The top of each panel's plot.
    pub(crate) tops: Vec<i32>,
    /// The height of every plot, including the rows of the rest.
    pub(crate) plot_height: i32,
    /// The top and bottom of each row, in pixels below the top of the plot.
    pub(crate) row_edges: Vec<(i32, i32)>,
    /// The vertical ranges of the plot that rows cover: the axis (each range of it) and the rest.
    pub(crate) blocks: Vec<(i32, i32)>,
    pub(crate) labels: Vec<RowLabel>,
    /// The horizontal grid lines, in pixels below the top of the plot.
    pub(crate) grid: Vec<i32>,
    /// The left and right edge of each column.
    pub(crate) column_edges: Vec<(i32, i32)>,
    /// The horizontal ranges of the time that was measured.
    pub(crate) covered: Vec<(i32, i32)>,
    /// The horizontal ranges of the time in which a CPU was not measured, in order.
    pub(crate) absent: Vec<(i32, i32)>,
    pub(crate) scale: CountScale,
}

impl PictureLayout {
    /// Lays out `heatmap` for a picture `width` pixels wide.
    pub(crate) fn new(heatmap: &Heatmap, width: u32) -> Self {
        let rows = Rows::new(heatmap);
        let width = width as i32;
        let header = header(heatmap, (width - 2 * MARGIN) as u32);
        let mut y = MARGIN;
        for line in &header {
            y += if line.kind == LineKind::Title { 32 } else { LINE + 1 };
        }
        let legend_top = y + 10;
        y = legend_top + LEGEND;
        let mut tops = Vec::new();
        for _ in &heatmap.panels {
            tops.push(y + TITLE);
            y += TITLE + rows.height + FOOT;
        }
        let gutter = rows.gutter.min(width / 3);
        let (left, right) = (MARGIN + gutter, width - MARGIN - 8);
        let column_edges = columns(heatmap, left, right);
        let mut covered: Vec<(i32, i32)> = Vec::new();
        let measured = heatmap.columns.iter().map(|column| !heatmap.is_dark(column));
        for (&(x0, x1), _) in column_edges.iter().zip(measured).filter(|(_, measured)| *measured) {
            match covered.last_mut() {
                Some(last) if x0 <= last.1 => last.1 = last.1.max(x1),
                _ => covered.push((x0, x1)),
            }
        }
        Self {
            width,
            height: y,
            header,
            legend_top,
            left,
            right,
            tops,
            plot_height: rows.height,
            row_edges: rows.edges,
            blocks: rows.blocks,
            labels: rows.labels,
            grid: rows.grid,
            column_edges,
            covered,
            absent: absent(heatmap, left, right),
            scale: CountScale::new(heatmap.max_cell),
        }
    }

    /// Returns whether gaps in the measured time are visible.
    pub(crate) fn has_gaps(&self) -> bool {
        self.covered != [(self.left, self.right)] || !self.absent.is_empty()
    }

    /// Returns the cells of a panel that have samples. Neighbours in time with the same colour form
    /// one run.
    pub(crate) fn runs(&self, heatmap: &Heatmap, panel: &Panel, top: i32) -> Vec<CellRun> {
        let mut runs: Vec<CellRun> = Vec::new();
        for (row, &(y0, y1)) in self.row_edges.iter().enumerate() {
            let mut open: Option<CellRun> = None;
            for (column, &(x0, x1)) in self.column_edges.iter().enumerate() {
                let Some(level) = self.scale.level(heatmap.cell(panel, column, row)) else { continue };
                match &mut open {
                    Some(run) if run.level == level && run.x1 == x0 => run.x1 = x1,
                    _ => runs.extend(open.replace(CellRun { x0, x1, y0: top + y0, y1: top + y1, level })),
                }
            }
            runs.extend(open);
        }
        runs
    }
}

fn columns(heatmap: &Heatmap, left: i32, right: i32) -> Vec<(i32, i32)> {
    let edges = heatmap.columns.iter().map(|c| (c.start_ns, c.end_ns));
    edges.map(|times| edges_of(heatmap, times, left, right)).collect()
}

/// Returns the horizontal ranges in which a CPU was not measured, joined where they overlap.
fn absent(heatmap: &Heatmap, left: i32, right: i32) -> Vec<(i32, i32)> {
    let mut absent: Vec<(i32, i32)> = Vec::new();
    for gap in &heatmap.header.gaps {
        let (x0, x1) = edges_of(heatmap, (gap.start_ns, gap.end_ns), left, right);
        match absent.last_mut() {
            Some(last) if x0 <= last.1 => last.1 = last.1.max(x1),
            _ => absent.push((x0, x1)),
        }
    }
    absent
}

/// Returns the left and right edge of a stretch of time.
fn edges_of(heatmap: &Heatmap, (from, to): (u64, u64), left: i32, right: i32) -> (i32, i32) {
    let (start, end) = heatmap.span();
    let x = |ns: u64| {
        let part = ns.clamp(start, end).saturating_sub(start) as f64 / (end - start) as f64;
        left + (part * f64::from(right - left)).round() as i32
    };
    let (x0, x1) = (x(from), x(to));
    // At least one pixel: a very short epoch must still show its samples.
    if x1 > x0 { (x0, x1) } else { (x0.min(right - 1), x0.min(right - 1) + 1) }
}

fn header(heatmap: &Heatmap, width: u32) -> Vec<HeaderLine> {
    let h = &heatmap.header;
    let what = match heatmap.axis {
        Axis::Latency { .. } => "Latency over time",
        Axis::Address { .. } => "Data addresses over time",
        Axis::Function { .. } => "Functions over time",
        Axis::Values { key: Key::Field, .. } => "Fields over time",
        Axis::Values { .. } => "Types over time",
    };
    let events = if h.events.is_empty() { String::new() } else { format!(" · {}", h.events.join(", ")) };
    let host = if h.host.is_empty() { String::new() } else { format!(" · {}", h.host) };
    let title = clean(&format!("{what}{events}{host}"));
    let mut lines = vec![HeaderLine {
        text: shorten(&title, |t| text_width(t, LARGE, true) <= width),
        kind: LineKind::Title,
    }];
    let mut facts = vec![duration(h.duration_ns)];
    facts.extend(h.when.clone());
    facts.push(counted(h.samples, "sample"));
    if !h.target.is_empty() {
        facts.push(h.target.clone());
    }
    facts.push(if h.filter.is_empty() { "no filter".to_owned() } else { format!("filter: {}", h.filter) });
    let mut add = |text: &str, kind, most| {
        lines.extend(
            wrap(&clean(text), width, SMALL, kind == LineKind::Doubt, most)
                .into_iter()
                .map(|text| HeaderLine { text, kind }),
        );
    };
    add(&facts.join(" · "), LineKind::Plain, 2);
    for verdict in h.verdict.iter().take(4) {
        let kind = if verdict.starts_with("not precise") || verdict.contains(": not precise") {
            LineKind::Doubt
        } else {
            LineKind::Plain
        };
        add(verdict, kind, 2);
    }
    for note in h.notes.iter().take(4) {
        add(note, LineKind::Plain, 2);
    }
    lines
}

/// The vertical half of the layout, the same in every panel.
struct Rows {
    height: i32,
    gutter: i32,
    edges: Vec<(i32, i32)>,
    blocks: Vec<(i32, i32)>,
    labels: Vec<RowLabel>,
    grid: Vec<i32>,
}

impl Rows {
    fn new(heatmap: &Heatmap) -> Self {
        let base = match heatmap.panels.len() {
            0 | 1 => 420,
            2 => 300,
            3 | 4 => 220,
            _ => 160,
        };
        let mut rows = Self {
            height: 0,
            gutter: 0,
            edges: Vec::new(),
            blocks: Vec::new(),
            labels: Vec::new(),
            grid: Vec::new(),
        };
        match &heatmap.axis {
            Axis::Latency { edges } => rows.latency(edges, base),
            Axis::Address { ranges } => rows.addresses(ranges, base),
            Axis::Function { names } | Axis::Values { names, .. } => {
                rows.named(names.iter().rev(), NAMED_ROW)
            }
        }
        rows.edges.reverse();
        if !heatmap.rest.is_empty() {
            rows.height += GAP;
            rows.named(heatmap.rest.iter(), NAMED_ROW);
        }
        let widest = rows.labels.iter().map(|l| text_width(&l.text, SMALL, false)).max().unwrap_or(0);
        let title = if matches!(heatmap.axis, Axis::Latency { .. }) { 26 } else { 0 };
        rows.gutter = widest as i32 + 10 + title;
        rows
    }

    /// Adds rows with one name each, from the top.
    fn named<'a>(&mut self, names: impl Iterator<Item = &'a String>, row: i32) {
        let top = self.height;
        for name in names {
            let y = self.height;
            self.height += row;
            self.edges.push((y, self.height));
            self.labels.push(RowLabel { y: y + row / 2, text: fit(name), tick: false });
            if y > top {
                self.grid.push(y);
            }
        }
        self.blocks.push((top, self.height));
    }

    fn latency(&mut self, edges: &[u64], base: i32) {
        let (first, last) = (edges.first().copied().unwrap_or(0), edges.last().copied().unwrap_or(1));
        let (low, high) = (log(first), log(last));
        // No row may vanish between two pixels.
        let narrowest = edges.windows(2).map(|e| log(e[1]) - log(e[0])).fold(f64::INFINITY, f64::min);
        let needed =
            if narrowest > 0.0 { ((high - low) / narrowest * 1.01).ceil().min(2000.0) as i32 } else { base };
        let height = base.max(needed);
        let y = |at: f64| ((high - at) / (high - low).max(1e-9) * f64::from(height)).round() as i32;
        for pair in edges.windows(2).rev() {
            self.edges.push((y(log(pair[1])), y(log(pair[0]))));
        }
        let from = if first == 0 { 1.0 } else { first as f64 };
        let mut ticks = log_ticks(from, (last as f64).max(from + 1.0), (height / 24) as usize);
        if first == 0 {
            ticks.insert(0, Tick { at: 0.0, label: "0".to_owned() });
        }
        for tick in ticks {
            let at = y(tick.at.max(0.5).log2());
            self.grid.push(at);
            self.labels.push(RowLabel { y: at, text: tick.label, tick: true });
        }
        self.height = height;
        self.blocks.push((0, height));
    }

    fn addresses(&mut self, ranges: &[AddressRange], base: i32) {
        let share = (base / ranges.len().max(1) as i32).max(3 * LINE + 4);
        for (i, range) in ranges.iter().rev().enumerate() {
            if i > 0 {
                self.height += GAP;
            }
            let (top, rows) = (self.height, range.rows.max(1));
            let height = share.max(rows.min(5000) as i32);
            let y = |row: usize| top + (height as f64 * row as f64 / rows as f64).round() as i32;
            self.edges.extend((0..rows).map(|row| (y(row), y(row + 1))));
            let size = range.row_bytes.saturating_mul(range.rows as u64);
            let end = range.start.saturating_add(size);
            let lines = [
                fit(&range.name),
                match range.base {
                    RangeBase::Memory => format!("from {:#x}", range.start),
                    RangeBase::File | RangeBase::Variable if range.start == 0 => "from its start".to_owned(),
                    RangeBase::File | RangeBase::Variable => format!("from +{:#x}", range.start),
                },
                format!("{} high, {} a row", bytes(end - range.start), bytes(range.row_bytes)),
            ];
            for (line, text) in lines.into_iter().enumerate() {
                let y = top + LINE / 2 + line as i32 * LINE;
                self.labels.push(RowLabel { y, text, tick: false });
            }
            self.height += height;
            self.blocks.push((top, self.height));
        }
    }
}

fn fit(name: &str) -> String {
    shorten(&clean(name), |t| text_width(t, SMALL, false) <= MAX_GUTTER)
}

/// Returns the position of a latency on the axis. Zero has no logarithm, so it takes the octave
/// below one.
fn log(cycles: u64) -> f64 {
    (cycles as f64).max(0.5).log2()
}
