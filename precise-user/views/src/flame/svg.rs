//! Flame graphs as pictures, drawn by inferno.

use inferno::flamegraph::{
    self, Direction, Options, Palette,
    color::{BackgroundColor, MultiPalette},
};

use crate::flame::folded::folded;
use crate::flame::{Flame, FrameWidth};
use crate::render::number::{duration, percent};
use precise_model::digits::counted;
use precise_model::text::sanitize;

/// Draws a flame graph that is `width` pixels wide, as an SVG with search and zoom in a browser.
///
/// # Errors
///
/// Returns the error message of the drawing library.
pub fn flame_svg(flame: &Flame, width: u32) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    let (count, what) = match flame.by {
        FrameWidth::Samples => ("samples", "width: samples"),
        FrameWidth::Events => ("events", "width: events that the samples stand for"),
        FrameWidth::Latency => ("cycles of latency", "width: sum of latencies"),
    };
    let unsure = if flame.precise { "" } else { ", not precise" };
    options.title = sanitize(&format!("{} of {}", flame.event, flame.run.target));
    let broken = match flame.broken {
        0 => String::new(),
        broken => format!(
            "; {} of the width ends before its outermost caller",
            percent(broken as f64 / flame.total.max(1) as f64)
        ),
    };
    options.subtitle = Some(format!(
        "{what}; {} in {}{unsure}{broken}",
        counted(flame.samples, "sample"),
        duration(flame.run.duration_ns)
    ));
    // The root at the top: a browser opens a picture there, and one deep chain would push a root at
    // the bottom out of sight.
    options.direction = Direction::Inverted;
    options.count_name = count.to_owned();
    options.image_width = Some(width as usize);
    options.min_width = 0.01;
    // Colours follow the marks of the frames: kernel, JIT, inlined.
    options.colors = Palette::Multi(MultiPalette::Java);
    options.bgcolors = Some(BackgroundColor::Flat(WHITE));
    // The same capture always gives the same picture.
    options.deterministic = true;
    options.font_type = "sans-serif".to_owned();
    let text = folded(flame);
    // inferno escapes XML characters itself.
    let lines: Vec<String> = text.lines().map(sanitize).collect();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|error| error.to_string())?;
    Ok(svg)
}

const WHITE: flamegraph::color::Color = flamegraph::color::Color { r: 255, g: 255, b: 255 };
