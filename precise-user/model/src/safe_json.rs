//! JSON that is safe to print to a terminal: characters that a terminal would act on are escaped,
//! and nothing is lost.
//!
//! JSON itself escapes only characters below U+0020. A name may contain others that start a
//! terminal's control sequence (U+009B) or that hide text (bidirectional overrides).

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::text::is_unsafe;

/// Returns `value` as JSON on one line.
///
/// # Errors
///
/// Returns serde_json's error if the value cannot be written as JSON.
pub fn compact(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    write(value, CompactFormatter)
}

/// Returns `value` as indented JSON.
///
/// # Errors
///
/// Returns an error like [`compact`].
pub fn pretty(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    write(value, PrettyFormatter::new())
}

fn write<F: Formatter>(value: &(impl Serialize + ?Sized), inner: F) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Escaping(inner)))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A formatter that also escapes the unsafe characters that the inner one leaves as they are.
struct Escaping<F>(F);

macro_rules! as_inner {
    ($($name:ident($($argument:ident: $kind:ty)?);)+) => {
        $(
            fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $argument: $kind)?) -> io::Result<()> {
                self.0.$name(writer $(, $argument)?)
            }
        )+
    };
}

impl<F: Formatter> Formatter for Escaping<F> {
    as_inner! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unsafe(*c)) {
            let (before, behind) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = behind.get(c.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminals_get_no_orders() {
        let hostile = "a\u{9b}31m\u{202e}b\u{7f}\u{e0041}\n\"";
        assert_eq!(compact(hostile).unwrap(), r#""a\u009b31m\u202eb\u007f\udb40\udc41\n\"""#);
        assert_eq!(pretty(&vec![1, 2]).unwrap(), "[\n  1,\n  2\n]");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text: String) {
            let json = compact(&text).unwrap();
            prop_assert!(!json.chars().any(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
