//! Streamed samples as JSON: one object per line.

use precise_model::safe_json::compact as to_string;

use precise_model::Name;
use precise_model::values::Value;
use precise_sampling::stream::{NamedChain, NamedSample, StreamField};

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
    if let Some(chain) = &named.chain {
        out += &callers(named, chain)?;
    }
    out += "}\n";
    Ok(out)
}

/// Serializes a call chain: the callers, the innermost first, and why there are no more.
fn callers(named: &NamedSample<'_>, chain: &NamedChain<'_>) -> Result<String, serde_json::Error> {
    let text = |name: Name| match name {
        Name::Known(id) => to_string(named.names.get(id)),
        Name::Unknown(_) => Ok("null".to_owned()),
    };
    let mut out = String::from(",\"callers\":[");
    for (at, (address, code)) in chain.callers.iter().enumerate() {
        let address = named.shown(*address);
        out += if at > 0 { ",{" } else { "{" };
        out += &format!("\"ip\":\"{address:#x}\",\"symbol\":{}", text(code.function)?);
        if let Name::Known(_) = code.function {
            out += &format!(",\"symbol_offset\":{}", code.function_offset);
        }
        out += &format!(",\"module\":{}}}", text(code.module)?);
    }
    let end = chain.end.map_or_else(|| Ok("null".to_owned()), |end| to_string(end.as_str()))?;
    Ok(out + "],\"chain_end\":" + &end)
}
