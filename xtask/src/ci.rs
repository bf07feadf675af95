//! `cargo xtask ci`: everything that `test` does, where a required step may not be skipped.

use anyhow::Result;

use crate::test;

/// Run all checks as CI does: a required step that is skipped is a failure
#[derive(clap::Args)]
pub struct CiArgs {}

/// Runs the task. False: a check failed, and the report has said which.
pub fn run(_args: &CiArgs) -> Result<bool> {
    test::run_all(test::Mode::Ci)
}
