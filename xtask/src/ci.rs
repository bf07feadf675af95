//! `cargo xtask ci`: runs everything that `test` runs, but does not allow required steps to be
//! skipped.

use anyhow::Result;

use crate::test;

/// Run all checks as CI does: a required step that is skipped is a failure
#[derive(clap::Args)]
pub struct CiArgs {}

/// Runs the task. Returns false if a check failed; the report has already shown which one.
pub fn run(_args: &CiArgs) -> Result<bool> {
    test::run_all(test::TestMode::Ci)
}
