//! Rendering of results as text, JSON, CSV and pictures. Nothing here looks at the terminal: the
//! caller passes its width and its colours.

pub mod number;
pub mod plot;
pub mod plot_area;
pub mod plot_colour;
pub mod plot_scale;
mod png;
mod style;
pub mod table;

pub use style::{Shade, Style, Tint};

/// The properties of the text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The width in columns.
    pub width: usize,
    /// Whether to use colours.
    pub style: Style,
    /// The rendering of heatmap cells.
    pub shade: Shade,
}

impl Default for TextOptions {
    /// Returns the options for a pipe: 80 columns, no colour.
    fn default() -> Self {
        Self { width: 80, style: Style::plain(), shade: Shade::Ascii }
    }
}
