//! Shapes that are rectangles of whole pixels, such as the cells of a heatmap, hundred thousands in
//! a picture, and the lines of its axes. Their pixels are set, without outlines and their edges.

use tiny_skia::{Color, Path, PathSegment, Pixmap, Point, Transform};
use usvg::{LineCap, LineJoin, Stroke};

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
    pub(super) fn of_fill(path: &Path, place: Transform, pixel: [u8; 4]) -> Option<Self> {
        let [from, to] = rectangle(path)?;
        Some(Self { pixel, all: vec![bar(from, to, place)?] })
    }

    /// Returns the line of a path; `None` if it has parts that do not cover whole pixels, or if it
    /// lets through what is below and might cover a pixel twice.
    pub(super) fn of_stroke(path: &Path, stroke: &Stroke, place: Transform, pixel: [u8; 4]) -> Option<Self> {
        let corners_are_square = stroke.linejoin() == LineJoin::Miter && stroke.miterlimit().get() >= 2.0;
        if stroke.linecap() != LineCap::Butt || !corners_are_square {
            return None;
        }
        let half = stroke.width().get() / 2.0;
        let all = match rectangle(path) {
            Some(corners) => frame(corners, half, place)?,
            None => lines(path, half, place)?,
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
fn frame([a, c]: [Point; 2], half: f32, place: Transform) -> Option<Vec<Bar>> {
    let ([left, right], [top, bottom]) = ([a.x.min(c.x), a.x.max(c.x)], [a.y.min(c.y), a.y.max(c.y)]);
    let side = |from: [f32; 2], to: [f32; 2]| {
        bar(Point::from_xy(from[0] - half, from[1] - half), Point::from_xy(to[0] + half, to[1] + half), place)
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
fn lines(path: &Path, half: f32, place: Transform) -> Option<Vec<Bar>> {
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
        all.push(bar(Point::from_xy(from.x - x, from.y - y), Point::from_xy(to.x + x, to.y + y), place)?);
    }
    Some(all)
}

fn is_opaque([.., alpha]: [u8; 4]) -> bool {
    alpha == u8::MAX
}

/// Returns the rectangle with these corners; `None` if it does not cover whole pixels.
fn bar(from: Point, to: Point, place: Transform) -> Option<Bar> {
    if place.has_skew() {
        return None;
    }
    let mut corners = [from, to];
    place.map_points(&mut corners);
    let [from, to] = corners;
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
    use super::*;
    use tiny_skia::{FillRule, Paint, PathStroker};
    use usvg::{Node, Options, Tree};

    const PIXEL: [u8; 4] = [71, 51, 126, 255];

    /// Returns the first path of an SVG of 40 by 30 pixels.
    fn path(inside: &str) -> usvg::Path {
        let svg = format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">{inside}</svg>"#);
        let tree = Tree::from_str(&svg, &Options::default()).unwrap();
        let Some(Node::Path(path)) = tree.root().children().first() else { panic!("{inside}: no path") };
        (**path).clone()
    }

    fn of(path: &usvg::Path, pixel: [u8; 4]) -> Option<Bars> {
        let place = Transform::from_scale(2.0, 2.0);
        match path.stroke() {
            Some(stroke) => Bars::of_stroke(path.data(), stroke, place, pixel),
            None => Bars::of_fill(path.data(), place, pixel),
        }
    }

    /// Paints a band as the library does.
    fn paint_outline(path: &usvg::Path, pixel: [u8; 4], top: u32, band: &mut Pixmap) {
        let place = Transform::from_scale(2.0, 2.0);
        let stroked = path.stroke().map(|stroke| {
            let precision = PathStroker::compute_resolution_scale(&place);
            path.data().stroke(&stroke.to_tiny_skia(), precision).unwrap()
        });
        let mut paint = Paint::default();
        let [red, green, blue, alpha] = pixel;
        paint.set_color_rgba8(red, green, blue, alpha);
        let outline = stroked.unwrap_or_else(|| path.data().clone());
        let place = place.post_translate(0.0, -(top as f32));
        band.fill_path(&outline, &paint, FillRule::Winding, place, None);
    }

    #[test]
    fn rectangles_of_whole_pixels_are_as_their_outlines() {
        for inside in [
            r#"<path d="M2 3.5h5m1 0h2m-8 4h9" fill="none" stroke="red" stroke-width="3"/>"#,
            r#"<path d="M2.5 3h5m-7 12h38.5" fill="none" stroke="red" stroke-width="2"/>"#,
            r#"<path d="M9 3H2m3 1h60m-58 25h9" fill="none" stroke="red" stroke-width="1"/>"#,
            r#"<path d="M3 2v7m4 9V3m1 5h4" fill="none" stroke="red"/>"#,
            r#"<rect x="3" y="4.5" width="30" height="20" fill="red"/>"#,
            r#"<rect x="3" y="4" width="30" height="20" fill="none" stroke="red"/>"#,
            r#"<rect x="3" y="4" width="3" height="2" fill="none" stroke="red" stroke-width="4"/>"#,
            r#"<rect x="0" y="0" width="400" height="300" fill="red"/>"#,
        ] {
            let path = path(inside);
            let bars = of(&path, PIXEL).unwrap_or_else(|| panic!("{inside}: an outline"));
            for top in [0, 20, 40] {
                let mut band = Pixmap::new(80, 20).unwrap();
                let mut expected = band.clone();
                bars.paint(&mut band, top);
                paint_outline(&path, PIXEL, top, &mut expected);
                assert!(band == expected, "{inside} at {top}");
            }
        }
    }

    #[test]
    fn what_is_not_of_whole_pixels_has_an_outline() {
        for inside in [
            r#"<path d="M2 3.2h5" fill="none" stroke="red"/>"#,
            r#"<path d="M2.3 3h5" fill="none" stroke="red"/>"#,
            r#"<path d="M2 3h5v1" fill="none" stroke="red" stroke-width="2"/>"#,
            r#"<path d="M2 3h5l1 1" fill="none" stroke="red" stroke-width="2"/>"#,
            r#"<path d="M2 3h5" fill="none" stroke="red" stroke-width="2" stroke-linecap="round"/>"#,
            r#"<path d="M-2 3h5" fill="none" stroke="red" stroke-width="2"/>"#,
            r#"<path d="M2 3h5l1 1z" fill="red"/>"#,
            r#"<path d="M2 3h5v5z" fill="red"/>"#,
            r#"<rect x="3.2" y="4" width="30" height="20" fill="red"/>"#,
            r#"<rect x="3" y="4" width="30" height="20" rx="3" fill="red"/>"#,
        ] {
            assert!(of(&path(inside), PIXEL).is_none(), "{inside}");
        }
        let twice = path(r#"<path d="M2 3.5h5m-2 0h2" fill="none" stroke="red"/>"#);
        assert!(of(&twice, PIXEL).is_some() && of(&twice, [71, 51, 126, 128]).is_none());
    }

    #[test]
    fn what_lets_through_shades_as_the_library() {
        for inside in [
            r#"<rect x="3" y="4" width="30" height="20" fill="red"/>"#,
            r#"<path d="M3 4h30" fill="none" stroke="red"/>"#,
            r#"<path d="M7 25v-20" fill="none" stroke="red"/>"#,
        ] {
            let path = path(inside);
            for alpha in [0, 1, 26, 128, 254] {
                for below in [[255; 4], [0, 1, 128, 255], [243, 77, 9, 255]] {
                    let pixel = [0, 77, 255, alpha];
                    let mut band = Pixmap::new(80, 20).unwrap();
                    band.data_mut().as_chunks_mut().0.fill(below);
                    let mut expected = band.clone();
                    of(&path, pixel).unwrap().paint(&mut band, 20);
                    paint_outline(&path, pixel, 20, &mut expected);
                    assert!(band == expected, "{inside} with {alpha} on {below:?}");
                }
            }
        }
    }
}
