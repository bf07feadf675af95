//! Colours for terminals.

/// Whether output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Style {
    colour: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    /// A heading.
    Heading,
    /// Less important text.
    Dim,
    /// A good result.
    Good,
    /// Something to look at.
    Warning,
    /// Something that must not be trusted.
    Bad,
}

/// The rendering of heatmap cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shade {
    /// Characters of an ASCII ramp.
    #[default]
    Ascii,
    /// Block characters, for terminals with UTF-8.
    Blocks,
    /// 24-bit colour.
    TrueColour,
    /// The 256 colours of xterm.
    Colour256,
}

impl Style {
    /// Returns the style without colours.
    pub const fn plain() -> Self {
        Self { colour: false }
    }

    /// Returns a style with colours if the output is a terminal, unless `NO_COLOR` is set and not
    /// empty (<https://no-color.org>).
    pub fn for_terminal(is_terminal: bool, no_color: Option<&std::ffi::OsStr>) -> Self {
        Self { colour: is_terminal && no_color.is_none_or(|value| value.is_empty()) }
    }

    /// Returns whether text has colours.
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// Returns `text` in a colour.
    pub fn paint(self, tint: Tint, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tint {
            Tint::Heading => "1",
            Tint::Dim => "2",
            Tint::Good => "32",
            Tint::Warning => "33",
            Tint::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn only_a_terminal_that_wants_it() {
        assert_eq!(Style::for_terminal(true, None).paint(Tint::Bad, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(Style::for_terminal(true, Some(OsStr::new(""))), Style { colour: true });
        for style in [Style::for_terminal(false, None), Style::for_terminal(true, Some(OsStr::new("1")))] {
            assert_eq!(style.paint(Tint::Bad, "x"), "x");
        }
    }
}
