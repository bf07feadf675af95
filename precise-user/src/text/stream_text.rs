//! Streamed samples as text: one line each, in columns.

use precise_model::Name;
use precise_model::text::{Cut, fit, sanitize, width};
use precise_model::values::Value;
use precise_sampling::stream::{NamedSample, StreamField};

const GAP: &str = "  ";
/// Maximum width of a name that is not the last one in its line. The last name is never shortened.
const WIDEST: usize = 32;

/// Formats samples as lines without knowing how many will follow. A column is as wide as the widest
/// text that it has contained so far.
#[derive(Clone, Debug)]
pub struct StreamText {
    columns: Vec<(StreamField, usize)>,
}

impl StreamText {
    /// Creates a formatter for these fields, in the given order.
    pub fn new(fields: &[StreamField]) -> Self {
        let columns = fields.iter().map(|field| (*field, field.width().max(field.title().len())));
        Self { columns: columns.collect() }
    }

    /// Returns the header line with the titles. It starts with `#` and ends with a newline.
    pub fn header(&mut self) -> String {
        let titles = self.columns.iter().map(|(field, _)| field.title().to_owned()).collect();
        let line = self.layout(titles);
        match line.strip_prefix(' ') {
            Some(rest) => format!("#{rest}"),
            None => format!("#{line}"),
        }
    }

    /// Returns the line of a sample, with its newline. Numbers are written without grouping, for
    /// programs.
    pub fn line(&mut self, named: &NamedSample<'_>) -> String {
        let cells = self.columns.iter().map(|(field, _)| cell(*field, named)).collect();
        self.layout(cells)
    }

    fn layout(&mut self, cells: Vec<String>) -> String {
        let mut line = String::new();
        let last = self.columns.len().saturating_sub(1);
        for (index, ((field, columns), cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            let cell = sanitize(&cell);
            // Both ends of a function's name matter; of a path, its end.
            let cut = match field {
                StreamField::Symbol | StreamField::Variable => Cut::Middle,
                _ => Cut::Start,
            };
            let whole = index == last || field.is_number();
            let cell = if whole { cell } else { fit(&cell, WIDEST, cut) };
            let own = width(&cell);
            *columns = own.max(*columns);
            if !line.is_empty() {
                line += GAP;
            }
            let padding = " ".repeat(*columns - own);
            let (left, right) = if field.is_number() { (&*padding, "") } else { ("", &*padding) };
            line += left;
            line += &cell;
            line += right;
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

fn cell(field: StreamField, named: &NamedSample<'_>) -> String {
    let value = match (field, field.value(named)) {
        // As in perf's output: seconds and microseconds.
        (StreamField::Time, Value::Number(ns)) => {
            return format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000);
        }
        // Without a variable, the memory region of the address says more than the fact that there
        // is not a variable.
        (StreamField::Variable, Value::Unknown(_))
            if let Some(Name::Known(region)) = named.data.map(|data| data.region) =>
        {
            return named.names.get(region).to_owned();
        }
        (_, Value::NotGiven) => return "-".to_owned(),
        (_, value) => value.text(),
    };
    match field.offset(named) {
        Some(offset) => format!("{value}+{offset:#x}"),
        None => value,
    }
}
