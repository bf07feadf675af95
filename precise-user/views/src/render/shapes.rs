//! The shapes of an SVG, each as an outline to fill, so that a part of the picture can be painted
//! without looking at what is not in it.

use tiny_skia::{FillRule, Paint, Path, PathStroker, Pixmap, Transform};
use usvg::{Group, Node, Opacity, Tree};

use super::plot::PlotError;

/// An outline, and how to fill it.
pub(super) struct Shape {
    outline: Path,
    rule: FillRule,
    paint: Paint<'static>,
}

impl Shape {
    /// Paints what of the shape is in a band of the picture whose first row is `top`.
    pub(super) fn paint(&self, band: &mut Pixmap, top: u32) {
        let bounds = self.outline.bounds();
        let (top, bottom) = (top as f32, (top + band.height()) as f32);
        // The edge of a letter shades the pixel next to it.
        if bounds.bottom() + 1.0 >= top && bounds.top() - 1.0 <= bottom {
            let place = Transform::from_translate(0.0, -top);
            band.fill_path(&self.outline, &self.paint, self.rule, place, None);
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
    let mut add = |outline: Option<Path>, rule, colour: &usvg::Paint, own: Opacity| {
        let usvg::Paint::Color(colour) = colour else { return Err(unknown("a gradient")) };
        let mut paint = Paint::default();
        let alpha = Opacity::new_clamped(own.get() * opacity).to_u8();
        paint.set_color_rgba8(colour.red, colour.green, colour.blue, alpha);
        paint.anti_alias = path.rendering_mode().use_shape_antialiasing();
        let outline = outline.and_then(|outline| outline.transform(place));
        found.extend(outline.map(|outline| Shape { outline, rule, paint }));
        Ok(())
    };
    if let Some(fill) = path.fill() {
        let rule = match fill.rule() {
            usvg::FillRule::NonZero => FillRule::Winding,
            usvg::FillRule::EvenOdd => FillRule::EvenOdd,
        };
        add(Some(path.data().clone()), rule, fill.paint(), fill.opacity())?;
    }
    if let Some(stroke) = path.stroke() {
        if stroke.dasharray().is_some() {
            return Err(unknown("a dashed line"));
        }
        let precision = PathStroker::compute_resolution_scale(&place);
        let outline = path.data().stroke(&stroke.to_tiny_skia(), precision);
        add(outline, FillRule::Winding, stroke.paint(), stroke.opacity())?;
    }
    Ok(())
}

fn unknown(what: &str) -> PlotError {
    PlotError::Draw(format!("the SVG has {what}"))
}
