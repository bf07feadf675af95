//! HTML tables. Sortable tables have a button in the header of each column, and `aria-sort` for
//! screen readers.

use super::{bar, text};
use crate::render::number::share;
use crate::stats::Share;

/// Returns a table that cannot be sorted; every cell is text. The first column names the row, and
/// stands above the others on a narrow screen.
pub(crate) fn plain(caption: &str, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: String = titles.iter().map(|title| format!("<th scope=\"col\">{}</th>", text(title))).collect();
    let rows = rows.map(|cells| {
        let cell = |(at, cell): (usize, &String)| match titles.get(at) {
            Some(title) if at > 0 => format!("<td data-t=\"{}\">{}</td>", text(title), text(cell)),
            _ => format!("<td>{}</td>", text(cell)),
        };
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    });
    framed(caption, " class=\"plain\"", &head, &rows.collect::<String>())
}

/// The kind of a column in a sortable table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Share,
    Number,
    Text,
}

impl ColumnKind {
    fn class(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Number => "n",
            Self::Text => "text",
        }
    }
}

/// A cell: its content, and the value that it is sorted by.
pub(crate) struct HtmlCell {
    html: String,
    value: Option<f64>,
}

impl HtmlCell {
    /// Makes a cell with a name.
    pub fn text(name: &str) -> Self {
        Self { html: text(name), value: None }
    }

    /// Makes a cell with code.
    pub fn code(code: &str) -> Self {
        Self { html: format!("<code>{}</code>", text(code)), value: None }
    }

    /// Makes a cell with a number in its displayed form.
    pub fn number(value: f64, shown: &str) -> Self {
        Self { html: text(shown), value: Some(value) }
    }

    /// Makes a cell with a share and its bar.
    pub fn share(part: &Share) -> Self {
        Self { html: bar(part) + &text(&share(part)), value: Some(part.value) }
    }

    /// Makes a cell for an unknown value.
    pub fn nothing() -> Self {
        Self { html: String::new(), value: None }
    }
}

/// Returns a sortable table. It starts sorted by its first column, descending.
pub(crate) fn sortable(
    caption: &str,
    columns: &[(ColumnKind, String)],
    rows: &[Vec<HtmlCell>],
    rest: &str,
) -> String {
    following_table(caption, columns, rows, rest, None)
}

/// Returns a sortable table that follows a selection in the pictures, by the numbers of the table
/// with this number. Its first column is the share, and its second one the samples.
pub(crate) fn following_table(
    caption: &str,
    columns: &[(ColumnKind, String)],
    rows: &[Vec<HtmlCell>],
    rest: &str,
    number: Option<usize>,
) -> String {
    let head = columns.iter().enumerate().map(|(at, (kind, title))| {
        let sorted = if at == 0 { " aria-sort=\"descending\"" } else { "" };
        let (class, title) = (kind.class(), text(title));
        format!("<th scope=\"col\" class=\"{class}\"{sorted}><button type=\"button\">{title}</button></th>")
    });
    let mut body = String::new();
    for row in rows {
        body += "<tr>";
        for (cell, (kind, title)) in row.iter().zip(columns) {
            let value = cell.value.map_or_else(String::new, |value| format!(" data-v=\"{value}\""));
            // A narrow screen has no columns, so that each number needs its title.
            let title = match kind {
                ColumnKind::Text => String::new(),
                ColumnKind::Share | ColumnKind::Number => format!(" data-t=\"{}\"", text(title)),
            };
            body += &format!("<td class=\"{}\"{value}{title}>{}</td>", kind.class(), cell.html);
        }
        body += "</tr>\n";
    }
    if !rest.is_empty() {
        body += &format!("<tr class=\"rest\"><td colspan=\"{}\">{}</td></tr>\n", columns.len(), text(rest));
    }
    let number = number.map_or_else(String::new, |number| format!(" data-follows=\"{number}\""));
    framed(caption, &format!(" class=\"sortable\"{number}"), &head.collect::<String>(), &body)
}

/// Returns a table that scrolls by itself if it is wide, so that the page does not.
fn framed(caption: &str, class: &str, head: &str, body: &str) -> String {
    let caption = text(caption);
    format!(
        "<p class=\"caption\">{caption}</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\"><table{class}>\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}
