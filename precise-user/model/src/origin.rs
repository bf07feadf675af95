//! The origin of an imported capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The origin of an imported capture.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The name of the file format: `perf.data`.
    pub format: String,
    /// The program that recorded the file: `perf 6.12.0`.
    pub recorder: String,
    /// The command line of the recorder; empty if the file does not have it.
    pub command: Vec<String>,
    /// The CPU's vendor, family, model and stepping as perf writes them: `GenuineIntel,6,85,4`.
    pub cpuid: String,
}
