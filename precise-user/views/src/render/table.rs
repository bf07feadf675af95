//! Aligned tables of text.

use super::style::{Style, Tint};
use precise_model::text::{Cut, fit, sanitize, width};

/// The width in columns that names shrink to before the table becomes wider than requested.
const NARROWEST: usize = 8;
const GAP: &str = "  ";

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    title: String,
    kind: ColumnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    Number,
    Text(Cut),
}

impl TableColumn {
    /// Makes a column of numbers: right-aligned, never cut.
    pub fn number(title: &str) -> Self {
        Self { title: title.to_owned(), kind: ColumnKind::Number }
    }

    /// Makes a column of names: left-aligned, cut if the table would be too wide.
    pub fn text(title: &str, cut: Cut) -> Self {
        Self { title: title.to_owned(), kind: ColumnKind::Text(cut) }
    }
}

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Table {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes an empty table with these columns.
    pub fn new(columns: Vec<TableColumn>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row. Cells are sanitized for a terminal; missing cells are empty, extra cells are
    /// dropped.
    pub fn row(&mut self, cells: Vec<String>) {
        let mut cells: Vec<_> = cells.iter().map(|cell| sanitize(cell)).collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// Returns the table, one line per row, each with a newline. It is at most `columns` wide,
    /// unless names would have to shrink below 8 columns.
    pub fn render(&self, columns: usize, style: Style) -> String {
        let widths = self.widths(columns);
        let titles: Vec<_> = self.columns.iter().map(|c| c.title.clone()).collect();
        let mut out = style.paint(Tint::Heading, &self.line(&titles, &widths));
        out.push('\n');
        for row in &self.rows {
            out += &self.line(row, &widths);
            out.push('\n');
        }
        out
    }

    /// Returns the widths of the columns: first as needed, then the widest names are cut until a
    /// line fits.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let needed = |(i, column): (usize, &TableColumn)| {
            self.rows.iter().map(|row| width(&row[i])).chain([width(&column.title)]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(needed).collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        loop {
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
            let texts = self.columns.iter().enumerate().filter(|(_, c)| c.kind != ColumnKind::Number);
            let widest = texts.map(|(i, _)| i).max_by_key(|i| widths[*i]);
            match widest {
                // The widest column loses one at a time, so that several long names share the loss.
                Some(i) if excess > 0 && widths[i] > NARROWEST => widths[i] -= 1,
                _ => return widths,
            }
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (i, ((cell, column), columns)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            if i > 0 {
                line += GAP;
            }
            match column.kind {
                ColumnKind::Number => {
                    pad(&mut line, columns.saturating_sub(width(cell)));
                    line += cell;
                }
                ColumnKind::Text(cut) => {
                    let cell = fit(cell, *columns, cut);
                    line += &cell;
                    pad(&mut line, columns.saturating_sub(width(&cell)));
                }
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn pad(line: &mut String, columns: usize) {
    line.extend(std::iter::repeat_n(' ', columns));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_long_names_give_way() {
        let mut table = Table::new(vec![
            TableColumn::number("N"),
            TableColumn::text("Name", Cut::Middle),
            TableColumn::text("M", Cut::Start),
        ]);
        table.row(vec!["1,000".into(), "core::iter::adapters::map::fold".into(), "libc.so.6".into()]);
        table.row(vec!["7".into(), "中文\x1b".into()]);
        let expected = "\
    N  Name              M
1,000  core::it…ap::fold  libc.so.6
    7  中文\u{fffd}
";
        let rendered = table.render(35, Style::plain());
        assert_eq!(rendered.lines().nth(1), expected.lines().nth(1), "{rendered}");
        assert!(rendered.lines().all(|line| width(line) <= 35), "{rendered}");
    }
}
