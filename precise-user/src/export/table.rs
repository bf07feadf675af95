//! Every row of a capture with every column of the file (docs/capture-format.md), for what reads no
//! Parquet.

use std::borrow::Cow;

use chrono::DateTime;
use precise_capture::{Column, ColumnType, batches};
use precise_model::Capture;
use precise_model::csv::line as csv_line;
use precise_model::safe_json;

/// Columns that are addresses or bit sets: hex, because a number of JSON loses their low bits, and
/// nobody reads them in decimal.
const HEX: [Column; 5] =
    [Column::Ip, Column::Address, Column::DataSrc, Column::OpOutcome, Column::FetchOutcome];

/// A header, and a line per row. What is null is empty.
///
/// # Errors
///
/// When a row refers to something that the capture does not have.
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

/// A JSON object per row, each on a line of its own. What is null is left out.
///
/// # Errors
///
/// When a row refers to something that the capture does not have.
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

/// What a value of a column is in JSON, in the words of JSON Schema.
pub fn json_type(column: Column) -> &'static str {
    match column.kind() {
        ColumnType::Bool => "boolean",
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 if !HEX.contains(&column) => {
            "integer"
        }
        _ => "string",
    }
}

/// One column of some rows.
struct Values<'a> {
    column: Column,
    values: &'a precise_capture::Values,
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
    /// The value of a row; `None` where it is null.
    fn text(&self, at: usize) -> Option<Cow<'_, str>> {
        use precise_capture::Values;
        let number = match self.values {
            Values::Flags(flags) => return Some(if (*flags.get(at)?)? { "true" } else { "false" }.into()),
            Values::Texts(texts) => return texts.get(at).map(Cow::from),
            Values::Times(times) => {
                let time = DateTime::from_timestamp_nanos((*times.get(at)?)?);
                return Some(time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string().into());
            }
            Values::Small(numbers) => (*numbers.get(at)?)?.into(),
            Values::Large(numbers) => (*numbers.get(at)?)?,
        };
        let hex = HEX.contains(&self.column);
        Some(if hex { format!("{number:#x}") } else { number.to_string() }.into())
    }
}
