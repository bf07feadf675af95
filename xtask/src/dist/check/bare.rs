//! The image: unpacked by another program, and run in a root that has no library at all. What runs
//! there also runs on Alpine (musl) and on distributions with an old glibc.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Packages;
use crate::dist::contents::PROGRAM;
use crate::process;

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let layout = packages.folder.join("layout");
    fs::create_dir_all(&layout).with_context(|| format!("cannot create {}", layout.display()))?;
    process::output(Command::new("tar").arg("-xf").arg(packages.file("-oci.tar")?).arg("-C").arg(&layout))?;
    let image = format!("{}:{}", layout.display(), packages.release.version);
    let bundle = packages.folder.join("bundle");
    process::output(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle))?;

    let said = process::output(
        Command::new("chroot").arg(bundle.join("rootfs")).args([&format!("/{PROGRAM}"), "--version"]),
    )?;
    ensure!(
        said.contains(&packages.release.commit) && said.contains("C library: linked in"),
        "the binary of the image says something else about itself: {said}"
    );
    Ok(())
}
