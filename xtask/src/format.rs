//! `cargo xtask fmt`: the source in its format. `cargo fmt` does not see all of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// Formats the source, or with `check` fails if it is not formatted.
pub fn run(check: bool) -> Result<()> {
    let check = check.then_some("--check");
    process::run(process::cargo().args(["fmt", "--all"]).args(check))?;
    // precise-ebpf is a workspace of its own.
    process::run(process::cargo().args(["fmt", "--manifest-path", "precise-ebpf/Cargo.toml"]).args(check))?;
    // The registry's macro declares the folders of views, and cargo fmt does not look into macros.
    process::run(Command::new("rustfmt").args(["--edition", "2024"]).args(check).args(view_folders()?))
}

/// Returns the module file of each folder of views.
fn view_folders() -> Result<Vec<PathBuf>> {
    let folders = fs::read_dir("precise-user/views/src").context("cannot list the folders of views")?;
    let modules = folders.map(|folder| Ok(folder?.path().join("mod.rs")));
    Ok(modules.collect::<Result<Vec<_>>>()?.into_iter().filter(|module| module.exists()).collect())
}
