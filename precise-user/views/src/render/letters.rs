//! The letters of an SVG as outlines, so that drawing a picture needs no layout of text.
//!
//! Labels are in one built-in font, on one line, from left to right. The layout of any other script
//! takes three crates, whose build takes a twelfth of the time of the whole program's.

use std::fmt::Write as _;

use ttf_parser::{Face, GlyphId, OutlineBuilder};
use usvg::roxmltree::{Document, Node};

use super::{fonts, plot::PlotError};

/// Returns the SVG with the outlines of its letters instead of `text` elements.
///
/// # Errors
///
/// Returns an error if it is no XML, or if a built-in font cannot be read.
pub(super) fn outlined(svg: &str) -> Result<String, PlotError> {
    let document = Document::parse(svg).map_err(|error| PlotError::Draw(error.to_string()))?;
    let face = |font: &'static [u8]| Face::parse(font, 0).map_err(|_| PlotError::Font);
    let (regular, bold) = (face(fonts::regular()?)?, face(fonts::bold()?)?);
    let (mut out, mut copied) = (String::with_capacity(4 * svg.len()), 0);
    for node in document.descendants().filter(|node| node.has_tag_name("text")) {
        let range = node.range();
        out += svg.get(copied..range.start).unwrap_or_default();
        copied = range.end;
        let face = if node.attribute("font-weight") == Some("bold") { &bold } else { &regular };
        out += "<path d=\"";
        out += &path(&node, face);
        out += "\"";
        for same in node.attributes().filter(|a| ["fill", "opacity", "transform"].contains(&a.name())) {
            // None of these has a character that XML would escape.
            out += &format!(" {}=\"{}\"", same.name(), same.value());
        }
        out += "/>";
    }
    out += svg.get(copied..).unwrap_or_default();
    Ok(out)
}

/// Returns the path of a line of text.
fn path(text: &Node<'_, '_>, face: &Face<'_>) -> String {
    let number = |name: &str| text.attribute(name).and_then(|value| value.parse::<f32>().ok()).unwrap_or(0.0);
    let size = number("font-size");
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
    let y = number("y") + size * text.attribute("dy").map_or(0.0, ems);
    let mut outline = Outline { path: String::new(), x: number("x") - before, y, scale };
    for glyph in glyphs {
        // A space has no outline.
        let _bounds = face.outline_glyph(glyph, &mut outline);
        outline.x += advance(glyph);
    }
    outline.path
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

/// Collects the outlines of glyphs, as an SVG's path.
struct Outline {
    path: String,
    /// Where the glyph begins on the base line.
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline {
    fn add<const N: usize>(&mut self, command: char, points: [(f32, f32); N]) {
        self.path.push(command);
        for (x, y) in points {
            // Fonts count upwards, pictures downwards.
            let (x, y) = (self.x + self.scale * x, self.y - self.scale * y);
            let _ = write!(self.path, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.add('M', [(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.add('L', [(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.add('Q', [(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.add('C', [(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::outlined;

    fn of(attributes: &str, label: &str) -> String {
        outlined(&format!("<svg><text {attributes} font-size=\"100\">\n{label}\n</text><g/></svg>")).unwrap()
    }

    /// Returns the extent of the path's corners and handles: left, right, top, bottom.
    fn extent(svg: &str) -> [f32; 4] {
        let path = svg.split('"').nth(1).unwrap();
        let numbers: Vec<f32> =
            path.split(|c: char| c.is_alphabetic() || c == ' ').filter_map(|n| n.parse().ok()).collect();
        let least = |of: usize| numbers.iter().skip(of).step_by(2).copied().fold(f32::MAX, f32::min);
        let most = |of: usize| numbers.iter().skip(of).step_by(2).copied().fold(f32::MIN, f32::max);
        [least(0), most(0), least(1), most(1)]
    }

    #[test]
    fn letters_are_where_their_text_was() {
        let [left, right, top, bottom] = extent(&of("x=\"1000\" y=\"500\"", "HIH"));
        // Capital letters of DejaVu Sans are 0.729 em high.
        assert!((1000.0..1012.0).contains(&left) && (right - left - 170.0).abs() < 10.0, "{left} {right}");
        assert!((bottom - 500.0).abs() < 0.1 && (top - 427.1).abs() < 0.1, "{top} {bottom}");
        let [first, last, ..] = extent(&of("x=\"1000\" y=\"500\" text-anchor=\"middle\"", "HIH"));
        assert!(((first + last) / 2.0 - 1000.0).abs() < 0.1, "{first} {last}");
        let [_, last, ..] = extent(&of("x=\"1000\" y=\"500\" text-anchor=\"end\"", "HIH"));
        assert!((988.0..1000.0).contains(&last), "{last}");
        let [.., bottom] = extent(&of("x=\"0\" y=\"500\" dy=\"0.76em\"", "H"));
        assert!((bottom - 576.0).abs() < 0.1, "{bottom}");
        let [.., bottom] = extent(&of("x=\"0\" y=\"500\" dy=\"0.5ex\"", "H"));
        assert!((bottom - 525.0).abs() < 0.1, "{bottom}");
    }

    #[test]
    fn what_the_fonts_do_not_have_is_a_box() {
        let outline = |letter: &str| {
            let svg = of("x=\"0\" y=\"0\"", letter);
            svg.split('"').nth(1).unwrap().to_owned()
        };
        let unknown = outline("\u{10fffd}");
        assert_eq!(unknown.matches('Z').count(), 2, "{unknown}");
        // DejaVu has this one, but letters from right to left would be in the wrong order.
        assert_eq!(outline("\u{5d0}"), unknown);
        // The accent and the letter are outlines of two other glyphs.
        for own in ["A", "\u{e9}", "\u{416}", "\u{3a9}", "\u{10d0}", "\u{2192}", "\u{fffd}"] {
            assert_ne!(outline(own), unknown, "{own}");
        }
    }

    #[test]
    fn what_is_no_text_stays() {
        let svg = of(
            "x=\"1\" y=\"2\" fill=\"#102030\" opacity=\"0.5\" transform=\"rotate(270, 1, 2)\"",
            "a &lt; b",
        );
        assert!(svg.starts_with("<svg><path d=\"M") && svg.ends_with("<g/></svg>"), "{svg}");
        for same in ["fill=\"#102030\"", "opacity=\"0.5\"", "transform=\"rotate(270, 1, 2)\""] {
            assert!(svg.contains(same), "{same}: {svg}");
        }
        // Each of the two letters has an inner outline.
        assert_eq!(svg.matches('Z').count(), 5, "{svg}");
        assert!(outlined("<svg>").is_err());
    }
}
