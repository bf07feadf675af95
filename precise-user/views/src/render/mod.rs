//! Rendering of results as text, JSON, CSV and pictures. Nothing here looks at the terminal: the
//! caller passes its width and its colours.

mod bars;
mod fonts;
mod letters;
pub mod number;
pub mod plot;
pub mod plot_area;
pub mod plot_colour;
pub mod plot_scale;
pub(crate) mod raster;
mod shapes;
mod style;
pub mod table;

pub use style::{Shade, Style, Tint};

/// The properties of the text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The width in columns, at which sentences are wrapped.
    pub width: usize,
    /// Whether names are whole, and lines of tables as long as that takes. In a pipe or a file,
    /// another program reads the names.
    pub whole: bool,
    /// Whether to use colours.
    pub style: Style,
    /// The rendering of heatmap cells.
    pub shade: Shade,
}

impl Default for TextOptions {
    /// Returns the options for a pipe: 80 columns, no colour.
    fn default() -> Self {
        Self { width: 80, whole: false, style: Style::plain(), shade: Shade::Ascii }
    }
}

impl TextOptions {
    /// Returns the width at which the names of a table are cut, in columns.
    pub fn table_width(&self) -> usize {
        if self.whole { usize::MAX } else { self.width }
    }
}
