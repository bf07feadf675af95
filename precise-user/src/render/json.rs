//! Results as JSON. Each document says its kind and the version of its schema.

use serde::Serialize;

use crate::views::report::Report;
use crate::views::summary::Summary;
use crate::views::trust::Trust;

/// Raised when a field changes its meaning or goes away; a field that is added does not raise it.
pub const JSON_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

fn document<T: Serialize>(kind: &'static str, content: &T) -> Result<String, serde_json::Error> {
    let document = Document { schema: JSON_SCHEMA, kind, content };
    serde_json::to_string_pretty(&document).map(|json| json + "\n")
}

/// A report. Shares are parts of 1, latencies core cycles, addresses strings in hex.
pub fn report_json(report: &Report) -> Result<String, serde_json::Error> {
    document("report", report)
}

/// A summary: its reports and the trust.
pub fn summary_json(summary: &Summary) -> Result<String, serde_json::Error> {
    document("summary", summary)
}

/// Ledger and verdict.
pub fn trust_json(trust: &Trust) -> Result<String, serde_json::Error> {
    document("trust", trust)
}
