//! The unit, judged by systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{checkout, process};

/// The highest exposure, in tenths, as systemd counts it: 0 is confined, 100 is not at all.
const MOST_EXPOSED: u32 = 20;

/// Runs the check.
pub fn check(folder: &Path) -> Result<()> {
    let unit = folder.join("precise.service");
    fs::copy(checkout::root().join("packaging/systemd/precise.service"), &unit)
        .with_context(|| format!("cannot write {}", unit.display()))?;
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager"]).arg(format!("--threshold={MOST_EXPOSED}"));
    process::output(analyze.arg(&unit)).map(drop)
}
