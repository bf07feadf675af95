//! What came in: where an imported capture is from, and where its samples went.

pub mod text;

use schemars::JsonSchema;
use serde::Serialize;

use super::trust::{Trust, trust_of};
use precise_model::{Imported, Machine, Origin};

/// An import.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImportedView {
    /// Who recorded it.
    pub origin: Origin,
    /// The recorded machine.
    pub machine: Machine,
    /// Start of the recording, nanoseconds since the Unix epoch; 0 where that is not known.
    pub start_unix_ns: u64,
    /// From the first sample to the last, nanoseconds.
    pub duration_ns: u64,
    /// What the capture groups by.
    pub dimensions: Vec<String>,
    /// Samples in the capture.
    pub samples: u64,
    /// Rows of the capture.
    pub rows: u64,
    /// Epochs of the capture.
    pub epochs: usize,
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// Ledger and verdict.
    pub trust: Trust,
}

/// What came in.
pub fn imported(import: &Imported) -> ImportedView {
    let meta = &import.meta;
    ImportedView {
        origin: meta.origin.clone().unwrap_or_default(),
        machine: meta.machine.clone(),
        start_unix_ns: meta.start_unix_ns,
        duration_ns: meta.epochs.last().map_or(0, |epoch| epoch.end_ns),
        dimensions: meta.dimensions.iter().map(|dimension| dimension.as_str().to_owned()).collect(),
        samples: import.kept.iter().fold(0, |sum, kept| sum.saturating_add(*kept)),
        rows: import.rows,
        epochs: meta.epochs.len(),
        bytes: import.bytes,
        trust: trust_of(meta, &import.kept),
    }
}
