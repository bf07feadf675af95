//! What an answer means. It comes from others, and is not trusted.

use std::time::Duration;

use chrono::DateTime;
use precise_model::text::sanitize;
use precise_sampling::serve::PushAnswer;

use crate::export::wire::{WireFields, WireValue};

/// The most characters of an answer's text that a message shows.
const MOST: usize = 200;

/// An answer over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HttpAnswer {
    pub status: u16,
    /// The field Retry-After.
    pub retry_after: Option<String>,
    /// Whether the body is a protobuf message.
    pub is_protobuf: bool,
    /// The first bytes of the body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Returns what a collector made of a request, as OTLP defines it: `now_ns` is the time in
    /// nanoseconds since the Unix epoch.
    pub fn of_collector(&self, now_ns: u64) -> PushAnswer {
        match self.status {
            200..=299 if self.is_protobuf => partial_success(&self.body),
            200..=299 => PushAnswer::Taken { refused: 0, said: String::new() },
            429 | 502..=504 => PushAnswer::Later { after: self.after(now_ns), why: self.why() },
            _ => PushAnswer::Refused { why: self.why() },
        }
    }

    /// Returns what Pyroscope made of a request. Any error of the server may pass.
    pub fn of_pyroscope(&self, now_ns: u64) -> PushAnswer {
        match self.status {
            200..=299 => PushAnswer::Taken { refused: 0, said: String::new() },
            408 | 429 | 500..=599 => PushAnswer::Later { after: self.after(now_ns), why: self.why() },
            _ => PushAnswer::Refused { why: self.why() },
        }
    }

    /// Returns the time that Retry-After asks for: seconds, or a date.
    fn after(&self, now_ns: u64) -> Option<Duration> {
        let text = self.retry_after.as_deref()?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp_nanos_opt()?;
        Some(Duration::from_nanos(u64::try_from(at).ok()?.saturating_sub(now_ns)))
    }

    fn why(&self) -> String {
        let text = match self.is_protobuf {
            true => status_message(&self.body),
            false => std::str::from_utf8(&self.body).unwrap_or_default().to_owned(),
        };
        let text = short(&text);
        if text.is_empty() {
            format!("status {}", self.status)
        } else {
            format!("status {}: {text}", self.status)
        }
    }
}

/// Returns the first line of a text of others, safe for a terminal.
fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    sanitize(line.chars().take(MOST).collect::<String>().trim_end())
}

/// Returns the last value of a field.
fn field(bytes: &[u8], number: u64) -> Option<WireValue<'_>> {
    WireFields::new(bytes).filter(|(found, _)| *found == number).last().map(|(_, value)| value)
}

fn text_of(bytes: &[u8], number: u64) -> String {
    match field(bytes, number) {
        Some(WireValue::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

/// Reads an `ExportProfilesServiceResponse`.
fn partial_success(body: &[u8]) -> PushAnswer {
    let (mut refused, mut said) = (0, String::new());
    if let Some(WireValue::Bytes(partial)) = field(body, 1) {
        if let Some(WireValue::Number(number)) = field(partial, 1) {
            // A negative number is invalid, and refuses nothing.
            refused = i64::try_from(number).unwrap_or(0).unsigned_abs();
        }
        said = short(&text_of(partial, 2));
    }
    PushAnswer::Taken { refused, said }
}

/// Reads the message of a `google.rpc.Status`.
fn status_message(body: &[u8]) -> String {
    text_of(body, 2)
}
