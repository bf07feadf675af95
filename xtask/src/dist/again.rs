//! `cargo xtask dist --again`: whether a release is what its commit makes, wherever it is built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::packages;
use super::release::Release;
use crate::{checkout, process};

/// Makes the same commit once more, in a clone that shares nothing with this checkout, and compares
/// the checksums with those of the files in `made`.
pub fn compare(release: &Release, target: &str, made: &Path) -> Result<()> {
    ensure!(
        !release.is_modified(),
        "only a commit can be built again, and tracked files differ from {}; `git commit` or `git stash` them",
        release.commit
    );
    let clone = checkout::target().join("packages/again");
    if clone.exists() {
        fs::remove_dir_all(&clone).with_context(|| format!("cannot remove {}", clone.display()))?;
    }
    process::run(Command::new("git").args(["clone", "--quiet"]).arg(checkout::root()).arg(&clone))?;
    // The branch may have moved while the release was built.
    let mut detach = Command::new("git");
    detach.arg("-C").arg(&clone).args(["checkout", "--quiet", "--detach", &release.commit]);
    process::run(&mut detach)?;
    let mut cargo = process::cargo();
    cargo.args(["xtask", "dist", "--target", target]).current_dir(&clone);
    // The clone has a target folder of its own, below it.
    process::run(cargo.env_remove("CARGO_TARGET_DIR"))?;
    packages::same(made, &clone.join("target/packages").join(&release.version))?;
    println!("the same bytes, built in {} and in {}", checkout::root().display(), clone.display());
    fs::remove_dir_all(&clone).with_context(|| format!("cannot remove {}", clone.display()))
}
