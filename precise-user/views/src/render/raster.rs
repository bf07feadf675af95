//! Pictures as bytes. A PNG is drawn from the SVG, so that the two never differ.

use std::io::Write as _;
use std::num::NonZero;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::{letters::outlined, plot::PlotError};

/// The pixels of a PNG for each pixel of the SVG, in each direction: letters are
/// sharp on screens with a high density.
const DENSITY: f32 = 2.0;
/// The largest number of pixels that are drawn at [`DENSITY`]; larger pictures have one pixel for
/// each pixel of the SVG. A pixel takes 4 bytes.
const DENSE_PIXELS: f32 = 48e6;
/// The largest number of pixels of a picture: 1 GB of memory.
const MOST_PIXELS: f32 = 256e6;

/// The strips of a picture that are drawn at the same time, at most. Each looks at all of its
/// paths, which takes a third of the time of drawing a heatmap at once.
const MOST_STRIPS: usize = 2;

/// Returns an SVG of this program as PNG.
///
/// # Errors
///
/// Returns an error if the picture has too many pixels, or if it is no SVG.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    encoded(&strips(svg)?).map_err(|error| PlotError::Draw(error.to_string()))
}

/// Draws an SVG. Returns strips of the same width, the highest first.
fn strips(svg: &str) -> Result<Vec<Pixmap>, PlotError> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default())
        .map_err(|error| PlotError::Draw(error.to_string()))?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let too_large = || PlotError::Draw(format!("{width} by {height} pixels are too many for a PNG"));
    if width * height > MOST_PIXELS {
        return Err(too_large());
    }
    let scale = if width * height * DENSITY * DENSITY > DENSE_PIXELS { 1.0 } else { DENSITY };
    let size = |length: f32| (length * scale).ceil() as u32;
    let (width, height) = (size(width), size(height));
    let strips = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_STRIPS);
    let rows = height.div_ceil(strips as u32).max(1);
    let draw = &|top: u32| -> Result<Pixmap, PlotError> {
        let mut strip = Pixmap::new(width, rows.min(height - top)).ok_or_else(too_large)?;
        strip.fill(Color::WHITE);
        let place = Transform::from_scale(scale, scale).post_translate(0.0, -(top as f32));
        resvg::render(&tree, place, &mut strip.as_mut());
        Ok(strip)
    };
    std::thread::scope(|scope| {
        let start = |top: u32| std::thread::Builder::new().spawn_scoped(scope, move || draw(top));
        let tops = (0..height.max(1)).step_by(rows as usize);
        let drawing: Vec<_> = tops.map(|top| (top, start(top))).collect();
        let joined = drawing.into_iter().map(|(top, strip)| match strip {
            Ok(strip) => strip.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system has no thread to spare.
            Err(_) => draw(top),
        });
        joined.collect()
    })
}

/// Encodes a picture. It has no transparent pixel, because it was white before anything was drawn.
fn encoded(strips: &[Pixmap]) -> Result<Vec<u8>, png::EncodingError> {
    let (width, height) = (strips.first().map_or(0, Pixmap::width), strips.iter().map(Pixmap::height).sum());
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    // Most rows are like the row above. Of a heatmap of 2,400 by 4,208 pixels, this takes 20 ms and
    // makes 670 kB. The defaults take 90 ms, half of the time of a picture, and make 310 kB.
    encoder.set_deflate_compression(png::DeflateCompression::Level(1));
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header()?;
    let mut rows = writer.stream_writer()?;
    let mut colours = vec![0; width as usize * 3];
    for row in strips.iter().flat_map(|strip| strip.data().chunks_exact(width as usize * 4)) {
        for (to, [red, green, blue, _]) in colours.as_chunks_mut().0.iter_mut().zip(row.as_chunks().0) {
            *to = [*red, *green, *blue];
        }
        rows.write_all(&colours)?;
    }
    rows.finish()?;
    writer.finish()?;
    Ok(file)
}
