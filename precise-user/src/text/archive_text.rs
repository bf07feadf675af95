//! The result of `precise archive` as text.

use crate::archive::Archive;
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};
use precise_views::render::TextOptions;
use precise_views::render::number::short;
use precise_views::render::table::{Table, TableColumn};

/// Formats the archived captures, and the command that compares them.
pub fn archive_text(archive: &Archive, options: &TextOptions) -> String {
    let columns = [
        TableColumn::number("Samples"),
        TableColumn::number("Bytes"),
        TableColumn::text("Events", Cut::End),
        TableColumn::text("Name", Cut::Middle),
    ];
    let mut table = Table::new(columns.to_vec());
    for capture in &archive.captures {
        let (samples, bytes) = (thousands(capture.samples), short(capture.bytes));
        table.row(vec![samples, bytes, capture.events.join(","), capture.name.clone()]);
    }
    let compare =
        format!("Compare it with another label: precise diff {} PLACE/LABEL", sanitize(&archive.place));
    format!(
        "{}\n\n{}\n{}\n",
        wrap(&format!("Archived in {}", sanitize(&archive.place)), options.width, 2),
        table.render(options.table_width(), options.style),
        wrap(&compare, options.width, 2)
    )
}
