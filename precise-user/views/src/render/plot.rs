//! Helpers for all pictures: the font, fitting text.

use std::sync::OnceLock;

use plotters::style::{FontFamily, FontStyle, IntoFont, register_font};
use precise_model::text::lines;
use precise_model::text::{is_unsafe, sanitize};

use super::fonts;

/// The font family of all text. The first name is that of the built-in font; an SVG falls back
/// along the list.
pub const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// The reason why there is no picture, as a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The built-in font could not be used.
    #[error("The built-in font could not be read, so text cannot be drawn.")]
    Font,
    /// The drawing backend failed.
    #[error("The picture could not be drawn: {0}.")]
    Draw(String),
    /// The size is out of range.
    #[error(
        "A picture of {width} by {height} pixels is too large: choose fewer panels, or a width from \
         {min} to {max}."
    )]
    Size {
        /// The requested width, in pixels.
        width: u32,
        /// The requested height, in pixels.
        height: u32,
        /// The smallest allowed width, in pixels.
        min: u32,
        /// The largest allowed width, in pixels.
        max: u32,
    },
}

/// Converts an error of a drawing backend.
pub(crate) fn draw_error(error: impl std::fmt::Display) -> PlotError {
    PlotError::Draw(error.to_string())
}

/// Registers the built-in font, once. No fonts of the system are used, so a picture looks the same
/// everywhere.
pub fn use_fonts() -> Result<(), PlotError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let (regular, bold) = (fonts::regular()?, fonts::bold()?);
    let registered = REGISTERED.get_or_init(|| {
        register_font(FAMILY, FontStyle::Normal, regular).is_ok()
            && register_font(FAMILY, FontStyle::Bold, bold).is_ok()
    });
    if *registered { Ok(()) } else { Err(PlotError::Font) }
}

/// Returns the width of `text` in pixels at `size` (plotters' size: 1.24 em); an estimate if the
/// font is not available.
pub fn text_width(text: &str, size: u32, bold: bool) -> u32 {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = (FontFamily::Name(FAMILY), f64::from(size), style).into_font();
    match font.box_size(text) {
        Ok((width, _)) => width + 1,
        Err(_) => (text.chars().count() as f64 * f64::from(size) * 0.6) as u32,
    }
}

/// Makes text of a capture safe to draw: control characters, and characters that change the
/// direction or the layout, become U+FFFD.
pub fn clean(text: &str) -> String {
    sanitize(text)
}

/// Shortens `text` by a `…` in the middle until `fits` returns true: the start and the end of a
/// path or a function tell the most.
pub fn shorten(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let all: Vec<char> = text.chars().collect();
    let with = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        all[..head].iter().chain(&['…']).chain(&all[all.len() - tail..]).collect()
    };
    let (mut low, mut high) = (0, all.len().saturating_sub(1));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(&with(middle)) { low = middle } else { high = middle - 1 }
    }
    with(low)
}

/// Breaks `text` at blanks into at most `most` lines of `width` pixels; the rest is cut with `…`.
pub fn wrap(text: &str, width: u32, size: u32, bold: bool, most: usize) -> Vec<String> {
    let fits = |line: &str| text_width(line, size, bold) <= width;
    let mut lines = lines(text, |_, line| fits(line));
    if lines.len() > most {
        // The first word of the next line does not fit any more, but its start may.
        let mut kept: Vec<char> = lines[most.saturating_sub(1)..=most].join(" ").chars().collect();
        while !kept.is_empty() && !fits(&format!("{}…", kept.iter().collect::<String>())) {
            kept.truncate(kept.len() - 1 - kept.len() / 64);
        }
        lines.truncate(most.saturating_sub(1));
        lines.push(format!("{}…", kept.iter().collect::<String>().trim_end()));
    }
    lines.iter().map(|line| shorten(line, fits)).collect()
}

/// Escapes `text` for XML.
pub fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if is_unsafe(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_begin_and_end() {
        let fits = |most: usize| move |t: &str| t.chars().count() <= most;
        assert_eq!(shorten("short", fits(10)), "short");
        assert_eq!(shorten("std::collections::HashMap::insert", fits(11)), "std::…nsert");
        assert_eq!(shorten("abc", fits(0)), "…");
        assert_eq!(shorten("äöüäöüäöü", fits(5)), "äö…öü");
    }

    #[test]
    fn text_is_measured_with_the_font_that_draws_it() {
        use_fonts().unwrap();
        assert!(text_width("MMMM", 16, false) > 2 * text_width("iiii", 16, false));
        let lines = wrap(&"word ".repeat(100), 200, 16, false, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].ends_with('…'));
        assert!(lines.iter().all(|l| text_width(l, 16, false) <= 200));
        assert!(wrap("", 200, 16, true, 3).is_empty());
        assert_eq!(wrap(&"x".repeat(500), 200, 16, false, 1).len(), 1);
    }

    #[test]
    fn hostile_text_becomes_harmless() {
        assert_eq!(clean("a\x1b[31m\u{202e}b\n\0"), "a\u{fffd}[31m\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(
            xml("<a href='&\"'>\u{1}\u{ffff}"),
            "&lt;a href=&#39;&amp;&quot;&#39;&gt;\u{fffd}\u{fffd}"
        );
        assert_eq!(clean("Ünïcode 漢字 ok"), "Ünïcode 漢字 ok");
    }
}
