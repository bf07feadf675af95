//! The text of an event's encoding, as perf writes it: `cpu/event=0xcd,ldlat=0x1e/P`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a tagged op or fetch that the samples of an event describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaggedOf {
    /// The branch of an op. The address is the branch target; the latency is the time from tag to
    /// retirement.
    Branch,
    /// The instruction fetch. The latency is the latency of the fetch.
    Fetch,
    /// The memory access of an op, with details beyond the data source. Address, latency and data
    /// source are those of the access.
    Access,
    /// The whole op: the outcome has everything that its registers report and replaces the data
    /// source. Address and latency are those of the access.
    Op,
}

/// Parses a number as users and the kernel write it: decimal, or hexadecimal with the prefix `0x`.
/// Returns `None` for anything else.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}
