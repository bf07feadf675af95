//! The exit codes, as a document.

use crate::error::Class;
use schemars::JsonSchema;
use serde::Serialize;

/// The table of exit codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExitCodes {
    /// Every code, in order.
    pub codes: Vec<ExitCode>,
}

/// One exit code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExitCode {
    /// The code.
    pub code: u8,
    /// What it means, one line.
    pub meaning: &'static str,
}

impl ExitCodes {
    /// All that there are: success, and a code for each class of failure.
    pub fn all() -> Self {
        let mut codes = vec![ExitCode { code: 0, meaning: "success" }];
        codes.extend(
            Class::ALL.into_iter().map(|class| ExitCode { code: class.code(), meaning: class.meaning() }),
        );
        Self { codes }
    }
}
