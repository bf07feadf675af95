//! Shapes that are rectangles of whole pixels, such as the lines of axes and the cells of a
//! heatmap, of which a picture has hundreds of thousands. Their pixels are set, without outlines
//! and edges.

use tiny_skia::{Color, Path, PathSegment, Pixmap, Point};

/// Rectangles of one colour. Without an opaque colour there is one, since no pixel may be shaded
/// twice.
pub(super) struct Bars {
    /// Red, green, blue and opacity.
    pixel: [u8; 4],
    all: Vec<Bar>,
}

/// The pixels of a rectangle, from the first to before the end.
struct Bar {
    left: usize,
    right: usize,
    top: u32,
    bottom: u32,
}

impl Bars {
    /// Returns the inside of a path; `None` if it is not a rectangle of whole pixels.
    pub(super) fn of_fill(path: &Path, scale: f32, pixel: [u8; 4]) -> Option<Self> {
        let [from, to] = rectangle(path)?;
        Some(Self { pixel, all: vec![bar(from, to, scale)?] })
    }

    /// Returns the line of a path, of this width; `None` if it has parts that do not cover whole
    /// pixels, or if it lets through what is below and might cover a pixel twice.
    pub(super) fn of_stroke(path: &Path, width: f32, scale: f32, pixel: [u8; 4]) -> Option<Self> {
        let half = width / 2.0;
        let all = match rectangle(path) {
            Some(corners) => frame(corners, half, scale)?,
            None => lines(path, half, scale)?,
        };
        (is_opaque(pixel) || all.len() == 1).then_some(Self { pixel, all })
    }

    /// Paints what of the rectangles is in a band of the picture whose first row is `top`.
    pub(super) fn paint(&self, band: &mut Pixmap, top: u32) {
        let (width, rows) = (band.width() as usize, band.height());
        let pixels = band.data_mut().as_chunks_mut::<4>().0;
        for bar in &self.all {
            let (left, right) = (bar.left.min(width), bar.right.min(width));
            let mut of_band = (bar.top.saturating_sub(top)..bar.bottom.saturating_sub(top).min(rows))
                .map(|row| row as usize * width + left..row as usize * width + right);
            if !is_opaque(self.pixel) {
                of_band.for_each(|row| shade(&mut pixels[row], self.pixel));
            } else if let Some(first) = of_band.next() {
                // A fill is a loop over pixels where the linker does not vectorize; a copy is not.
                pixels[first.clone()].fill(self.pixel);
                of_band.for_each(|row| pixels.copy_within(first.clone(), row.start));
            }
        }
    }
}

/// Paints a colour over opaque pixels, with the sums of the library, which has them in 16 bits.
fn shade(pixels: &mut [[u8; 4]], [red, green, blue, alpha]: [u8; 4]) {
    let colour = Color::from_rgba8(red, green, blue, alpha).premultiply();
    let through = 255 - u16::from(alpha);
    let over = |below: &mut u8, part: f32| {
        *below = (part * 255.0 + 0.5) as u8 + ((u16::from(*below) * through + 255) >> 8) as u8;
    };
    for [red, green, blue, _] in pixels {
        over(red, colour.red());
        over(green, colour.green());
        over(blue, colour.blue());
    }
}

/// Returns two opposite corners of a path that is a rectangle.
fn rectangle(path: &Path) -> Option<[Point; 2]> {
    use PathSegment::{Close, LineTo, MoveTo};
    let mut segments = path.segments();
    let (MoveTo(a), LineTo(b), LineTo(c), LineTo(d), Close, None) = (
        segments.next()?,
        segments.next()?,
        segments.next()?,
        segments.next()?,
        segments.next()?,
        segments.next(),
    ) else {
        return None;
    };
    (a.y == b.y && b.x == c.x && c.y == d.y && d.x == a.x).then_some([a, c])
}

/// Returns the sides of a rectangle as bars with `half` of their width on each side.
fn frame([a, c]: [Point; 2], half: f32, scale: f32) -> Option<Vec<Bar>> {
    let ([left, right], [top, bottom]) = ([a.x.min(c.x), a.x.max(c.x)], [a.y.min(c.y), a.y.max(c.y)]);
    let side = |from: [f32; 2], to: [f32; 2]| {
        bar(Point::from_xy(from[0] - half, from[1] - half), Point::from_xy(to[0] + half, to[1] + half), scale)
    };
    [
        side([left, top], [right, top]),
        side([left, bottom], [right, bottom]),
        side([left, top], [left, bottom]),
        side([right, top], [right, bottom]),
    ]
    .into_iter()
    .collect()
}

/// Returns the bars of a path of single lines; `None` if one of them is oblique.
fn lines(path: &Path, half: f32, scale: f32) -> Option<Vec<Bar>> {
    let mut all = Vec::new();
    let mut segments = path.segments();
    while let Some(segment) = segments.next() {
        let (PathSegment::MoveTo(from), Some(PathSegment::LineTo(to))) = (segment, segments.next()) else {
            return None;
        };
        let (x, y) = match (from.x == to.x, from.y == to.y) {
            (_, true) => (0.0, half),
            (true, false) => (half, 0.0),
            (false, false) => return None,
        };
        all.push(bar(Point::from_xy(from.x - x, from.y - y), Point::from_xy(to.x + x, to.y + y), scale)?);
    }
    Some(all)
}

fn is_opaque([.., alpha]: [u8; 4]) -> bool {
    alpha == u8::MAX
}

/// Returns the rectangle with these corners; `None` if it does not cover whole pixels.
fn bar(from: Point, to: Point, scale: f32) -> Option<Bar> {
    let [from, to] = [from, to].map(|corner| Point::from_xy(scale * corner.x, scale * corner.y));
    Some(Bar {
        left: whole(from.x.min(to.x))? as usize,
        right: whole(from.x.max(to.x))? as usize,
        top: whole(from.y.min(to.y))?,
        bottom: whole(from.y.max(to.y))?,
    })
}

/// Returns a coordinate that is between two pixels.
fn whole(at: f32) -> Option<u32> {
    let near = at.round();
    ((at - near).abs() < 1e-3 && (0.0..16e6).contains(&near)).then_some(near as u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::super::shapes::segments;
    use super::*;
    use tiny_skia::{FillRule, Paint, PathStroker, Stroke, Transform};

    const PIXEL: [u8; 4] = [71, 51, 126, 255];
    const SCALE: f32 = 2.0;

    /// A path, and the width of its line; `None` if it is filled.
    type Case = (&'static str, Option<f32>);

    fn of((path, width): Case, pixel: [u8; 4]) -> Option<Bars> {
        let path = segments(path).unwrap().unwrap();
        match width {
            Some(width) => Bars::of_stroke(&path, width, SCALE, pixel),
            None => Bars::of_fill(&path, SCALE, pixel),
        }
    }

    /// Paints a band as the library does.
    fn paint_outline((path, width): Case, pixel: [u8; 4], top: u32, band: &mut Pixmap) {
        let place = Transform::from_scale(SCALE, SCALE);
        let path = segments(path).unwrap().unwrap();
        let precision = PathStroker::compute_resolution_scale(&place);
        let stroked = |width| path.stroke(&Stroke { width, ..Stroke::default() }, precision).unwrap();
        let outline = width.map_or_else(|| path.clone(), stroked);
        let mut paint = Paint::default();
        let [red, green, blue, alpha] = pixel;
        paint.set_color_rgba8(red, green, blue, alpha);
        let place = place.post_translate(0.0, -(top as f32));
        band.fill_path(&outline, &paint, FillRule::Winding, place, None);
    }

    #[test]
    fn rectangles_of_whole_pixels_are_as_their_outlines() {
        for case in [
            ("M2 3.5h5m1 0h2m-8 4h9", Some(3.0)),
            ("M2.5 3h5m-7 12h38.5", Some(2.0)),
            ("M9 3H2m3 1h60m-58 25h9", Some(1.0)),
            ("M3 2v7m4 9V3m1 5h4", Some(1.0)),
            ("M3 4.5h30v20h-30z", None),
            ("M3 4h30v20h-30z", Some(1.0)),
            ("M3 4h3v2h-3z", Some(4.0)),
            ("M0 0h400v300h-400z", None),
        ] {
            let bars = of(case, PIXEL).unwrap_or_else(|| panic!("{case:?}: an outline"));
            for top in [0, 20, 40] {
                let mut band = Pixmap::new(80, 20).unwrap();
                let mut expected = band.clone();
                bars.paint(&mut band, top);
                paint_outline(case, PIXEL, top, &mut expected);
                assert!(band == expected, "{case:?} at {top}");
            }
        }
    }

    #[test]
    fn what_is_not_of_whole_pixels_has_an_outline() {
        for case in [
            ("M2 3.2h5", Some(1.0)),
            ("M2.3 3h5", Some(1.0)),
            ("M2 3h5v1", Some(2.0)),
            ("M2 3h5l1 1", Some(2.0)),
            ("M2 3l5 1", Some(2.0)),
            ("M-2 3h5", Some(2.0)),
            ("M2 3h5l1 1z", None),
            ("M2 3h5v5z", None),
            ("M2 3h5v5h-5", None),
            ("M3.2 4h30v20h-30z", None),
            ("M3.2 4h30v20h-30z", Some(1.0)),
        ] {
            assert!(of(case, PIXEL).is_none(), "{case:?}");
        }
        let twice = ("M2 3.5h5m-2 0h2", Some(1.0));
        assert!(of(twice, PIXEL).is_some() && of(twice, [71, 51, 126, 128]).is_none());
    }

    #[test]
    fn what_lets_through_shades_as_the_library() {
        for case in [("M3 4h30v20h-30z", None), ("M3 4h30", Some(1.0)), ("M7 25v-20", Some(1.0))] {
            for alpha in [0, 1, 26, 128, 254] {
                for below in [[255; 4], [0, 1, 128, 255], [243, 77, 9, 255]] {
                    let pixel = [0, 77, 255, alpha];
                    let mut band = Pixmap::new(80, 20).unwrap();
                    band.data_mut().as_chunks_mut().0.fill(below);
                    let mut expected = band.clone();
                    of(case, pixel).unwrap().paint(&mut band, 20);
                    paint_outline(case, pixel, 20, &mut expected);
                    assert!(band == expected, "{case:?} with {alpha} on {below:?}");
                }
            }
        }
    }
}
