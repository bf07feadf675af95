//! Names as programmers write them, within bounds.
//!
//! A mangled name of 230 bytes can stand for one of a gigabyte, because it may refer to its own
//! parts. So the output is cut while it is written.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::protocol::MAX_TEXT;

/// What follows a text that was cut.
const CUT: &str = "…";
/// How mangled names of C++ begin (Itanium C++ ABI, section 5.1).
const CPP: [&str; 2] = ["_Z", "_GLOBAL_"];

/// Returns the demangled name, or the name itself if it is not mangled. It has at most [`MAX_TEXT`]
/// bytes.
pub(super) fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_TEXT {
        return bounded(name).into();
    }
    let mut text = Bounded::default();
    if let Ok(symbol) = rustc_demangle::try_demangle(name) {
        let written = write!(text, "{symbol:#}");
        return text.finish(written).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    // The library takes any name for a type: `f` would be `float`.
    if CPP.iter().any(|prefix| name.starts_with(prefix))
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
    {
        let written = symbol.structured_demangle(&mut text, &cpp_demangle::DemangleOptions::new());
        return text.finish(written).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    Cow::Borrowed(name)
}

/// Returns the text, cut to [`MAX_TEXT`] bytes.
pub(super) fn bounded(text: &str) -> String {
    let mut all = Bounded::default();
    let written = all.write_str(text);
    all.finish(written).unwrap_or_default()
}

/// A text that takes no more than [`MAX_TEXT`] bytes.
#[derive(Default)]
struct Bounded {
    text: String,
    cut: bool,
}

impl Bounded {
    /// Returns the text; `None` if writing failed for another reason than its length.
    fn finish(mut self, written: fmt::Result) -> Option<String> {
        match (written, self.cut) {
            (_, true) => {
                self.text.push_str(CUT);
                Some(self.text)
            }
            (Ok(()), false) => Some(self.text),
            (Err(fmt::Error), false) => None,
        }
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_TEXT - CUT.len() - self.text.len().min(MAX_TEXT - CUT.len());
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        self.cut = true;
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.text.push_str(text.get(..end).unwrap_or_default());
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_and_cpp() {
        assert_eq!(demangle("_ZN3std2io5Write9write_all17h0123456789abcdefE"), "std::io::Write::write_all");
        assert_eq!(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
        assert_eq!(demangle("_ZN5space3fooEibc"), "space::foo(int, bool, char)");
        for plain in ["main", "f", "i", "St", "_start"] {
            assert_eq!(demangle(plain), plain);
        }
    }

    #[test]
    fn a_short_symbol_for_a_long_name_is_cut() {
        // Each `S_…` doubles what came before.
        let doubled = |times: usize| {
            let mut name = "_Z1fI1AS_E".to_owned();
            for depth in 0..times {
                let last = if depth == 0 { "S0_".to_owned() } else { format!("S{depth}_") };
                name = format!("_Z1fI{last}{last}E{}", name.trim_start_matches("_Z1f"));
            }
            name
        };
        for name in (0..40).map(doubled).chain(["_ZN".repeat(4000), "a".repeat(10_000)]) {
            assert!(demangle(&name).len() <= MAX_TEXT, "{name}");
        }
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(demangle(&long).ends_with(CUT) && demangle(&long).len() <= MAX_TEXT);
        assert_eq!(bounded("é").as_str(), "é");
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_bounded(name in "(_Z|_R|_ZN)?[a-zA-Z0-9_]{0,300}") {
            assert!(demangle(&name).len() <= MAX_TEXT);
        }
    }
}
