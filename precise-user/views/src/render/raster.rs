//! Pictures as bytes. A PNG is drawn from the SVG, so that the two never differ.

use std::collections::hash_map::Entry;

use miniz_oxide::deflate::compress_to_vec_zlib;
use rustc_hash::FxHashMap;
use tiny_skia::Pixmap;
use usvg::{Options, Tree};

use super::letters::outlined;
use super::plot::PlotError;
use super::shapes::shapes;

/// The pixels of a PNG for each pixel of the SVG, in each direction: letters are
/// sharp on screens with a high density.
const DENSITY: f32 = 2.0;
/// The largest number of pixels that are drawn at [`DENSITY`]; larger pictures have one pixel for
/// each pixel of the SVG.
const DENSE_PIXELS: f32 = 48e6;
/// The largest number of pixels of a picture: up to 768 MB before they are compressed.
const MOST_PIXELS: f32 = 256e6;

/// The bytes of a band of the picture, about. Bands are drawn one after the other into the same
/// memory: the first touch of memory for a whole picture takes longer than painting it.
const BAND: usize = 2 << 20;

/// Returns an SVG of this program as PNG.
///
/// # Errors
///
/// Returns an error if the picture has too many pixels, or if it is no SVG.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    encoded(&drawn(svg)?).map_err(|error| PlotError::Draw(error.to_string()))
}

/// Draws an SVG.
fn drawn(svg: &str) -> Result<Picture, PlotError> {
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
    let shapes = shapes(&tree, scale)?;
    let row = width as usize * 4;
    let rows = (BAND / row.max(1)).clamp(1, height.max(1) as usize);
    let mut band = Pixmap::new(width, rows as u32).ok_or_else(too_large)?;
    let mut picture = Picture::new(width, height);
    for top in (0..height).step_by(rows) {
        // White. The pixmap's own fill is a loop that sets four bytes at a time.
        band.data_mut().fill(0xff);
        shapes.iter().for_each(|shape| shape.paint(&mut band, top));
        let mut above = None;
        for row in band.data().chunks_exact(row).take((height - top) as usize) {
            picture.add(row, above == Some(row));
            above = Some(row);
        }
    }
    Ok(picture)
}

/// The rows of a picture. Most pictures have no more than 256 colours, and each pixel is the index
/// of its colour then, which is a third of the bytes to compress.
struct Picture {
    width: u32,
    height: u32,
    /// `None` if there are too many colours.
    palette: Option<Palette>,
    /// The rows as a PNG has them: a filter, and a byte for the index of each pixel's colour, or,
    /// without a palette, three for its red, green and blue.
    rows: Vec<u8>,
    /// Zeros, for rows that are like the one above: a copy is faster than growing by a value.
    nothing: Vec<u8>,
}

/// The filters of rows that are used (PNG specification, section 9.2): the bytes themselves, and
/// what is to be added to those of the row above.
const BYTES: u8 = 0;
const UP: u8 = 2;

impl Picture {
    /// Starts a picture, which has no rows yet.
    fn new(width: u32, height: u32) -> Self {
        let rows = Vec::with_capacity((1 + width as usize) * height as usize);
        Self { width, height, palette: Some(Palette::default()), rows, nothing: vec![0; 3 * width as usize] }
    }

    /// Adds a row of pixels, each of four bytes; `again` says that it is as the last row. No pixel
    /// is transparent, because all were white before anything was painted.
    fn add(&mut self, row: &[u8], again: bool) {
        let row = row.as_chunks::<4>().0;
        if again {
            let bytes = if self.palette.is_some() { row.len() } else { 3 * row.len() };
            self.rows.push(UP);
            self.rows.extend_from_slice(&self.nothing[..bytes]);
            return;
        }
        let start = self.rows.len();
        self.rows.push(BYTES);
        if let Some(palette) = &mut self.palette {
            if palette.add_indexes(row, &mut self.rows) {
                return;
            }
            let (rows, colours) = (&self.rows[..start], palette.colours.as_chunks::<3>().0);
            let row = |row: &[u8]| match row {
                [BYTES, indexes @ ..] => {
                    let colours = indexes.iter().flat_map(|index| colours[usize::from(*index)]);
                    std::iter::once(BYTES).chain(colours).collect()
                }
                indexes => [vec![UP], vec![0; 3 * indexes.len().saturating_sub(1)]].concat(),
            };
            self.rows = rows.chunks(1 + self.width as usize).flat_map(row).collect();
            self.rows.push(BYTES);
            self.palette = None;
        }
        self.rows.extend(row.iter().flat_map(|&[red, green, blue, _]| [red, green, blue]));
    }
}

/// The colours of a picture, at most 256.
#[derive(Default)]
struct Palette {
    /// Red, green and blue of each.
    colours: Vec<u8>,
    indexes: FxHashMap<[u8; 4], u8>,
}

impl Palette {
    /// Appends the indexes of a row's colours. Returns whether all have one; without, what was
    /// appended means nothing.
    fn add_indexes(&mut self, row: &[[u8; 4]], rows: &mut Vec<u8>) -> bool {
        let (mut before, mut index) = (None, Some(0));
        let mut all = true;
        rows.extend(row.iter().map(|&pixel| {
            if before != Some(pixel) {
                (before, index) = (Some(pixel), self.index(pixel));
                all &= index.is_some();
            }
            index.unwrap_or_default()
        }));
        all
    }

    /// Returns the index of a colour; `None` if it would be the 257th.
    fn index(&mut self, pixel: [u8; 4]) -> Option<u8> {
        match self.indexes.entry(pixel) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => {
                let index = u8::try_from(self.colours.len() / 3).ok()?;
                let [red, green, blue, _] = pixel;
                self.colours.extend([red, green, blue]);
                Some(*new.insert(index))
            }
        }
    }
}

fn encoded(picture: &Picture) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, picture.width, picture.height);
    match &picture.palette {
        Some(palette) => {
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_palette(&palette.colours);
        }
        None => encoder.set_color(png::ColorType::Rgb),
    }
    let mut writer = encoder.write_header()?;
    // Not by the encoder: its library took a third of the time of a picture for moving its tables
    // after each 32 KiB, because the linker does not vectorize (docs/journal/0022-pictures.md).
    writer.write_chunk(png::chunk::IDAT, &compress_to_vec_zlib(&picture.rows, 1))?;
    // Writes the end, which does not fail in memory.
    drop(writer);
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
pub(crate) mod tests {
    use super::*;
    use std::{fmt::Write as _, io::Cursor};
    use tiny_skia::IntSize;

    /// Returns an SVG with a white border and a column of each of `colours` colours. It is high
    /// enough for several bands.
    fn columns(colours: u32) -> String {
        let (width, height) = (4 * colours, 2 * BAND as u32 / (8 * colours) / 4);
        let mut svg =
            format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">"#);
        for colour in 0..colours {
            let (left, red_green_blue, height) = (4 * colour, 0x01_0203 + colour * 0x0101, height - 5);
            let fill = format!("#{red_green_blue:06x}");
            write!(svg, r#"<rect x="{left}" y="3" width="4" height="{height}" fill="{fill}"/>"#).unwrap();
        }
        svg + "</svg>"
    }

    /// Returns the pixels of a PNG, and how they are stored.
    pub(crate) fn decoded(png: Vec<u8>) -> (Pixmap, png::ColorType) {
        let mut decoder = png::Decoder::new(Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        let opaque = bytes.as_chunks::<3>().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]).collect();
        let pixels = Pixmap::from_vec(opaque, IntSize::from_wh(frame.width, frame.height).unwrap());
        (pixels.unwrap(), reader.info().color_type)
    }

    #[test]
    fn a_palette_changes_no_pixel() {
        for (colours, stored) in
            [(1, png::ColorType::Indexed), (255, png::ColorType::Indexed), (256, png::ColorType::Rgb)]
        {
            let (pixels, as_stored) = decoded(png(&columns(colours)).unwrap());
            assert_eq!(as_stored, stored, "white and {colours} colours");
            let width = 8 * colours as usize;
            let rows: Vec<&[[u8; 4]]> = pixels.data().as_chunks().0.chunks(width).collect();
            assert!(pixels.data().len() > BAND, "one band");
            for (y, row) in rows.iter().enumerate() {
                let painted = (6..rows.len() - 4).contains(&y);
                for (x, pixel) in row.iter().enumerate() {
                    let [_, red, green, blue] = (0x01_0203 + x as u32 / 8 * 0x0101).to_be_bytes();
                    let expected = if painted { [red, green, blue, 255] } else { [255; 4] };
                    assert_eq!(*pixel, expected, "{x},{y} of {colours} colours");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_painted_is_refused() {
        let svg = |inside: &str| {
            format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{inside}</svg>"#)
        };
        let dashed = r#"<path d="M1 1h7" stroke="red" stroke-dasharray="1 1"/>"#;
        let error = png(&svg(dashed)).unwrap_err().to_string();
        assert_eq!(error, "The picture could not be drawn: the SVG has a dashed line.");
        assert!(png(&svg(r#"<path d="M1 1h7" stroke="red"/>"#)).is_ok());
        assert!(png(&svg("")).is_ok());
        assert!(png("<svg").is_err());
    }
}
