//! HTML that the sections of a page are made of: text, JSON, small pictures and tables.

pub(crate) mod tables;

use crate::stats::Share;
use precise_model::text::sanitize;

/// Escapes text for an element or a quoted attribute: nothing in it is markup. Control characters,
/// and characters that change the direction of text or hide their neighbours, become `�`.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element, so that it cannot end the element or start a comment.
pub(crate) fn json(json: &str) -> String {
    let json = sanitize(json);
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Returns a share as a bar: its value, and its interval in a lighter colour.
pub(crate) fn bar(share: &Share) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|part| part * 100.0);
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"100\" height=\"10\"/><rect class=\"value\" width=\"{value:.1}\" height=\"10\"/>\
         <rect class=\"band\" x=\"{low:.1}\" y=\"3\" width=\"{:.1}\" height=\"4\"/></svg>",
        (high - low).max(0.5)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        assert_eq!(
            text("<b a=\"1\" b='2'>&\u{202e}\u{1b}"),
            "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
        assert_eq!(json(r#"{"a":"</script><!--&"}"#), r#"{"a":"\u003c/script\u003e\u003c!--\u0026"}"#);
    }
}
