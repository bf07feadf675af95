//! The table of exit codes, as a JSON document.

use crate::error::ExitClass;
use schemars::JsonSchema;
use serde::Serialize;

/// The table of exit codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExitCodes {
    /// All exit codes, in ascending order.
    pub codes: Vec<ExitCode>,
}

/// One exit code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExitCode {
    /// The exit code.
    pub code: u8,
    /// Meaning of the code, in one line.
    pub meaning: &'static str,
}

impl ExitCodes {
    /// Returns all exit codes: success, and one code for each class of failure.
    pub fn all() -> Self {
        let mut codes = vec![ExitCode { code: 0, meaning: "success" }];
        codes.extend(
            ExitClass::ALL.into_iter().map(|class| ExitCode { code: class.code(), meaning: class.meaning() }),
        );
        Self { codes }
    }
}
