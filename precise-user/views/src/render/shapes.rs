//! The shapes of an SVG, each as rectangles or as an outline to fill, so that a part of the picture
//! can be painted without looking at what is not in it.

use tiny_skia::{FillRule, Paint, Path, PathStroker, Pixmap, Transform};
use usvg::{Group, Node, Opacity, Tree};

use super::bars::Bars;
use super::plot::PlotError;

/// What is painted in one colour.
pub(super) enum Shape {
    Bars(Bars),
    /// An outline, and how to fill it.
    Outline {
        outline: Path,
        rule: FillRule,
        paint: Paint<'static>,
    },
}

impl Shape {
    /// Paints what of the shape is in a band of the picture whose first row is `top`.
    pub(super) fn paint(&self, band: &mut Pixmap, top: u32) {
        let (outline, rule, paint) = match self {
            Self::Bars(bars) => return bars.paint(band, top),
            Self::Outline { outline, rule, paint } => (outline, *rule, paint),
        };
        let bounds = outline.bounds();
        let (top, bottom) = (top as f32, (top + band.height()) as f32);
        // The edge of a letter shades the pixel next to it.
        if bounds.bottom() + 1.0 >= top && bounds.top() - 1.0 <= bottom {
            let place = Transform::from_translate(0.0, -top);
            band.fill_path(outline, paint, rule, place, None);
        }
    }
}

/// Returns the shapes of an SVG, in the order in which they are painted. Each pixel of the SVG is
/// `scale` pixels in each direction.
///
/// # Errors
///
/// Returns an error if the SVG has something else than shapes of one colour.
pub(super) fn shapes(tree: &Tree, scale: f32) -> Result<Vec<Shape>, PlotError> {
    let mut found = Vec::new();
    add_group(tree.root(), 1.0, scale, &mut found)?;
    Ok(found)
}

/// Adds the shapes of a group, which has `opacity` beside its own. In a picture of this program,
/// only single shapes have an opacity, so each shape of a group can have the group's.
fn add_group(group: &Group, opacity: f32, scale: f32, found: &mut Vec<Shape>) -> Result<(), PlotError> {
    let opacity = opacity * group.opacity().get();
    if group.clip_path().is_some() || group.mask().is_some() || !group.filters().is_empty() {
        return Err(unknown("a group that is cut or changed"));
    }
    for node in group.children() {
        match node {
            Node::Group(group) => add_group(group, opacity, scale, found)?,
            Node::Path(path) if path.is_visible() => add_path(path, opacity, scale, found)?,
            Node::Path(_) => {}
            Node::Image(_) => return Err(unknown("an image")),
            Node::Text(_) => return Err(unknown("text without outlines")),
        }
    }
    Ok(())
}

/// Adds the inside of a path, and then its line.
fn add_path(path: &usvg::Path, opacity: f32, scale: f32, found: &mut Vec<Shape>) -> Result<(), PlotError> {
    let place = path.abs_transform().post_scale(scale, scale);
    if let Some(fill) = path.fill() {
        let colour = colour(fill.paint(), fill.opacity(), opacity)?;
        let rule = match fill.rule() {
            usvg::FillRule::NonZero => FillRule::Winding,
            usvg::FillRule::EvenOdd => FillRule::EvenOdd,
        };
        found.extend(match Bars::of_fill(path.data(), place, colour) {
            Some(bars) => Some(Shape::Bars(bars)),
            None => filled(path.data().clone(), place, rule, colour, path),
        });
    }
    if let Some(stroke) = path.stroke() {
        if stroke.dasharray().is_some() {
            return Err(unknown("a dashed line"));
        }
        let colour = colour(stroke.paint(), stroke.opacity(), opacity)?;
        found.extend(match Bars::of_stroke(path.data(), stroke, place, colour) {
            Some(bars) => Some(Shape::Bars(bars)),
            None => {
                let precision = PathStroker::compute_resolution_scale(&place);
                let outline = path.data().stroke(&stroke.to_tiny_skia(), precision);
                outline.and_then(|outline| filled(outline, place, FillRule::Winding, colour, path))
            }
        });
    }
    Ok(())
}

/// Returns red, green, blue and opacity of what is painted, which has `own` opacity within a group
/// of this `opacity`.
fn colour(paint: &usvg::Paint, own: Opacity, opacity: f32) -> Result<[u8; 4], PlotError> {
    let usvg::Paint::Color(colour) = paint else { return Err(unknown("a gradient")) };
    let alpha = Opacity::new_clamped(own.get() * opacity).to_u8();
    Ok([colour.red, colour.green, colour.blue, alpha])
}

/// Returns an outline of a path, which is filled; `None` if there is nothing to paint.
fn filled(
    outline: Path,
    place: Transform,
    rule: FillRule,
    [red, green, blue, alpha]: [u8; 4],
    path: &usvg::Path,
) -> Option<Shape> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, alpha);
    paint.anti_alias = path.rendering_mode().use_shape_antialiasing();
    Some(Shape::Outline { outline: outline.transform(place)?, rule, paint })
}

fn unknown(what: &str) -> PlotError {
    PlotError::Draw(format!("the SVG has {what}"))
}
