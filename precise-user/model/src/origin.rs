//! The origin of an imported capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dimension;

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
    /// The path of the file as the import was given it, `-` for the standard input; empty if it is
    /// not known (older captures).
    #[serde(default)]
    pub file: String,
    /// The dimensions that the samples of the file have, whether or not the capture is grouped by
    /// them; empty if they are not known (older captures).
    #[serde(default)]
    pub dimensions: Vec<Dimension>,
}
