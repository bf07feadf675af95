//! The text of an event's encoding, as perf writes it: `cpu/event=0xcd,ldlat=0x1e/P`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a tagged op or fetch is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaggedOf {
    /// Of an op: its branch. The address is the branch's target, the latency lasts from tag to
    /// retirement.
    Branch,
    /// The fetch. The latency is its own.
    Fetch,
    /// Of an op: its access, beyond what the data source says. Address, latency and data source
    /// stay those of the access.
    Access,
    /// Of an op: all that its registers say, in place of the data source. Address and latency stay
    /// those of the access.
    Op,
}

/// A number as users and the kernel write it: decimal, or hexadecimal behind `0x`.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}
