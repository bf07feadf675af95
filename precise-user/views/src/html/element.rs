//! Text and small pictures of a page.

use crate::stats::Share;
use precise_model::text::sanitize;

/// Text that a browser shows as it is, in an element or in a quoted attribute: nothing in it is
/// markup, and control characters and those that turn or hide what stands around them are `�`.
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

/// JSON that may stand in a script element: nothing in it ends one, or begins a comment.
pub(crate) fn json(json: &str) -> String {
    let json = sanitize(json);
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A share as a bar: its value, and lighter its interval.
pub(crate) fn bar(share: &Share) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|part| part * 100.0);
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"100\" height=\"10\"/><rect class=\"value\" width=\"{value:.1}\" height=\"10\"/>\
         <rect class=\"band\" x=\"{low:.1}\" y=\"3\" width=\"{:.1}\" height=\"4\"/></svg>",
        (high - low).max(0.5)
    )
}
