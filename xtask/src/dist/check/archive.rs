//! The archive for any other Linux: with the commands of docs/install.md, in a root of busybox, as
//! Alpine is one. It has no glibc, no package manager and no systemd.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Packages;
use super::root::{BareRoot, documented};

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let root = BareRoot::make(packages.folder.join("busybox"))?;
    let archive = packages.file("-linux.tar.gz")?;
    let name = archive.file_name().context("the archive has no name")?;
    fs::copy(&archive, root.path().join("tmp").join(name)).context("cannot copy the archive")?;

    let (install, start) = (documented("\ntar -C /usr/local ", "\n")?, Instant::now());
    root.run(&format!("mkdir -p /usr/local; {install}"))?;
    let said = root.run("precise --version")?;
    ensure!(said.contains(&packages.release.commit), "the installed binary says {said}");
    root.answers(start)?;

    // An upgrade is the same command, over what is there.
    root.run(&install)?;
    root.run("precise list >list")?;

    root.run(&documented("`tar -tzf ", "`")?)?;
    root.run("rm *.tar.gz precise.parquet")?;
    let left = root.left()?;
    ensure!(left.is_empty(), "the removal left {left:?}");
    Ok(())
}
