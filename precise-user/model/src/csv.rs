//! Lines of separated values.

use crate::text::sanitize;

/// Appends a line of fields to `out`, quoted where necessary, and safe for terminals and
/// spreadsheets.
///
/// [`sanitize`] removes what a terminal would act on. A spreadsheet takes a field that begins with
/// `=`, `+`, `-` or `@` for a formula, so such a field gets an apostrophe in front, unless it is a
/// number. The exact text is in the JSON output.
pub fn line(out: &mut String, fields: &[String], separator: &str) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            *out += separator;
        }
        let mut field = sanitize(field);
        if field.starts_with(['=', '+', '-', '@']) && !is_number(&field) {
            field.insert(0, '\'');
        }
        let holds_separator = !separator.is_empty() && field.contains(separator);
        if holds_separator || field.contains('"') {
            out.push('"');
            *out += &field.replace('"', "\"\"");
            out.push('"');
        } else {
            *out += &field;
        }
    }
    out.push('\n');
}

/// Returns whether a field is a number, including the form of offsets: `+0x1c`.
fn is_number(field: &str) -> bool {
    let hex = field.trim_start_matches(['+', '-']).strip_prefix("0x");
    field.parse::<f64>().is_ok()
        || hex.is_some_and(|hex| !hex.is_empty() && hex.chars().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_harmless() {
        let fields = [
            "=cmd|' /C calc'!A0",
            "@SUM(1)",
            "-12.5",
            "+1e3",
            "+0x1c",
            "-0x1+A1",
            "-x",
            "a,\"b",
            "c\nd\u{1b}[2J",
            "é",
        ];
        let mut out = String::new();
        line(&mut out, &fields.map(str::to_owned), ",");
        assert_eq!(
            out,
            "'=cmd|' /C calc'!A0,'@SUM(1),-12.5,+1e3,+0x1c,'-0x1+A1,'-x,\"a,\"\"b\",c\u{fffd}d\u{fffd}[2J,é\n"
        );
    }
}
