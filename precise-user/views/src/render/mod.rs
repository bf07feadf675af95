//! Results to text, JSON, CSV and pictures. Nothing here looks at the terminal: the caller says how
//! wide it is and whether it has colours.

pub mod number;
pub mod plot;
pub mod plot_area;
pub mod plot_colour;
pub mod plot_scale;
mod png;
mod style;
pub mod table;

pub use style::{Shade, Style, Tint};

/// What the output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns.
    pub width: usize,
    /// Colours, or none.
    pub style: Style,
    /// Cells of heatmaps.
    pub shade: Shade,
}

impl Default for TextOptions {
    /// What suits a pipe: 80 columns, no colour.
    fn default() -> Self {
        Self { width: 80, style: Style::plain(), shade: Shade::Ascii }
    }
}
