//! Streamed samples as JSON: an object each, on a line of its own.

use precise_model::safe_json::compact as to_string;

use precise_model::values::Value;
use precise_sampling::stream::{Field, Named};

/// One sample, its fields in the order given; the line is ended.
///
/// Numbers are numbers, addresses strings in hex (JSON's numbers lose their low bits), flags
/// booleans. What the hardware did not give is null; so is a name that is not known, with the
/// reason in `FIELD_unknown`. Where a name has a distance from its start, it is in `FIELD_offset`,
/// bytes.
///
/// # Errors
///
/// Never: the error is serde_json's, for texts that are no texts.
pub fn stream_json(fields: &[Field], named: &Named<'_>) -> Result<String, serde_json::Error> {
    let mut out = String::from("{");
    for field in fields {
        let name = field.name();
        if out.len() > 1 {
            out.push(',');
        }
        out += &format!("\"{name}\":");
        match field.value(named) {
            Value::Text(text) | Value::Owned { path: text, .. } => out += &to_string(&text)?,
            Value::Number(number) => out += &number.to_string(),
            Value::Address(address) => out += &format!("\"{address:#x}\""),
            Value::Flag(flag) => out += if flag { "true" } else { "false" },
            value @ Value::Cycles { .. } => out += &to_string(&value.text())?,
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
