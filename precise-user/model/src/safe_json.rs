//! JSON that a terminal can be shown: what it would act on is escaped, and nothing is lost.
//!
//! JSON itself escapes only what is below U+0020. A name may hold more that a terminal takes for an
//! order (U+009B begins one) or that hides what it is (bidirectional overrides).

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::text::is_unsafe;

/// `value` on one line.
///
/// # Errors
///
/// serde_json's, for what is no JSON.
pub fn compact(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    write(value, CompactFormatter)
}

/// `value`, indented.
///
/// # Errors
///
/// As [`compact`].
pub fn pretty(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    write(value, PrettyFormatter::new())
}

fn write<F: Formatter>(value: &(impl Serialize + ?Sized), inner: F) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Escaping(inner)))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Escapes in strings what the inner one leaves.
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
