//! Every row of a capture with every column of the file (docs/capture-format.md), for what reads no Parquet.

use std::borrow::Cow;

use arrow_array::cast::AsArray as _;
use arrow_array::temporal_conversions::timestamp_ns_to_datetime;
use arrow_array::types::{Int32Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};

use precise_capture::{Column, Kind, batches};
use precise_model::Capture;
use precise_model::csv::line as csv_line;
use precise_model::safe_json;

/// Columns that are addresses or bit sets: hex, because a number of JSON loses their low bits, and nobody reads them in decimal.
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
        Kind::Bool => "boolean",
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 if !HEX.contains(&column) => "integer",
        _ => "string",
    }
}

/// One column of some rows.
struct Values<'a> {
    column: Column,
    array: &'a ArrayRef,
}

fn each(
    capture: &Capture,
    mut row: impl FnMut(&[Values], usize) -> Result<(), String>,
) -> Result<(), String> {
    for batch in batches(capture) {
        let batch: RecordBatch = batch?;
        let columns: Vec<_> = Column::ALL
            .into_iter()
            .zip(batch.columns())
            .map(|(column, array)| Values { column, array })
            .collect();
        (0..batch.num_rows()).try_for_each(|at| row(&columns, at))?;
    }
    Ok(())
}

impl Values<'_> {
    /// The value of a row; `None` where it is null.
    fn text(&self, at: usize) -> Option<Cow<'_, str>> {
        let array = self.array;
        if array.is_null(at) {
            return None;
        }
        let number = match self.column.kind() {
            Kind::Bool => return Some(if array.as_boolean().value(at) { "true" } else { "false" }.into()),
            Kind::Text => {
                let dictionary = array.as_dictionary::<Int32Type>();
                let key = dictionary.key(at)?;
                return Some(dictionary.values().as_string::<i32>().value(key).into());
            }
            Kind::Time => {
                let time = array.as_primitive::<TimestampNanosecondType>().value(at);
                let time = timestamp_ns_to_datetime(time)?;
                return Some(time.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string().into());
            }
            Kind::U8 => array.as_primitive::<UInt8Type>().value(at).into(),
            Kind::U16 => array.as_primitive::<UInt16Type>().value(at).into(),
            Kind::U32 => array.as_primitive::<UInt32Type>().value(at).into(),
            Kind::U64 => array.as_primitive::<UInt64Type>().value(at),
        };
        let hex = HEX.contains(&self.column);
        Some(if hex { format!("{number:#x}") } else { number.to_string() }.into())
    }
}
