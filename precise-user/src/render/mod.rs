//! Results to text, JSON and CSV. Nothing here looks at the terminal: the caller says how wide it is and
//! whether it has colours.

mod csv;
mod json;
pub mod number;
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
