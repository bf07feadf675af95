//! Shapes that are rectangles of whole pixels, such as the cells of a heatmap: hundred thousands in
//! a picture. Their pixels are set, without outlines and their edges.

use tiny_skia::{Path, PathSegment, Pixmap, Point, Transform};
use usvg::{LineCap, Stroke};

/// Rectangles of one opaque colour.
pub(super) struct Bars {
    /// Red, green, blue, and 255.
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
    /// Returns the inside of a path; `None` if it is not an opaque rectangle of whole pixels.
    pub(super) fn of_fill(path: &Path, place: Transform, pixel: [u8; 4]) -> Option<Self> {
        use PathSegment::{Close, LineTo, MoveTo};
        if !is_opaque(pixel) {
            return None;
        }
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
        let is_rectangle = a.y == b.y && b.x == c.x && c.y == d.y && d.x == a.x;
        let all = vec![is_rectangle.then(|| bar(a, c, place))??];
        Some(Self { pixel, all })
    }

    /// Returns the line of a path; `None` if it is not opaque, or has parts that are not horizontal
    /// or do not cover whole pixels.
    pub(super) fn of_stroke(path: &Path, stroke: &Stroke, place: Transform, pixel: [u8; 4]) -> Option<Self> {
        if !is_opaque(pixel) || stroke.linecap() != LineCap::Butt {
            return None;
        }
        let half = stroke.width().get() / 2.0;
        let mut all = Vec::new();
        let mut segments = path.segments();
        while let Some(segment) = segments.next() {
            let (PathSegment::MoveTo(from), Some(PathSegment::LineTo(to))) = (segment, segments.next())
            else {
                return None;
            };
            if from.y != to.y {
                return None;
            }
            all.push(bar(Point::from_xy(from.x, from.y - half), Point::from_xy(to.x, to.y + half), place)?);
        }
        Some(Self { pixel, all })
    }

    /// Paints what of the rectangles is in a band of the picture whose first row is `top`.
    pub(super) fn paint(&self, band: &mut Pixmap, top: u32) {
        let (width, rows) = (band.width() as usize, band.height());
        let pixels = band.data_mut().as_chunks_mut::<4>().0;
        for bar in &self.all {
            let (left, right) = (bar.left.min(width), bar.right.min(width));
            let of_band = bar.top.saturating_sub(top)..bar.bottom.saturating_sub(top).min(rows);
            for row in of_band {
                let start = row as usize * width;
                pixels[start + left..start + right].fill(self.pixel);
            }
        }
    }
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

    /// Returns the pixels of a band of 20 rows, as the library paints them.
    fn painted_by_outline(path: &usvg::Path, top: u32) -> Pixmap {
        let place = Transform::from_scale(2.0, 2.0);
        let stroked = path.stroke().map(|stroke| {
            let precision = PathStroker::compute_resolution_scale(&place);
            path.data().stroke(&stroke.to_tiny_skia(), precision).unwrap()
        });
        let mut paint = Paint::default();
        let [red, green, blue, alpha] = PIXEL;
        paint.set_color_rgba8(red, green, blue, alpha);
        let mut band = Pixmap::new(80, 20).unwrap();
        let outline = stroked.unwrap_or_else(|| path.data().clone());
        let place = place.post_translate(0.0, -(top as f32));
        band.fill_path(&outline, &paint, FillRule::Winding, place, None);
        band
    }

    #[test]
    fn rectangles_of_whole_pixels_are_as_their_outlines() {
        for inside in [
            r#"<path d="M2 3.5h5m1 0h2m-8 4h9" fill="none" stroke="red" stroke-width="3"/>"#,
            r#"<path d="M2.5 3h5m-7 12h38.5" fill="none" stroke="red" stroke-width="2"/>"#,
            r#"<path d="M9 3H2m3 1h60m-58 25h9" fill="none" stroke="red" stroke-width="1"/>"#,
            r#"<rect x="3" y="4.5" width="30" height="20" fill="red"/>"#,
            r#"<rect x="0" y="0" width="400" height="300" fill="red"/>"#,
        ] {
            let path = path(inside);
            let bars = of(&path, PIXEL).unwrap_or_else(|| panic!("{inside}: an outline"));
            for top in [0, 20, 40] {
                let mut band = Pixmap::new(80, 20).unwrap();
                bars.paint(&mut band, top);
                assert!(band == painted_by_outline(&path, top), "{inside} at {top}");
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
        let whole = path(r#"<rect x="3" y="4" width="30" height="20" fill="red"/>"#);
        assert!(of(&whole, [71, 51, 126, 128]).is_none());
    }
}
