//! Streamed samples as JSON: one object per line.

use precise_model::safe_json::compact as to_string;

use precise_model::values::Value;
use precise_sampling::stream::{NamedSample, StreamField};

/// Serializes one sample as a line of JSON, with its newline. The fields are in the given order.
///
/// Numbers are JSON numbers, addresses are hexadecimal strings (JSON's numbers lose their low
/// bits), and flags are booleans. A value that the hardware did not report is null. An unknown name
/// is null too, and `FIELD_unknown` contains the reason. If a name has a distance from its start,
/// `FIELD_offset` contains it, in bytes.
///
/// # Errors
///
/// Never returns an error in practice; the error type is serde_json's, for values that cannot be
/// serialized.
pub fn stream_json(fields: &[StreamField], named: &NamedSample<'_>) -> Result<String, serde_json::Error> {
    let mut out = String::from("{");
    for field in fields {
        let name = field.name();
        if out.len() > 1 {
            out.push(',');
        }
        out += &format!("\"{name}\":");
        match field.value(named) {
            Value::Text(text) | Value::Owned { path: text, .. } => out += &to_string(&text)?,
            Value::Number(number) | Value::Thread { tid: number, .. } => out += &number.to_string(),
            Value::Address(address) => out += &format!("\"{address:#x}\""),
            Value::Flag(flag) => out += if flag { "true" } else { "false" },
            value @ (Value::Cycles { .. } | Value::Untyped(_)) => out += &to_string(&value.text())?,
            Value::Unknown(reason) => {
                out += &format!("null,\"{name}_unknown\":{}", to_string(reason.as_str())?);
            }
            Value::NotGiven => out += "null",
        }
        if let Some(offset) = field.offset(named) {
            out += &format!(",\"{name}_offset\":{offset}");
        }
    }
    out += "}\n";
    Ok(out)
}
