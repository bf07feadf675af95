//! Heatmaps for the terminal.

pub use crate::render::Shade;
use std::fmt::Write as _;

use crate::heatmap::{Axis, Heatmap, HeatmapOptions, Panel};
use crate::render::plot::{clean, shorten};
use crate::render::plot_colour::{CountScale, LEVELS, on_dark};
use crate::render::plot_scale::{duration, short, time_ticks};
use plotters::style::RGBColor;
use precise_model::digits::{bytes, counted, thousands};

/// The default width, in characters.
pub const DEFAULT_WIDTH: usize = 80;
/// The smallest width, in characters.
pub const MIN_WIDTH: usize = 40;
/// The number of rows that fit a terminal together with the title and the axis.
const ROWS: usize = 18;
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];
const BLOCKS: [char; 4] = ['░', '▒', '▓', '█'];
const RESET: &str = "\x1b[0m";

/// Returns options for a heatmap that [`text`] can show `width` characters wide without merging
/// columns.
pub fn options_for(width: usize, options: HeatmapOptions) -> HeatmapOptions {
    let columns = width.max(MIN_WIDTH).saturating_sub(24).max(10);
    let max_rows = options.max_rows.or(Some(ROWS));
    HeatmapOptions { max_columns: options.max_columns.min(columns), max_rows, ..options }
}

/// Returns the heatmap as lines of at most `width` characters (at least [`MIN_WIDTH`]).
pub fn text(heatmap: &Heatmap, width: usize, shade: Shade) -> String {
    let width = width.max(MIN_WIDTH);
    let ascii = shade == Shade::Ascii;
    let scale = CountScale::new(cells(heatmap, width).0);
    let mut out = String::new();
    header(&mut out, heatmap, width, ascii);
    legend(&mut out, scale, width, shade);
    for panel in &heatmap.panels {
        out.push('\n');
        draw_panel(&mut out, heatmap, panel, width, shade, scale);
    }
    out
}

/// Makes text of the capture safe for a terminal.
fn safe(text: &str, ascii: bool) -> String {
    let text = clean(text);
    if ascii { text.replace('\u{fffd}', "?").replace('…', "~") } else { text }
}

fn cut(text: &str, most: usize, ascii: bool) -> String {
    safe(&shorten(&safe(text, ascii), |t| t.chars().count() <= most), ascii)
}

fn header(out: &mut String, heatmap: &Heatmap, width: usize, ascii: bool) {
    let h = &heatmap.header;
    let dot = if ascii { " - " } else { " · " };
    let mut facts = vec![heatmap.axis.label().to_owned()];
    facts.extend([h.events.join(", "), h.host.clone()].into_iter().filter(|t| !t.is_empty()));
    let mut lines = vec![facts.join(dot)];
    let took = if ascii { duration(h.duration_ns).replace('µ', "u") } else { duration(h.duration_ns) };
    let filter = if h.filter.is_empty() { "no filter".to_owned() } else { format!("filter: {}", h.filter) };
    let facts = [took].into_iter().chain(h.when.clone()).chain([counted(h.samples, "sample"), filter]);
    lines.push(facts.collect::<Vec<_>>().join(dot));
    lines.extend(h.verdict.iter().chain(&h.notes).cloned());
    for line in lines {
        fold(out, &safe(&line, ascii), width);
    }
}

/// Breaks a line at blanks.
fn fold(out: &mut String, line: &str, width: usize) {
    let mut used = 0;
    for word in line.split_whitespace() {
        let word = shorten(word, |t| t.chars().count() <= width);
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += length;
    }
    out.push('\n');
}

fn legend(out: &mut String, scale: CountScale, width: usize, shade: Shade) {
    let words = if scale.is_log() { "samples per cell, log scale" } else { "samples per cell" };
    let steps = match shade {
        Shade::Ascii => ASCII.len(),
        Shade::Blocks => BLOCKS.len(),
        Shade::TrueColour | Shade::Colour256 => 16,
    };
    let most = thousands(scale.max());
    let wide = words.len() + steps + most.len() + 17;
    let _ = write!(out, "{words}:{}blank none, 1 ", if wide > width { '\n' } else { ' ' });
    let mut row = TextRow::new(out, shade);
    for step in 0..steps {
        row.put(Glyph::Level(step * (LEVELS - 1) / (steps - 1)));
    }
    row.end();
    let _ = writeln!(out, " {most}");
}

/// The content of one character of the plot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Glyph {
    NotMeasured,
    NoSamples,
    Level(usize),
}

/// A line of cells under construction; colours are set only where they change.
struct TextRow<'a> {
    out: &'a mut String,
    shade: Shade,
    last: Option<Glyph>,
}

impl<'a> TextRow<'a> {
    fn new(out: &'a mut String, shade: Shade) -> Self {
        Self { out, shade, last: None }
    }

    fn put(&mut self, cell: Glyph) {
        match (self.shade, cell) {
            (Shade::Ascii, Glyph::Level(l)) => self.out.push(ASCII[l * ASCII.len() / LEVELS]),
            (Shade::Blocks, Glyph::Level(l)) => self.out.push(BLOCKS[l * BLOCKS.len() / LEVELS]),
            (_, Glyph::Level(level)) => {
                if self.last != Some(cell) {
                    let RGBColor(r, g, b) = on_dark(level);
                    let _ = match self.shade {
                        Shade::TrueColour => write!(self.out, "\x1b[48;2;{r};{g};{b}m"),
                        _ => write!(self.out, "\x1b[48;5;{}m", xterm(r, g, b)),
                    };
                }
                self.out.push(' ');
            }
            (_, blank) => {
                self.end();
                self.out.push(match (blank, self.shade) {
                    (Glyph::NoSamples, _) => ' ',
                    (_, Shade::Ascii) => '/',
                    _ => '╱',
                });
            }
        }
        self.last = Some(cell);
    }

    /// Resets the colour to that of the terminal.
    fn end(&mut self) {
        let coloured = matches!(self.shade, Shade::TrueColour | Shade::Colour256);
        if coloured && matches!(self.last, Some(Glyph::Level(_))) {
            self.out.push_str(RESET);
        }
        self.last = None;
    }
}

/// Returns the nearest of the 6×6×6 colours of xterm.
fn xterm(r: u8, g: u8, b: u8) -> u32 {
    let step = |c: u8| match c {
        0..=47 => 0,
        48..=114 => 1,
        c => (u32::from(c) - 35) / 40,
    };
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

/// Returns the labels of the rows, the lowest first.
pub(crate) fn labels(heatmap: &Heatmap) -> Vec<String> {
    let mut labels: Vec<String> = match &heatmap.axis {
        Axis::Latency { edges } => edges.windows(2).map(|e| short(e[0] as f64)).collect(),
        Axis::Function { names } | Axis::Values { names, .. } => names.clone(),
        Axis::Address { ranges } => ranges
            .iter()
            .flat_map(|r| {
                (0..r.rows as u64).map(move |i| match r.rows as u64 - 1 - i {
                    0 => r.name.clone(),
                    1 => format!("{} a row", bytes(r.row_bytes)),
                    _ if i == 0 => format!("{:#x}", r.start),
                    _ => String::new(),
                })
            })
            .collect(),
    };
    labels.extend(heatmap.rest.iter().cloned());
    labels
}

/// Returns the width of the labels and the width of the plot.
fn gutter(heatmap: &Heatmap, width: usize) -> (usize, usize) {
    let widest = labels(heatmap).iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let gutter = widest.clamp(4, (width / 3).max(12));
    (gutter, width - gutter - 2)
}

/// Returns the columns of the heatmap that each character of the plot shows. If there are more
/// columns than characters, these are the columns that start in it, else the column at its middle.
fn spread(heatmap: &Heatmap, wide: usize) -> Vec<Vec<usize>> {
    let (start, end) = heatmap.span();
    let length = (end - start) as f64;
    let mut spread = vec![Vec::new(); wide];
    let merge = heatmap.columns.len() > wide;
    if merge {
        for (i, column) in heatmap.columns.iter().enumerate() {
            let at = ((column.start_ns - start) as f64 / length * wide as f64) as usize;
            spread[at.min(wide - 1)].push(i);
        }
    }
    for (x, columns) in spread.iter_mut().enumerate() {
        if columns.is_empty() {
            let at = start + ((x as f64 + 0.5) / wide as f64 * length) as u64;
            columns.extend(heatmap.columns.iter().position(|c| (c.start_ns..c.end_ns).contains(&at)));
        }
    }
    if !merge {
        // A column that is narrower than a character must still show its samples: it is added to
        // the character in which it starts.
        for (i, column) in heatmap.columns.iter().enumerate() {
            if !spread.iter().any(|c| c.contains(&i)) {
                let at = ((column.start_ns - start) as f64 / length * wide as f64) as usize;
                spread[at.min(wide - 1)].push(i);
            }
        }
    }
    spread
}

/// Returns the number of samples of the fullest character of all panels, and the columns of each
/// character.
fn cells(heatmap: &Heatmap, width: usize) -> (u64, Vec<Vec<usize>>) {
    let spread = spread(heatmap, gutter(heatmap, width).1);
    let sum = |panel, row, columns: &[usize]| {
        columns.iter().fold(0u64, |sum, &c| sum.saturating_add(heatmap.cell(panel, c, row)))
    };
    let all = heatmap.panels.iter().flat_map(|p| (0..heatmap.rows()).map(move |row| (p, row)));
    let max = all.flat_map(|(p, row)| spread.iter().map(move |c| sum(p, row, c))).max().unwrap_or(0);
    (max, spread)
}

fn draw_panel(
    out: &mut String,
    heatmap: &Heatmap,
    panel: &Panel,
    width: usize,
    shade: Shade,
    scale: CountScale,
) {
    let ascii = shade == Shade::Ascii;
    let (bar, corner, flat) = if ascii { ('|', '+', '-') } else { ('│', '└', '─') };
    let (gutter, wide) = gutter(heatmap, width);
    let spread = cells(heatmap, width).1;
    let count = counted(panel.samples, "sample");
    let room = width.saturating_sub(count.chars().count() + 2);
    let _ = writeln!(out, "{}  {count}", cut(&panel.title, room, ascii));
    let labels = labels(heatmap);
    let axis = heatmap.axis.rows();
    for row in (0..axis).rev().chain(axis..heatmap.rows()) {
        let label = cut(labels.get(row).map_or("", String::as_str), gutter, ascii);
        let pad = " ".repeat(gutter.saturating_sub(label.chars().count()));
        let _ = write!(out, "{pad}{label} {bar}");
        let mut cells = TextRow::new(out, shade);
        for columns in &spread {
            let samples =
                columns.iter().fold(0u64, |sum, &c| sum.saturating_add(heatmap.cell(panel, c, row)));
            cells.put(match scale.level(samples) {
                Some(level) => Glyph::Level(level),
                None if columns.is_empty() => Glyph::NotMeasured,
                None => Glyph::NoSamples,
            });
        }
        cells.end();
        out.push('\n');
    }
    let line: String = std::iter::repeat_n(flat, wide).collect();
    let _ = writeln!(out, "{} {corner}{line}", " ".repeat(gutter));
    let (start, end) = heatmap.span();
    let (ticks, unit) = time_ticks(start, end, wide / 10);
    let mut axis_line = vec![' '; width];
    let last = ticks.len().saturating_sub(1);
    let mut free = 0;
    for (i, tick) in ticks.iter().enumerate() {
        let unit = if ascii && unit == "µs" { "us" } else { unit };
        let label = if i == last { format!("{} {unit}", tick.label) } else { tick.label.clone() };
        let part = (tick.at - start as f64) / (end - start) as f64;
        let length = label.chars().count();
        let at = (gutter + 2 + (part * (wide - 1) as f64) as usize).min(width - length);
        if at >= free {
            for (k, c) in label.chars().enumerate() {
                axis_line[at + k] = c;
            }
            free = at + length + 1;
        }
    }
    let _ = writeln!(out, "{}", axis_line.iter().collect::<String>().trim_end());
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
