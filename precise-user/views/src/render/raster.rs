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
    pixmap(svg)?.encode_png().map_err(|error| PlotError::Draw(error.to_string()))
}
