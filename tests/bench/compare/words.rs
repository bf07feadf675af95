//! Numbers and paragraphs, as a page has them.

use precise::model::text::wrap;

/// Returns text in lines of at most 100 columns.
pub fn filled(text: &str) -> String {
    wrap(text, 100, 0)
}

/// Returns a number with three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
