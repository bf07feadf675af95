//! The .rpm, by rpm itself, in a root that has a shell and nothing else.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::Packages;
use super::root::BareRoot;
use crate::dist::contents::CONFIGURATION;
use crate::process;

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let root = BareRoot::make(packages.folder.join("redhat"))?;
    let rpm = |arguments: &[&str]| {
        process::output(Command::new("rpm").arg("--root").arg(root.path()).args(arguments))
    };
    rpm(&["--initdb"])?;
    let package = packages.file(".rpm")?.display().to_string();
    let start = Instant::now();
    // Debian's rpm has no database of what provides /bin/sh.
    rpm(&["--install", "--nodeps", &package])?;
    rpm(&["--verify", "--nodeps", "precise"])?;
    let said = root.run("precise --version")?;
    ensure!(said.contains(&packages.release.commit), "the installed binary says {said}");
    root.answers(start)?;

    let settings = root.path().join(CONFIGURATION);
    let changed = fs::read_to_string(&settings)? + "# changed\n";
    fs::write(&settings, &changed)?;
    rpm(&["--upgrade", "--force", "--nodeps", &package])?;
    ensure!(fs::read_to_string(&settings)? == changed, "the upgrade replaced the changed settings");

    root.run("precise list >list")?;

    rpm(&["--erase", "precise"])?;
    root.run("rm precise.parquet")?;
    let left = root.left()?;
    ensure!(left == [settings.with_extension("toml.rpmsave")], "the removal left {left:?}");
    Ok(())
}
