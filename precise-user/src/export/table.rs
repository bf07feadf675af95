//! Export of every row of a capture with every column of the file (docs/capture-format.md), for
//! programs that cannot read Parquet.

use std::borrow::Cow;

use chrono::DateTime;
use precise_capture::{Column, ColumnType, batches};
use precise_model::Capture;
use precise_model::csv::line as csv_line;
use precise_model::safe_json;

/// Columns with addresses or bit sets. They are written in hexadecimal, because JSON numbers lose
/// their low bits and decimal is hard to read.
const HEX: [Column; 5] =
    [Column::Ip, Column::Address, Column::DataSrc, Column::OpOutcome, Column::FetchOutcome];

/// Returns CSV: a header, and one line per row. Null values are empty.
///
/// # Errors
///
/// Returns an error if a row refers to something that the capture does not contain.
pub fn csv(capture: &Capture, separator: &str) -> Result<String, String> {
    let mut out = String::new();
    let names: Vec<_> = Column::ALL.map(|column| column.name().to_owned()).to_vec();
    csv_line(&mut out, &names, separator);
    each(capture, |columns, at| {
        let fields = columns.iter().map(|column| column.text(at).unwrap_or_default().into_owned());
        csv_line(&mut out, &fields.collect::<Vec<_>>(), separator);
        Ok(())
    })?;
    Ok(out)
}

/// Returns one JSON object per row, each on its own line. Null values are left out.
///
/// # Errors
///
/// Returns an error if a row refers to something that the capture does not contain.
pub fn json(capture: &Capture) -> Result<String, String> {
    let mut out = String::new();
    each(capture, |columns, at| {
        let mut first = true;
        for column in columns {
            let Some(text) = column.text(at) else { continue };
            out += if first { "{\"" } else { ",\"" };
            first = false;
            out += column.column.name();
            out += "\":";
            if json_type(column.column) != "string" {
                out += &text;
            } else {
                out += &safe_json::compact(&text).map_err(|error| error.to_string())?;
            }
        }
        out += "}\n";
        Ok(())
    })?;
    Ok(out)
}

/// Returns the JSON type of a column's values, in the terms of JSON Schema.
pub fn json_type(column: Column) -> &'static str {
    match column.kind() {
        ColumnType::Bool => "boolean",
        _ if HEX.contains(&column) => "string",
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 | ColumnType::I64 => "integer",
        ColumnType::Text | ColumnType::Time => "string",
    }
}

/// One column of a batch of rows.
struct Values<'a> {
    column: Column,
    values: &'a precise_capture::ColumnValues,
}

fn each(
    capture: &Capture,
    mut row: impl FnMut(&[Values], usize) -> Result<(), String>,
) -> Result<(), String> {
    for batch in batches(capture) {
        let batch = batch?;
        let columns = Column::ALL.into_iter().zip(&batch.columns);
        let columns: Vec<_> = columns.map(|(column, values)| Values { column, values }).collect();
        (0..batch.rows).try_for_each(|at| row(&columns, at))?;
    }
    Ok(())
}

impl Values<'_> {
    /// Returns the value of a row as text; `None` if it is null.
    fn text(&self, at: usize) -> Option<Cow<'_, str>> {
        use precise_capture::ColumnValues;
        let number = match self.values {
            ColumnValues::Flags(flags) => {
                return Some(if (*flags.get(at)?)? { "true" } else { "false" }.into());
            }
            ColumnValues::Texts(texts) => return texts.get(at).map(Cow::from),
            ColumnValues::Times(times) => {
                let time = DateTime::from_timestamp_micros((*times.get(at)?)?)?;
                return Some(time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into());
            }
            ColumnValues::Small(numbers) => (*numbers.get(at)?)?.into(),
            ColumnValues::Large(numbers) => (*numbers.get(at)?)?,
        };
        let hex = HEX.contains(&self.column);
        Some(if hex { format!("{number:#x}") } else { number.to_string() }.into())
    }
}
