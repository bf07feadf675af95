//! Where an imported capture comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Meta;

/// Where an imported capture comes from.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The file, as its format is called: `perf.data`.
    pub format: String,
    /// Who wrote it: `perf 6.12.0`.
    pub recorder: String,
    /// The recorder's command line; empty where the file does not say.
    pub command: Vec<String>,
    /// The CPU's vendor, family, model and stepping as perf writes them: `GenuineIntel,6,85,4`.
    pub cpuid: String,
}

/// What was imported. The capture itself is in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Everything of the capture that is not a row.
    pub meta: Meta,
    /// Samples in the rows of each event.
    pub kept: Vec<u64>,
    /// Rows.
    pub rows: u64,
    /// Bytes of the file that were read.
    pub bytes: u64,
}
