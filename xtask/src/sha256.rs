//! SHA-256 of files, by coreutils: no dependency for a few lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Returns hashes by file name. The names are relative to `root`.
pub fn of_files(root: &Path, files: &[PathBuf]) -> Result<BTreeMap<String, String>> {
    let said = process::output(Command::new("sha256sum").current_dir(root).arg("--").args(files))?;
    Ok(said
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(hash, file)| (file.to_owned(), hash.to_owned()))
        .collect())
}

/// Returns the hash of a file.
pub fn of_file(file: &Path) -> Result<String> {
    let hashes = of_files(Path::new("/"), &[file.to_owned()])?;
    hashes.into_values().next().with_context(|| format!("sha256sum says nothing about {}", file.display()))
}
