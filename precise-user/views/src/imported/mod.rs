//! The result of `precise import`: the origin of an imported capture, and what became of its
//! samples.

pub mod text;

use schemars::JsonSchema;
use serde::Serialize;

use crate::documents;
use crate::trust::{Trust, trust_of};
use precise_model::{Imported, Machine, Origin};

/// Summary of an import.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImportedView {
    /// Format of the imported file, and the program that recorded it.
    pub origin: Origin,
    /// The machine that was recorded.
    pub machine: Machine,
    /// Start of the recording, in nanoseconds since the Unix epoch; 0 if it is unknown.
    pub start_unix_ns: u64,
    /// Time from the first sample to the last one, in nanoseconds.
    pub duration_ns: u64,
    /// Dimensions that the capture groups by.
    pub dimensions: Vec<String>,
    /// Number of samples in the capture.
    pub samples: u64,
    /// Number of rows in the capture.
    pub rows: u64,
    /// Number of epochs in the capture.
    pub epochs: usize,
    /// Number of bytes that were read from the file.
    pub bytes: u64,
    /// Ledger and verdict of each event.
    pub trust: Trust,
}

documents! {
    ImportedView: "import" 1 "import --json",
}

/// Returns the summary of an import.
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
