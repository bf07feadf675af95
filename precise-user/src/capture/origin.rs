//! Where an imported capture comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
