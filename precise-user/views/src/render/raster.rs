//! Pictures as bytes. A PNG is drawn from the SVG, so that the two never differ.

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

/// Draws an SVG of this program.
///
/// # Errors
///
/// Returns an error if the picture has too many pixels, or if it is no SVG.
pub(crate) fn pixmap(svg: &str) -> Result<Pixmap, PlotError> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default())
        .map_err(|error| PlotError::Draw(error.to_string()))?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let too_large = || PlotError::Draw(format!("{width} by {height} pixels are too many for a PNG"));
    if width * height > MOST_PIXELS {
        return Err(too_large());
    }
    let scale = if width * height * DENSITY * DENSITY > DENSE_PIXELS { 1.0 } else { DENSITY };
    let size = |length: f32| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(size(width), size(height)).ok_or_else(too_large)?;
    pixmap.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    Ok(pixmap)
}

/// Returns an SVG of this program as PNG.
///
/// # Errors
///
/// Returns an error if the picture has too many pixels.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    encoded(&pixmap(svg)?).map_err(|error| PlotError::Draw(error.to_string()))
}

/// Encodes a picture. It has no transparent pixel, because it was white before anything was drawn.
fn encoded(pixmap: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut colours = vec![0; pixmap.pixels().len() * 3];
    for (to, [red, green, blue, _]) in colours.as_chunks_mut().0.iter_mut().zip(pixmap.data().as_chunks().0) {
        *to = [*red, *green, *blue];
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    // Most rows are like the row above. Trying every filter on every row takes half of the time of
    // a picture, and makes a file of the same size.
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(file)
}
