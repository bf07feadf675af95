//! Results as JSON. Each document says its kind and the version of its schema.

use schemars::JsonSchema;
use serde::Serialize;

use super::{safe_json, schema::Document};
use crate::doctor::{Diagnosis, State};
use crate::views::gates::GateResult;

/// A document as it is printed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Printed<'a, T> {
    schema: u32,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
    /// What was required, where something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<&'a [GateResult]>,
}

impl<'a, T: Document> Printed<'a, T> {
    fn of(content: &'a T, gates: Option<&'a [GateResult]>) -> Self {
        Self { schema: T::VERSION, kind: T::KIND, content, gates }
    }
}

/// A result as a document. Shares are parts of 1, latencies core cycles, addresses strings in hex.
///
/// # Errors
///
/// Never: the error is serde_json's, for texts that are no texts.
pub fn document<T: Document>(content: &T, gates: Option<&[GateResult]>) -> Result<String, serde_json::Error> {
    let text = safe_json::pretty(&Printed::of(content, gates))? + "\n";
    #[cfg(test)]
    super::schema::check(&text);
    Ok(text)
}

/// The same on one line.
///
/// # Errors
///
/// Never, as [`document`].
pub fn document_line<T: Document>(content: &T) -> Result<String, serde_json::Error> {
    let text = safe_json::compact(&Printed::of(content, None))? + "\n";
    #[cfg(test)]
    super::schema::check(&text);
    Ok(text)
}

/// What `precise doctor` found, with what it looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Doctor<'a> {
    /// What is well, and what is not.
    #[serde(flatten)]
    pub diagnosis: &'a Diagnosis,
    /// What was looked at.
    pub state: &'a State,
}
