//! The shapes of an SVG of this program, each as rectangles or as an outline to fill, so that a
//! part of the picture can be painted without looking at what is not in it.

use roxmltree::{Document, Node};
use svgtypes::{Color, PointsParser, SimplePathSegment, SimplifyingPathParser};
use tiny_skia::{FillRule, Paint, Path, PathBuilder, PathStroker, Pixmap, Rect, Stroke, Transform};

use super::bars::Bars;
use super::letters::Letters;
use super::plot::{PlotError, draw_error};

/// What is painted in one colour.
pub(super) enum Shape {
    Bars(Bars),
    Outline { outline: Path, paint: Paint<'static> },
}

impl Shape {
    /// Paints what of the shape is in a band of the picture whose first row is `top`.
    pub(super) fn paint(&self, band: &mut Pixmap, top: u32) {
        let (outline, paint) = match self {
            Self::Bars(bars) => return bars.paint(band, top),
            Self::Outline { outline, paint } => (outline, paint),
        };
        let bounds = outline.bounds();
        let (top, bottom) = (top as f32, (top + band.height()) as f32);
        // The edge of a letter shades the pixel next to it.
        if bounds.bottom() + 1.0 >= top && bounds.top() - 1.0 <= bottom {
            let place = Transform::from_translate(0.0, -top);
            band.fill_path(outline, paint, FillRule::Winding, place, None);
        }
    }
}

/// The size of an SVG, in its own pixels.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub width: f32,
    pub height: f32,
}

impl Size {
    /// Returns the size that an SVG says.
    ///
    /// # Errors
    ///
    /// Returns an error if it has no size.
    pub(super) fn of(svg: &Document<'_>) -> Result<Self, PlotError> {
        let length = |name| match number(svg.root_element(), name) {
            Ok(Some(length)) if length > 0.0 => Ok(length),
            Ok(_) => Err(PlotError::Draw(format!("the SVG has no {name}"))),
            Err(error) => Err(error),
        };
        Ok(Self { width: length("width")?, height: length("height")? })
    }
}

/// Returns the shapes of an SVG of this size, in the order in which they are painted. Each of its
/// pixels is `scale` pixels in each direction.
///
/// # Errors
///
/// Returns an error if the SVG has something that no picture of this program has.
pub(super) fn shapes(svg: &Document<'_>, size: Size, scale: f32) -> Result<Vec<Shape>, PlotError> {
    let mut reader = Reader { size, scale, letters: Letters::new()?, found: Vec::new() };
    reader.add_children(svg.root_element(), true)?;
    Ok(reader.found)
}

/// The shapes that were found so far.
struct Reader {
    size: Size,
    scale: f32,
    letters: Letters,
    found: Vec<Shape>,
}

/// The attributes of text that [`Letters`] and [`colour`] read; there is one family of fonts.
const OF_TEXT: [&str; 10] = [
    "dy",
    "fill",
    "font-family",
    "font-size",
    "font-weight",
    "opacity",
    "text-anchor",
    "transform",
    "x",
    "y",
];
/// The attributes of other elements that are read.
const OF_SHAPES: [&str; 11] = [
    "d",
    "fill",
    "height",
    "opacity",
    "points",
    "shape-rendering",
    "stroke",
    "stroke-width",
    "width",
    "x",
    "y",
];

impl Reader {
    /// Adds the elements of an SVG or of a group. Edges are crisp unless `smooth` is set.
    fn add_children(&mut self, parent: Node<'_, '_>, smooth: bool) -> Result<(), PlotError> {
        for node in parent.children().filter(Node::is_element) {
            let element = node.tag_name().name();
            let known = if element == "text" { &OF_TEXT[..] } else { &OF_SHAPES };
            if let Some(other) = node.attributes().find(|other| !known.contains(&other.name())) {
                return Err(unknown(&format!("`{}` of `{element}`", other.name())));
            }
            let path = match element {
                "title" | "desc" => None,
                "g" => {
                    let crisp = node.attribute("shape-rendering") == Some("crispEdges");
                    self.add_children(node, smooth && !crisp)?;
                    None
                }
                "text" => {
                    let colour = colour(node, "fill", Some(Color::black()))?;
                    self.add_outline(self.letters.outline(node)?, colour, smooth);
                    None
                }
                "rect" => self.rectangle(node)?,
                "polyline" => points(node.attribute("points").unwrap_or_default()),
                "path" => segments(node.attribute("d").unwrap_or_default())?,
                other => return Err(unknown(&format!("a `{other}`"))),
            };
            // A path of one point has no outline.
            if let Some(path) = path {
                self.add_path(node, &path, smooth)?;
            }
        }
        Ok(())
    }

    fn rectangle(&self, node: Node<'_, '_>) -> Result<Option<Path>, PlotError> {
        let length = |name, whole| match node.attribute(name).and_then(|length| length.strip_suffix('%')) {
            Some(percent) => {
                percent.parse::<f32>().map(|percent| whole * percent / 100.0).map_err(draw_error)
            }
            None => Ok(number(node, name)?.unwrap_or_default()),
        };
        let Size { width, height } = self.size;
        let (x, y) = (length("x", width)?, length("y", height)?);
        let rect = Rect::from_xywh(x, y, length("width", width)?, length("height", height)?);
        Ok(rect.map(PathBuilder::from_rect))
    }

    /// Adds the inside of a path, and then its line.
    fn add_path(&mut self, node: Node<'_, '_>, path: &Path, smooth: bool) -> Result<(), PlotError> {
        if let Some(colour) = colour(node, "fill", Some(Color::black()))? {
            match Bars::of_fill(path, self.scale, colour) {
                Some(bars) => self.found.push(Shape::Bars(bars)),
                None => self.add_outline(Some(path.clone()), Some(colour), smooth),
            }
        }
        if let Some(colour) = colour(node, "stroke", None)? {
            let width = number(node, "stroke-width")?.unwrap_or(1.0);
            match Bars::of_stroke(path, width, self.scale, colour) {
                Some(bars) => self.found.push(Shape::Bars(bars)),
                None => {
                    let precision = PathStroker::compute_resolution_scale(&self.place());
                    let outline = path.stroke(&Stroke { width, ..Stroke::default() }, precision);
                    self.add_outline(outline, Some(colour), smooth);
                }
            }
        }
        Ok(())
    }

    /// Adds an outline if there is something to paint.
    fn add_outline(&mut self, outline: Option<Path>, colour: Option<[u8; 4]>, smooth: bool) {
        let outline = outline.and_then(|outline| outline.transform(self.place()));
        if let (Some(outline), Some([red, green, blue, alpha])) = (outline, colour) {
            let mut paint = Paint::default();
            paint.set_color_rgba8(red, green, blue, alpha);
            paint.anti_alias = smooth;
            self.found.push(Shape::Outline { outline, paint });
        }
    }

    fn place(&self) -> Transform {
        Transform::from_scale(self.scale, self.scale)
    }
}

/// Returns the path of a line through points.
fn points(points: &str) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (x, y) in PointsParser::from(points) {
        let to = if path.is_empty() { PathBuilder::move_to } else { PathBuilder::line_to };
        to(&mut path, x as f32, y as f32);
    }
    path.finish()
}

/// Returns a path of straight segments; `None` if it has none.
///
/// # Errors
///
/// Returns an error if it has another segment, or cannot be read.
pub(super) fn segments(segments: &str) -> Result<Option<Path>, PlotError> {
    let mut path = PathBuilder::new();
    for segment in SimplifyingPathParser::from(segments) {
        match segment.map_err(draw_error)? {
            SimplePathSegment::MoveTo { x, y } => path.move_to(x as f32, y as f32),
            SimplePathSegment::LineTo { x, y } => path.line_to(x as f32, y as f32),
            SimplePathSegment::ClosePath => path.close(),
            SimplePathSegment::CurveTo { .. } | SimplePathSegment::Quadratic { .. } => {
                return Err(unknown("a curve"));
            }
        }
    }
    Ok(path.finish())
}

/// Returns red, green, blue and opacity of the inside or the line of an element, which has `usual`
/// if it says nothing; `None` if it is not painted.
fn colour(node: Node<'_, '_>, name: &str, usual: Option<Color>) -> Result<Option<[u8; 4]>, PlotError> {
    let colour = match node.attribute(name) {
        Some("none") => None,
        Some(colour) => Some(colour.parse::<Color>().map_err(draw_error)?),
        None => usual,
    };
    let opacity = number(node, "opacity")?.unwrap_or(1.0).clamp(0.0, 1.0);
    let alpha = |own: u8| (f32::from(own) * opacity + 0.5) as u8;
    Ok(colour.map(|colour| [colour.red, colour.green, colour.blue, alpha(colour.alpha)]))
}

/// Returns the number that an attribute is; `None` if the element does not have it.
///
/// # Errors
///
/// Returns an error if it is not a number.
pub(super) fn number(node: Node<'_, '_>, name: &str) -> Result<Option<f32>, PlotError> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(unknown(&format!("`{name}=\"{text}\"`, which is not a number"))),
    }
}

fn unknown(what: &str) -> PlotError {
    PlotError::Draw(format!("the SVG has {what}"))
}
