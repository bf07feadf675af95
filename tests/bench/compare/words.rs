//! Numbers and paragraphs, as a page has them.

/// Returns text in lines of at most 100 columns.
pub fn filled(text: &str) -> String {
    const COLUMNS: usize = 100;
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out
}

/// Returns a number with three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
