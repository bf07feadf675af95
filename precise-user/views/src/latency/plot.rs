//! Latency histograms as PNG or SVG: one panel for all samples and one for each group, on a common
//! axis.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::element::Rectangle;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor};

use crate::heatmap::plot::{MAX_WIDTH, MIN_WIDTH};
use crate::latency::{Distribution, Latency, LatencyEvent};
use crate::render::number::{cycles, duration, percent};
use crate::render::plot::{PlotError, clean, draw_error, shorten, text_width, use_fonts, wrap, xml};
use crate::render::plot_area::{
    Area, AxisLabel, DOUBT, FRAME, LARGE, LINE, MARGIN, NORMAL, QUIET, SMALL, TEXT, TITLE, fill, line,
};
use crate::render::plot_colour::{LEVELS, on_light};
use crate::render::plot_scale::log_ticks;
use crate::render::raster;
use precise_model::digits::counted;

/// Maximum number of panels for groups; the table contains the others.
const MOST_PANELS: usize = 8;
/// Height of a panel's bars, in pixels.
const BARS: i32 = 110;
/// Height above the bars for the names of percentiles, in pixels.
const MARKS: i32 = 22;
/// Width of a percentile's name with its line, in pixels.
const MARK_WIDTH: i32 = 36;
/// Number of samples below which a panel has no bars, because they have no shape.
const FEW: u64 = 10;
/// Width of the space left of the bars, in pixels.
const LEFT: i32 = 70;
/// Height of the space below the last panel, in pixels.
const AXIS: i32 = 56;
const MARK: RGBColor = RGBColor(0xb0, 0x3a, 0x2e);

/// Returns the histograms of one event as a PNG file.
///
/// # Errors
///
/// Returns an error if the width is out of range.
pub fn png(view: &Latency, event: &LatencyEvent, width: u32) -> Result<Vec<u8>, PlotError> {
    raster::png(&svg(view, event, width)?)
}

/// Returns the histograms of one event as an SVG document.
///
/// # Errors
///
/// Returns an error if the width is out of range.
pub fn svg(view: &Latency, event: &LatencyEvent, width: u32) -> Result<String, PlotError> {
    let layout = Layout::new(view, event, width)?;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (width, layout.height as u32)).into_drawing_area();
        root.fill(&RGBColor(255, 255, 255)).map_err(draw_error)?;
        layout.draw(&Area { area: &root })?;
        root.present().map_err(draw_error)?;
    }
    let (open, body) = text.split_once(">\n").unwrap_or(("", &text));
    Ok(format!("{open} role=\"img\">\n<title>{}</title>\n{body}", xml(&layout.title)))
}

/// The geometry of a picture.
struct Layout<'a> {
    title: String,
    header: Vec<(String, bool)>,
    panels: Vec<(String, &'a Distribution)>,
    /// First and last latency of the axis, in core cycles.
    span: (f64, f64),
    width: i32,
    height: i32,
}

impl<'a> Layout<'a> {
    fn new(view: &Latency, event: &'a LatencyEvent, width: u32) -> Result<Self, PlotError> {
        use_fonts()?;
        let (min, max) = (MIN_WIDTH, MAX_WIDTH);
        if !(min..=max).contains(&width) {
            return Err(PlotError::Size { width, height: 0, min, max });
        }
        let of = |d: &'a Distribution| {
            let name: Vec<_> = d.group.values.iter().map(|value| value.label()).collect();
            (if name.is_empty() { "all".to_owned() } else { name.join(", ") }, d)
        };
        let groups = event.groups.iter().take(MOST_PANELS);
        let panels: Vec<_> = event.all.iter().chain(groups).map(of).collect();
        let title = format!("Latency of {}", event.event.name);
        let room = width - 2 * MARGIN as u32;
        let when = view.run.when().map_or_else(String::new, |when| format!(", {when}"));
        let run = format!(
            "{} with a latency, {} of {} on {}{when}",
            counted(event.timed, "sample"),
            duration(view.run.duration_ns),
            view.run.target,
            view.run.host
        );
        let mut header: Vec<_> = wrap(&run, room, SMALL, false, 2).into_iter().map(|l| (l, false)).collect();
        let doubts = (!event.event.trust.precise).then(|| event.event.trust.summary.clone());
        for text in event.notes.iter().cloned().chain(doubts) {
            header.extend(wrap(&text, room, SMALL, true, 3).into_iter().map(|l| (l, true)));
        }
        let ends = panels.iter().flat_map(|(_, d)| d.buckets.first().into_iter().chain(d.buckets.last()));
        let span = ends.fold((f64::MAX, 1.0f64), |(from, to), bucket| {
            (from.min(bucket.low as f64), to.max(bucket.high as f64 + 1.0))
        });
        let header_height = 44 + LINE * header.len() as i32;
        let height = MARGIN + header_height + panels.len() as i32 * (TITLE + BARS + 8) + AXIS;
        Ok(Self {
            title,
            header,
            panels,
            span: (span.0.clamp(1.0, span.1 / 1.5), span.1),
            width: width as i32,
            height,
        })
    }

    /// Returns the horizontal position of a latency, in pixels.
    fn x(&self, cycles: f64) -> i32 {
        let (from, to) = self.span;
        let part = (cycles.clamp(from, to) / from).ln() / (to / from).ln();
        LEFT + (part * f64::from(self.width - MARGIN - LEFT)).round() as i32
    }

    fn draw<DB: DrawingBackend>(&self, area: &Area<'_, DB>) -> Result<(), PlotError> {
        heading(&clean(&self.title), LARGE).put(area, (MARGIN, MARGIN + 14))?;
        let mut y = MARGIN + 36;
        for (text, doubt) in &self.header {
            let colour = if *doubt { DOUBT } else { QUIET };
            AxisLabel { colour, bold: *doubt, ..AxisLabel::small(text, HPos::Left) }
                .put(area, (MARGIN, y + LINE / 2))?;
            y += LINE;
        }
        y += 8;
        let ticks = log_ticks(self.span.0, self.span.1, ((self.width - LEFT) / 70) as usize);
        for (name, distribution) in &self.panels {
            let facts = facts(distribution);
            let room = (self.width - 2 * MARGIN - 24) as u32;
            let room = room.saturating_sub(text_width(&facts, SMALL, false));
            let name = shorten(&clean(name), |t| text_width(t, NORMAL, true) <= room);
            heading(&name, NORMAL).put(area, (MARGIN, y + TITLE / 2))?;
            AxisLabel::small(&facts, HPos::Right).put(area, (self.width - MARGIN, y + TITLE / 2))?;
            y += TITLE;
            self.panel(area, distribution, y, ticks.iter().map(|tick| tick.at))?;
            y += BARS + 8;
        }
        for tick in &ticks {
            let label = AxisLabel { v: VPos::Top, ..AxisLabel::small(&tick.label, HPos::Center) };
            label.put(area, (self.x(tick.at), y))?;
        }
        let label = "latency, core cycles (log scale, each bar an eighth of a power of two or less)";
        let label = AxisLabel { v: VPos::Top, ..AxisLabel::small(label, HPos::Center) };
        label.put(area, ((LEFT + self.width - MARGIN) / 2, y + 20))
    }

    fn panel<DB: DrawingBackend>(
        &self,
        area: &Area<'_, DB>,
        distribution: &Distribution,
        top: i32,
        ticks: impl Iterator<Item = f64>,
    ) -> Result<(), PlotError> {
        let (right, bottom) = (self.width - MARGIN, top + BARS);
        let grid = RGBColor(0, 0, 0).mix(0.10);
        for tick in ticks {
            line(area, (self.x(tick), top), (self.x(tick), bottom), grid)?;
        }
        let group = &distribution.group;
        if group.measures.count < FEW {
            let words =
                format!("{} of latency: too few for a shape", counted(group.measures.count, "sample"));
            let middle = ((LEFT + right) / 2, top + BARS / 2);
            AxisLabel::small(&words, HPos::Center).put(area, middle)?;
            return area.draw(&Rectangle::new([(LEFT, top), (right, bottom)], FRAME.stroke_width(1)));
        }
        let most = distribution.buckets.iter().map(|b| b.share).fold(f64::MIN_POSITIVE, f64::max);
        for bucket in &distribution.buckets {
            let height = (bucket.share / most * f64::from(BARS - MARKS)).ceil() as i32;
            let (from, to) = (self.x(bucket.low as f64), self.x(bucket.high as f64 + 1.0));
            // Bars are one pixel apart if there is room, and always at least one pixel wide.
            let to = if to - from > 3 { to - 1 } else { to.max(from + 1) };
            fill(area, (from, to), (bottom - height, bottom), on_light(LEVELS * 3 / 5))?;
        }
        let marks = [("p50", group.p50), ("p99", group.p99)];
        let at = marks.iter().filter_map(|(name, p)| Some((*name, self.x((*p)?.cycles))));
        // Names that would lie on each other stand beside each other.
        let mut named: Vec<(String, i32)> = Vec::new();
        for (name, x) in at {
            line(area, (x, top), (x, bottom), MARK.to_rgba())?;
            match named.last_mut() {
                Some((names, last)) if x - *last < MARK_WIDTH => *names += &format!(", {name}"),
                _ => named.push((name.to_owned(), x)),
            }
        }
        for (names, x) in named {
            let left = x + 4 + text_width(&names, SMALL, false) as i32 > right;
            let (h, at) = if left { (HPos::Right, x - 4) } else { (HPos::Left, x + 4) };
            AxisLabel { colour: MARK, ..AxisLabel::small(&names, h) }.put(area, (at, top + MARKS / 2))?;
        }
        let highest = percent(most);
        AxisLabel::small(&highest, HPos::Right).put(area, (LEFT - 8, top + MARKS))?;
        AxisLabel::small("0", HPos::Right).put(area, (LEFT - 8, bottom - 6))?;
        area.draw(&Rectangle::new([(LEFT, top), (right, bottom)], FRAME.stroke_width(1)))
    }
}

/// Returns the style of a heading.
fn heading(text: &str, size: u32) -> AxisLabel<'_> {
    AxisLabel { text, size, bold: true, colour: TEXT, h: HPos::Left, v: VPos::Center }
}

fn facts(distribution: &Distribution) -> String {
    let group = &distribution.group;
    let mut facts = format!("{}, {}", counted(group.measures.count, "sample"), percent(group.share.value));
    for (name, percentile) in
        [("p50", group.p50), ("p90", group.p90), ("p99", group.p99), ("p99.9", group.p999)]
    {
        if let Some(percentile) = percentile {
            facts += &format!(", {name} {}", cycles(percentile.cycles));
        }
    }
    facts
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::*;
    use crate::latency::{LatencyOptions, latency};
    use crate::mem::tests::two_nodes;

    #[test]
    fn a_picture_has_a_panel_for_each_level_and_its_numbers() {
        let view = latency(&two_nodes(), &LatencyOptions::default()).unwrap();
        let svg = svg(&view, &view.events[0], 900).unwrap();
        for text in [
            "Latency of mem",
            "Remote RAM hit",
            "150 samples, 15.5%, p50 600",
            "have no latency",
            "core cycles",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        if let Some(path) = std::env::var_os("PRECISE_TEST_PICTURE") {
            std::fs::write(path, png(&view, &view.events[0], 900).unwrap()).unwrap();
        }
        assert!(matches!(super::svg(&view, &view.events[0], 100), Err(PlotError::Size { .. })));
    }
}
