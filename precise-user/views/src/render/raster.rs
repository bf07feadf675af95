//! Pictures as bytes. A PNG is drawn from the SVG, so that the two never differ.

use std::collections::hash_map::Entry;
use std::mem;

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
};
use roxmltree::Document;
use rustc_hash::FxHashMap;
use tiny_skia::Pixmap;

use super::plot::{PlotError, draw_error};
use super::shapes::{Shape, Size, shapes};

/// The pixels of a PNG for each pixel of the SVG, in each direction: letters are sharp on screens
/// with a high density.
const DENSITY: f32 = 2.0;
/// The largest number of pixels that are drawn at [`DENSITY`]; larger pictures have one pixel for
/// each pixel of the SVG.
const DENSE_PIXELS: f32 = 48e6;
/// The largest number of pixels of a picture, of which a program that shows it makes a gigabyte.
const MOST_PIXELS: f32 = 256e6;

/// The bytes of a band of the picture, about. Bands are drawn one after the other into the same
/// memory: the first touch of memory for a whole picture takes longer than painting it.
const BAND: usize = 2 << 20;

/// The level of compression: the fastest one.
const LEVEL: i32 = 1;

/// Returns an SVG of this program as PNG.
///
/// # Errors
///
/// Returns an error if the picture has too many pixels, or if it is no SVG.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    let drawing = Drawing::new(svg)?;
    if let Some(file) = drawing.file(Colours::Indexed(Palette::default()))? {
        return Ok(file);
    }
    let none = || PlotError::Draw("red, green and blue have no room for a colour".to_owned());
    drawing.file(Colours::Rgb)?.ok_or_else(none)
}

/// A picture as shapes.
struct Drawing {
    width: u32,
    height: u32,
    shapes: Vec<Shape>,
}

impl Drawing {
    fn new(svg: &str) -> Result<Self, PlotError> {
        let svg = Document::parse(svg).map_err(draw_error)?;
        let of_svg = Size::of(&svg)?;
        let Size { width, height } = of_svg;
        if width * height > MOST_PIXELS {
            return Err(too_large(width, height));
        }
        let scale = if width * height * DENSITY * DENSITY > DENSE_PIXELS { 1.0 } else { DENSITY };
        let size = |length: f32| (length * scale).ceil() as u32;
        Ok(Self { width: size(width), height: size(height), shapes: shapes(&svg, of_svg, scale)? })
    }

    /// Returns the picture as PNG; `None` if it has more colours than `colours` has room for.
    fn file(&self, mut colours: Colours) -> Result<Option<Vec<u8>>, PlotError> {
        let Some(rows) = self.compressed(&mut colours)? else { return Ok(None) };
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        match &colours {
            Colours::Indexed(palette) => {
                encoder.set_color(png::ColorType::Indexed);
                encoder.set_palette(&palette.colours);
            }
            Colours::Rgb => encoder.set_color(png::ColorType::Rgb),
        }
        let mut writer = encoder.write_header().map_err(draw_error)?;
        // Not by the encoder: its library took a third of the time of a picture for moving its
        // tables after each 32 KiB, because the linker does not vectorize
        // (docs/journal/0022-pictures.md).
        writer.write_chunk(png::chunk::IDAT, &rows).map_err(draw_error)?;
        // Writes the end, which does not fail in memory.
        drop(writer);
        Ok(Some(file))
    }

    /// Paints the picture and compresses its rows, band by band. Returns `None` if it has more
    /// colours than `colours` has room for.
    fn compressed(&self, colours: &mut Colours) -> Result<Option<Vec<u8>>, PlotError> {
        let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, 1, 0));
        let mut compressed = Vec::new();
        let mut compress = |rows: &[u8], flush, expected| {
            let append = |bytes: &[u8]| {
                compressed.extend_from_slice(bytes);
                true
            };
            match compress_to_output(&mut compressor, rows, flush, append) {
                (status, _) if status == expected => Ok(()),
                (status, _) => Err(PlotError::Draw(format!("the compressor says {status:?}"))),
            }
        };
        let width = self.width as usize;
        // Neither is zero: the size of an SVG is not.
        let height = (BAND / 4 / width).clamp(1, self.height as usize);
        let mut band = Pixmap::new(self.width, height as u32)
            .ok_or_else(|| too_large(self.width as f32, self.height as f32))?;
        let row_bytes = 1 + width * colours.bytes();
        let mut rows = vec![0; row_bytes * height];
        for top in (0..self.height).step_by(height) {
            // White. The pixmap's own fill is a loop that sets four bytes at a time.
            band.data_mut().fill(0xff);
            self.shapes.iter().for_each(|shape| shape.paint(&mut band, top));
            let mut above = None;
            let of_picture = height.min((self.height - top) as usize);
            let rows = &mut rows[..row_bytes * of_picture];
            for (row, pixels) in rows.chunks_exact_mut(row_bytes).zip(band.data().chunks_exact(4 * width)) {
                if !colours.set_row(row, pixels, above) {
                    return Ok(None);
                }
                above = Some(pixels);
            }
            compress(rows, TDEFLFlush::None, TDEFLStatus::Okay)?;
        }
        compress(&[], TDEFLFlush::Finish, TDEFLStatus::Done)?;
        Ok(Some(compressed))
    }
}

fn too_large(width: f32, height: f32) -> PlotError {
    PlotError::Draw(format!("{width} by {height} pixels are too many for a PNG"))
}

/// How a file says the colour of a pixel.
enum Colours {
    /// By its index: a third of the bytes to compress. Most pictures have no more than 256 colours.
    Indexed(Palette),
    /// By its red, green and blue.
    Rgb,
}

/// The filters of rows that are used (PNG specification, section 9.2): the bytes themselves, and
/// what is to be added to those of the row above.
const BYTES: u8 = 0;
const UP: u8 = 2;

impl Colours {
    /// Returns the bytes of a pixel.
    fn bytes(&self) -> usize {
        match self {
            Self::Indexed(_) => 1,
            Self::Rgb => 3,
        }
    }

    /// Sets a row of a PNG, which is a filter and what says the colour of each pixel. The pixels
    /// have four bytes each, and none is transparent, because all were white before anything was
    /// painted. Returns `false` if there is no room for one of their colours.
    fn set_row(&mut self, row: &mut [u8], pixels: &[u8], above: Option<&[u8]>) -> bool {
        let Some((filter, row)) = row.split_first_mut() else { return true };
        if above == Some(pixels) {
            *filter = UP;
            row.fill(0);
            return true;
        }
        *filter = BYTES;
        match self {
            Self::Indexed(palette) => {
                let all = palette.find_indexes(pixels, above);
                row.copy_from_slice(&palette.row);
                all
            }
            Self::Rgb => {
                let colours = row.as_chunks_mut::<3>().0;
                for (colour, &[red, green, blue, _]) in colours.iter_mut().zip(pixels.as_chunks().0) {
                    *colour = [red, green, blue];
                }
                true
            }
        }
    }
}

/// The colours of a picture, at most 256.
#[derive(Default)]
struct Palette {
    /// Red, green and blue of each.
    colours: Vec<u8>,
    indexes: FxHashMap<[u8; 4], u8>,
    /// The indexes of the last row that was found.
    row: Vec<u8>,
}

/// The pixels that are compared with those above at a time: most are like them.
const COMPARED: usize = 16;

impl Palette {
    /// Finds the indexes of a row's colours. `above` is the row of which they were found before.
    /// Returns whether all have one.
    fn find_indexes(&mut self, row: &[u8], above: Option<&[u8]>) -> bool {
        let mut indexes = mem::take(&mut self.row);
        indexes.resize(row.len() / 4, 0);
        let above = above.unwrap_or_default();
        let (mut before, mut index) = (None, Some(0));
        let mut all = true;
        for (at, (indexes, row)) in indexes.chunks_mut(COMPARED).zip(row.chunks(4 * COMPARED)).enumerate() {
            if above.get(4 * COMPARED * at..).is_some_and(|above| above.starts_with(row)) {
                continue;
            }
            for (place, &pixel) in indexes.iter_mut().zip(row.as_chunks().0) {
                if before != Some(pixel) {
                    (before, index) = (Some(pixel), self.index(pixel));
                    all &= index.is_some();
                }
                *place = index.unwrap_or_default();
            }
        }
        self.row = indexes;
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
        for (inside, what) in [
            (r#"<path d="M1 1h7" stroke="red" stroke-dasharray="1 1"/>"#, "`stroke-dasharray` of `path`"),
            (r#"<path d="M1 1q7 2 3 4" stroke="red"/>"#, "a curve"),
            (r#"<circle/>"#, "a `circle`"),
            (r#"<text letter-spacing="2">A</text>"#, "`letter-spacing` of `text`"),
            (r#"<rect width="9" height="x"/>"#, "`height=\"x\"`, which is not a number"),
        ] {
            let error = png(&svg(inside)).unwrap_err().to_string();
            assert_eq!(error, format!("The picture could not be drawn: the SVG has {what}."));
        }
        for inside in ["", r#"<path d="M1 1h7" stroke="red"/>"#, r#"<rect width="0" height="9"/>"#] {
            assert!(png(&svg(inside)).is_ok(), "{inside}");
        }
        for hostile in [
            r#"<path d="M1 1h"/>"#,
            r#"<path d="M1 1h1e30v1e38h1e38" stroke="red" stroke-width="1e38"/>"#,
            r#"<rect x="-1e38" width="3e38" height="3e38" stroke="red"/>"#,
            r#"<rect fill="blau" width="1" height="1"/>"#,
            r#"<polyline points="1,2 3" stroke="red" opacity="-7"/>"#,
            r#"<text font-size="1e38" x="1e38" transform="rotate(1e38)">A</text>"#,
        ] {
            let _either = png(&svg(hostile));
        }
        let error = png(r#"<svg width="0" height="9"/>"#).unwrap_err().to_string();
        assert_eq!(error, "The picture could not be drawn: the SVG has no width.");
        assert!(png("<svg").is_err());
    }
}
