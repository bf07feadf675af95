//! The letters of an SVG as outlines, so that drawing a picture needs no layout of text.
//!
//! Labels are in one built-in font, on one line, from left to right. The layout of any other script
//! takes three crates, whose build takes a twelfth of the time of the whole program's.

use roxmltree::Node;
use svgtypes::{TransformListParser, TransformListToken};
use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::plot::{PlotError, draw_error};
use super::{fonts, shapes};

/// The built-in fonts.
pub(super) struct Letters {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Letters {
    /// Reads the fonts.
    ///
    /// # Errors
    ///
    /// Returns an error if a built-in font cannot be read.
    pub(super) fn new() -> Result<Self, PlotError> {
        let face = |font: &'static [u8]| Face::parse(font, 0).map_err(|_| PlotError::Font);
        Ok(Self { regular: face(fonts::regular()?)?, bold: face(fonts::bold()?)? })
    }

    /// Returns the outline of a line of text, a `text` element; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// Returns an error if a number or the rotation of the element cannot be read.
    pub(super) fn outline(&self, text: Node<'_, '_>) -> Result<Option<Path>, PlotError> {
        let face = if text.attribute("font-weight") == Some("bold") { &self.bold } else { &self.regular };
        let number = |name| shapes::number(text, name).map(Option::unwrap_or_default);
        let size = number("font-size")?;
        let scale = size / f32::from(face.units_per_em());
        let label = text.text().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        // The first glyph of a font stands for a character that it does not have.
        let glyphs: Vec<GlyphId> =
            label.chars().map(|letter| face.glyph_index(letter).unwrap_or(GlyphId(0))).collect();
        let advance = |glyph: GlyphId| scale * f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
        let width: f32 = glyphs.iter().map(|glyph| advance(*glyph)).sum();
        let before = match text.attribute("text-anchor") {
            Some("middle") => width / 2.0,
            Some("end") => width,
            _ => 0.0,
        };
        let y = number("y")? + size * text.attribute("dy").map_or(0.0, ems);
        let mut outline = Outline { path: PathBuilder::new(), x: number("x")? - before, y, scale };
        for glyph in glyphs {
            // A space has no outline.
            let _bounds = face.outline_glyph(glyph, &mut outline);
            outline.x += advance(glyph);
        }
        let turn = turn(text.attribute("transform").unwrap_or_default())?;
        Ok(outline.path.finish().and_then(|outline| outline.transform(turn)))
    }
}

/// Returns the rotation of a text.
fn turn(transform: &str) -> Result<Transform, PlotError> {
    let mut all = Transform::identity();
    for token in TransformListParser::from(transform) {
        all = all.pre_concat(match token.map_err(draw_error)? {
            TransformListToken::Rotate { angle } => Transform::from_rotate(angle as f32),
            TransformListToken::Translate { tx, ty } => Transform::from_translate(tx as f32, ty as f32),
            other => return Err(PlotError::Draw(format!("the SVG has a text with {other:?}"))),
        });
    }
    Ok(all)
}

/// Returns a length as a multiple of the font's size.
fn ems(length: &str) -> f32 {
    let number = |text: &str| text.parse().unwrap_or(0.0);
    match (length.strip_suffix("em"), length.strip_suffix("ex")) {
        (Some(ems), _) => number(ems),
        // CSS lets half a size stand for the height of an x.
        (_, Some(heights)) => number(heights) / 2.0,
        _ => 0.0,
    }
}

/// Collects the outlines of glyphs.
struct Outline {
    path: PathBuilder,
    /// Where the glyph begins on the base line.
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline {
    /// Returns a point of the glyph in the picture. Fonts count upwards, pictures downwards.
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, self.y - self.scale * y)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::*;
    use roxmltree::Document;
    use tiny_skia::PathSegment;

    fn of(attributes: &str, label: &str) -> Option<Path> {
        let svg = format!("<text {attributes} font-size=\"100\">\n{label}\n</text>");
        Letters::new().unwrap().outline(Document::parse(&svg).unwrap().root_element()).unwrap()
    }

    /// Returns the extent of a label: left, right, top, bottom.
    fn extent(attributes: &str, label: &str) -> [f32; 4] {
        let bounds = of(attributes, label).unwrap().bounds();
        [bounds.left(), bounds.right(), bounds.top(), bounds.bottom()]
    }

    fn closed(path: &Path) -> usize {
        path.segments().filter(|segment| matches!(segment, PathSegment::Close)).count()
    }

    #[test]
    fn letters_are_where_their_text_was() {
        let [left, right, top, bottom] = extent("x=\"1000\" y=\"500\"", "HIH");
        // Capital letters of DejaVu Sans are 0.729 em high.
        assert!((1000.0..1012.0).contains(&left) && (right - left - 170.0).abs() < 10.0, "{left} {right}");
        assert!((bottom - 500.0).abs() < 0.1 && (top - 427.1).abs() < 0.1, "{top} {bottom}");
        let [first, last, ..] = extent("x=\"1000\" y=\"500\" text-anchor=\"middle\"", "HIH");
        assert!(((first + last) / 2.0 - 1000.0).abs() < 0.1, "{first} {last}");
        let [_, last, ..] = extent("x=\"1000\" y=\"500\" text-anchor=\"end\"", "HIH");
        assert!((988.0..1000.0).contains(&last), "{last}");
        let [.., bottom] = extent("x=\"0\" y=\"500\" dy=\"0.76em\"", "H");
        assert!((bottom - 576.0).abs() < 0.1, "{bottom}");
        let [.., bottom] = extent("x=\"0\" y=\"500\" dy=\"0.5ex\"", "H");
        assert!((bottom - 525.0).abs() < 0.1, "{bottom}");
        // Upwards, on the left of its place.
        let [_, right, top, bottom] =
            extent("x=\"1000\" y=\"500\" transform=\"rotate(270, 1000, 500)\"", "HIH");
        assert!((right - 1000.0).abs() < 0.1 && (488.0..500.0).contains(&bottom), "{right} {bottom}");
        assert!((bottom - top - 170.0).abs() < 10.0, "{top} {bottom}");
    }

    #[test]
    fn what_the_fonts_do_not_have_is_a_box() {
        let outline = |letter: &str| of("x=\"0\" y=\"0\"", letter).unwrap();
        let unknown = outline("\u{10fffd}");
        assert_eq!(closed(&unknown), 2, "{unknown:?}");
        // DejaVu has this one, but letters from right to left would be in the wrong order.
        assert_eq!(outline("\u{5d0}"), unknown);
        // The accent and the letter are outlines of two other glyphs.
        for own in ["A", "\u{e9}", "\u{416}", "\u{3a9}", "\u{10d0}", "\u{2192}", "\u{fffd}"] {
            assert_ne!(outline(own), unknown, "{own}");
        }
    }

    #[test]
    fn a_label_is_read_as_xml() {
        // Each of the two letters has an inner outline, and the blank has none.
        assert_eq!(closed(&of("", "a &lt;  b").unwrap()), 5);
        assert!(of("", " ").is_none());
    }
}
