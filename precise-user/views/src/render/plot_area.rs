//! The elements of pictures: text, lines, rectangles, their sizes, and all colours except those of
//! the data.

use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{CoordMapper, Drawable, PathElement, PointCollection, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontFamily, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle,
};

use super::plot::{FAMILY, PlotError, clean, draw_error};

/// The size of small text in plotters' sizes, which are 1.24 em: 15 is a font size of 12 pixels.
pub(crate) const SMALL: u32 = 15;
pub(crate) const NORMAL: u32 = 17;
pub(crate) const LARGE: u32 = 22;
pub(crate) const MARGIN: i32 = 16;
/// The height of a line of [`SMALL`] text.
pub(crate) const LINE: i32 = 20;
/// The height of a panel's title.
pub(crate) const TITLE: i32 = 28;

pub(crate) const TEXT: RGBColor = RGBColor(0x1b, 0x1b, 0x1f);
pub(crate) const QUIET: RGBColor = RGBColor(0x4a, 0x4a, 0x52);
pub(crate) const DOUBT: RGBColor = RGBColor(0xa6, 0x1b, 0x1b);
pub(crate) const FRAME: RGBColor = RGBColor(0x9a, 0x9a, 0xa4);

/// The amount, in plotters' sizes, by which text must be lowered to be centred: the backend does
/// not centre on the height of a digit.
const DROP: f64 = 0.07;

/// A drawing area.
pub(crate) struct Area<'a, DB: DrawingBackend> {
    pub area: &'a DrawingArea<DB, Shift>,
}

impl<DB: DrawingBackend> Area<'_, DB> {
    /// Draws an element.
    pub fn draw<'e, E, B>(&self, element: &'e E) -> Result<(), PlotError>
    where
        B: CoordMapper,
        &'e E: PointCollection<'e, (i32, i32), B>,
        E: Drawable<DB, B>,
    {
        self.area.draw(element).map_err(draw_error)
    }
}

/// Text with its size, colour and alignment.
pub(crate) struct AxisLabel<'a> {
    pub text: &'a str,
    pub size: u32,
    pub bold: bool,
    pub colour: RGBColor,
    pub h: HPos,
    pub v: VPos,
}

impl<'a> AxisLabel<'a> {
    /// Makes a small, quiet label that starts or ends at a point, centred on it vertically.
    pub fn small(text: &'a str, h: HPos) -> Self {
        Self { text, size: SMALL, bold: false, colour: QUIET, h, v: VPos::Center }
    }

    /// Draws the label, rotated.
    pub fn draw<DB: DrawingBackend>(
        &self,
        area: &Area<'_, DB>,
        at: (i32, i32),
        turn: FontTransform,
    ) -> Result<(), PlotError> {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = (FontFamily::Name(FAMILY), f64::from(self.size), style).into_font();
        let style =
            TextStyle::from(font).color(&self.colour).pos(Pos::new(self.h, self.v)).transform(turn.clone());
        let drop =
            if matches!(self.v, VPos::Center) { (f64::from(self.size) * DROP).round() as i32 } else { 0 };
        let at =
            if matches!(turn, FontTransform::Rotate270) { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
        // All text is drawn here, so all of it is cleaned.
        area.draw(&Text::new(clean(self.text), at, style))
    }

    /// Draws the label.
    pub fn put<DB: DrawingBackend>(&self, area: &Area<'_, DB>, at: (i32, i32)) -> Result<(), PlotError> {
        self.draw(area, at, FontTransform::None)
    }
}

/// Draws a line, one pixel thick.
pub(crate) fn line<DB: DrawingBackend>(
    area: &Area<'_, DB>,
    from: (i32, i32),
    to: (i32, i32),
    colour: RGBAColor,
) -> Result<(), PlotError> {
    area.draw(&PathElement::new([from, to], ShapeStyle::from(colour).stroke_width(1)))
}

/// Fills a rectangle; the ends are exclusive.
pub(crate) fn fill<DB: DrawingBackend>(
    area: &Area<'_, DB>,
    (x0, x1): (i32, i32),
    (y0, y1): (i32, i32),
    colour: RGBColor,
) -> Result<(), PlotError> {
    area.draw(&Rectangle::new([(x0, y0), (x1, y1)], colour.filled()))
}
