//! Results to text, JSON, CSV and pictures. Nothing here looks at the terminal: the caller says how wide it is and
//! whether it has colours.

mod csv;
pub mod heatmap_json;
mod heatmap_layout;
pub mod heatmap_plot;
mod heatmap_svg;
#[cfg(test)]
mod heatmap_tests;
pub mod heatmap_text;
mod json;
pub mod number;
pub mod plot;
pub mod plot_colour;
pub mod plot_scale;
#[cfg(test)]
mod render_tests;
mod report_text;
mod style;
pub mod table;
pub mod text;
mod trust_text;

pub use csv::report_csv;
pub use json::{report_json, summary_json, trust_json};
pub use report_text::{report_text, summary_text};
pub use style::{Style, Tint};
pub use trust_text::trust_text;

/// What the output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns.
    pub width: usize,
    /// Colours, or none.
    pub style: Style,
}

impl Default for TextOptions {
    /// What suits a pipe: 80 columns, no colour.
    fn default() -> Self {
        Self { width: 80, style: Style::plain() }
    }
}
