//! Heatmaps as PNG or SVG.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::element::Rectangle;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontTransform, RGBColor};

use crate::heatmap::layout::{LineKind, PictureLayout};
use crate::heatmap::{Axis, Heatmap, Panel, svg as heatmap_svg};
use crate::render::number::percent;
use crate::render::plot::{PlotError, clean, draw_error, shorten, text_width, use_fonts, xml};
use crate::render::plot_area::{
    Area, AxisLabel, DOUBT, FRAME, LARGE, LINE, MARGIN, NORMAL, QUIET, SMALL, TEXT, TITLE, line,
};
use crate::render::plot_colour::{LEVELS, on_light};
use crate::render::plot_scale::{Tick, linear_ticks, log_ticks, short, time_ticks};
use crate::render::raster;
use precise_model::digits::counted;

/// The default width of a picture, in pixels.
pub const DEFAULT_WIDTH: u32 = 1200;
/// The smallest width, in pixels: text does not fit into a smaller one.
pub const MIN_WIDTH: u32 = 640;
/// The largest width, in pixels.
pub const MAX_WIDTH: u32 = 8000;
/// The largest height, in pixels: a picture of the default width has at most 300 MB.
const MAX_HEIGHT: u32 = 30_000;

/// The number of samples below which a panel says that it shows no pattern.
const FEW: u64 = 100;

/// The colour of a cell without samples.
pub(crate) const NO_SAMPLES: RGBColor = RGBColor(0xf3, 0xf3, 0xf6);
/// The colour of the time between epochs.
pub(crate) const NOT_MEASURED: RGBColor = RGBColor(0xcf, 0xcf, 0xd6);
/// Returns a heatmap as an SVG document. `width` is in pixels; the height depends on the panels.
pub fn svg(heatmap: &Heatmap, width: u32) -> Result<String, PlotError> {
    let layout = layout(heatmap, width)?;
    let size = (layout.width as u32, layout.height as u32);
    let mut over = String::new();
    {
        let root = SVGBackend::with_string(&mut over, size).into_drawing_area();
        draw(&Area { area: &root }, heatmap, &layout)?;
        root.present().map_err(draw_error)?;
    }
    let (open, body) = over.split_once(">\n").unwrap_or(("", &over));
    let title = layout.header.first().map_or("", |l| &l.text);
    let panels = heatmap.panels.iter().map(|p| p.title.as_str()).collect::<Vec<_>>().join(", ");
    let (title, panels) = (xml(title), xml(&panels));
    let cells = heatmap_svg::cells(heatmap, &layout);
    Ok(format!(
        "{open} role=\"img\">\n<title>{title}</title>\n<desc>{panels}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{cells}{body}"
    ))
}

/// Returns a heatmap as a PNG file.
pub fn png(heatmap: &Heatmap, width: u32) -> Result<Vec<u8>, PlotError> {
    raster::png(&svg(heatmap, width)?)
}

fn layout(heatmap: &Heatmap, width: u32) -> Result<PictureLayout, PlotError> {
    use_fonts()?;
    let (min, max) = (MIN_WIDTH, MAX_WIDTH);
    if !(min..=max).contains(&width) {
        return Err(PlotError::Size { width, height: 0, min, max });
    }
    let layout = PictureLayout::new(heatmap, width);
    if layout.height > MAX_HEIGHT as i32 {
        return Err(PlotError::Size { width, height: layout.height as u32, min, max });
    }
    Ok(layout)
}

/// Draws everything except the cells, which are drawn below.
fn draw<DB: DrawingBackend>(
    root: &Area<'_, DB>,
    heatmap: &Heatmap,
    layout: &PictureLayout,
) -> Result<(), PlotError> {
    let mut y = MARGIN;
    for header in &layout.header {
        let (size, colour, step) = match header.kind {
            LineKind::Title => (LARGE, TEXT, 32),
            LineKind::Plain => (SMALL, QUIET, LINE + 1),
            LineKind::Doubt => (SMALL, DOUBT, LINE + 1),
        };
        let bold = header.kind != LineKind::Plain;
        let middle = (MARGIN, y + step / 2);
        AxisLabel { text: &header.text, size, bold, colour, h: HPos::Left, v: VPos::Center }
            .put(root, middle)?;
        y += step;
    }
    legend(root, layout)?;
    for (panel, &top) in heatmap.panels.iter().zip(&layout.tops) {
        frame(root, heatmap, layout, panel, top)?;
    }
    Ok(())
}

/// Draws the legend of the colours.
fn legend<DB: DrawingBackend>(root: &Area<'_, DB>, layout: &PictureLayout) -> Result<(), PlotError> {
    let scale = layout.scale;
    let (top, bottom) = (layout.legend_top, layout.legend_top + 16);
    let middle = top + 8;
    let words = if scale.is_log() { "Samples per cell (log scale):" } else { "Samples per cell:" };
    AxisLabel::small(words, HPos::Left).put(root, (MARGIN, middle))?;
    let left = MARGIN + text_width(words, SMALL, false) as i32 + 14;
    let step = 5;
    let right = left + LEVELS as i32 * step;
    for level in 0..LEVELS {
        let x = left + level as i32 * step;
        // Each step overlaps the next by one pixel, so that no backend leaves a seam.
        root.draw(&Rectangle::new([(x, top), (x + step, bottom)], on_light(level).filled()))?;
    }
    let mut end = right;
    for tick in count_ticks(scale.max(), scale.is_log()) {
        let at = scale.position(tick.at).unwrap_or(0.0);
        let x = left + (at * f64::from(right - left)).round() as i32;
        line(root, (x, bottom), (x, bottom + 5), FRAME.to_rgba())?;
        AxisLabel { v: VPos::Top, ..AxisLabel::small(&tick.label, HPos::Center) }
            .put(root, (x, bottom + 7))?;
        end = end.max(x + text_width(&tick.label, SMALL, false) as i32 / 2);
    }
    let mut x = end + 30;
    let gap = layout.has_gaps().then_some((NOT_MEASURED, "not measured"));
    for (colour, words) in [(NO_SAMPLES, "no samples")].into_iter().chain(gap) {
        let corners = [(x, top), (x + 22, bottom)];
        root.draw(&Rectangle::new(corners, colour.filled()))?;
        root.draw(&Rectangle::new(corners, FRAME.stroke_width(1)))?;
        AxisLabel::small(words, HPos::Left).put(root, (x + 30, middle))?;
        x += 30 + text_width(words, SMALL, false) as i32 + 24;
    }
    Ok(())
}

/// Returns the ticks of the colour bar: round numbers, and always one sample and the maximum, with
/// space between them.
fn count_ticks(max: u64, log: bool) -> Vec<Tick> {
    let end = max as f64;
    let inner = if log { log_ticks(1.0, end, 5) } else { linear_ticks(0.0, end, 5) };
    let place = |at: f64| if log { at.ln() / end.ln() } else { (at - 1.0) / (end - 1.0).max(1.0) };
    let mut ticks = vec![Tick { at: 1.0, label: "1".to_owned() }];
    let inside = |t: &Tick| t.at.fract() == 0.0 && place(t.at) > 0.13 && place(t.at) < 0.85;
    ticks.extend(inner.into_iter().filter(inside));
    if max > 1 {
        ticks.push(Tick { at: end, label: short(end) });
    }
    ticks
}

/// Draws the title, the axes and the grid of a panel.
fn frame<DB: DrawingBackend>(
    root: &Area<'_, DB>,
    heatmap: &Heatmap,
    layout: &PictureLayout,
    panel: &Panel,
    top: i32,
) -> Result<(), PlotError> {
    let (left, right, bottom) = (layout.left, layout.right, top + layout.plot_height);
    let whole = heatmap.panels.iter().fold(0u64, |sum, panel| sum.saturating_add(panel.weight));
    let share = panel.weight as f64 / whole.max(1) as f64;
    let mut count = counted(panel.samples, "sample");
    if heatmap.panels.len() > 1 {
        count += &format!(", {}", percent(share));
    }
    if panel.samples < FEW {
        count += ": too few for a pattern";
    }
    let room = (layout.width - 2 * MARGIN - 24) as u32 - text_width(&count, SMALL, false);
    let title = shorten(&clean(&panel.title), |t| text_width(t, NORMAL, true) <= room);
    let middle = top - TITLE / 2 - 1;
    let bold =
        AxisLabel { text: &title, size: NORMAL, bold: true, colour: TEXT, h: HPos::Left, v: VPos::Center };
    bold.put(root, (MARGIN, middle))?;
    AxisLabel::small(&count, HPos::Right).put(root, (right, middle))?;

    let grid = RGBColor(0, 0, 0).mix(0.10);
    for &y in &layout.grid {
        line(root, (left, top + y), (right - 1, top + y), grid)?;
    }
    for label in &layout.labels {
        let y = top + label.y;
        if label.tick {
            line(root, (left - 5, y), (left, y), FRAME.to_rgba())?;
        }
        AxisLabel::small(&label.text, HPos::Right).put(root, (left - 8, y))?;
    }
    let (start, end) = heatmap.span();
    let (ticks, unit) = time_ticks(start, end, ((right - left) / 80) as usize);
    for tick in &ticks {
        let part = (tick.at - start as f64) / (end - start) as f64;
        let x = left + (part * f64::from(right - 1 - left)).round() as i32;
        for &(y0, y1) in &layout.blocks {
            line(root, (x, top + y0), (x, top + y1), grid)?;
        }
        line(root, (x, bottom), (x, bottom + 5), FRAME.to_rgba())?;
        AxisLabel { v: VPos::Top, ..AxisLabel::small(&tick.label, HPos::Center) }
            .put(root, (x, bottom + 8))?;
    }
    let words = format!("time since the start of the run ({unit})");
    AxisLabel { v: VPos::Top, ..AxisLabel::small(&words, HPos::Center) }
        .put(root, ((left + right) / 2, bottom + 27))?;
    for &(y0, y1) in &layout.blocks {
        let corners = [(left, top + y0), (right - 1, top + y1)];
        root.draw(&Rectangle::new(corners, FRAME.stroke_width(1)))?;
    }
    if let (Axis::Latency { .. }, Some((y0, y1))) = (&heatmap.axis, layout.blocks.first()) {
        let at = (MARGIN + 8, top + (y0 + y1) / 2);
        AxisLabel::small(heatmap.axis.label(), HPos::Center).draw(root, at, FontTransform::Rotate270)?;
    }
    Ok(())
}
