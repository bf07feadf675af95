//! The Debian package, made by dpkg-deb.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::binary::Binary;
use super::contents::{self, CONFIGURATION, Zsh};
use super::release::Release;
use super::template::fill;
use crate::process;

/// Scripts that dpkg runs. They start nothing that did not run before.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Makes the package in `folder` and returns its name.
pub fn make(release: &Release, binary: &Binary, work: &Path, folder: &Path) -> Result<String> {
    let tree = contents::stage(release, binary, Zsh::Vendor, work.join("deb"))?;
    let kib = process::output(Command::new("du").args(["-sk", "--apparent-size"]).arg(tree.root()))?;
    let kib = kib.split_whitespace().next().context("du prints no size")?;
    let architecture = binary.architecture()?.debian;
    let control = fill(
        "packaging/deb/control",
        &[("VERSION", &release.version), ("ARCHITECTURE", architecture), ("KIB", kib)],
    )?;
    tree.write("DEBIAN/control", 0o644, control.as_bytes())?;
    tree.write("DEBIAN/conffiles", 0o644, format!("/{CONFIGURATION}\n").as_bytes())?;
    for script in SCRIPTS {
        let text = fill(&format!("packaging/deb/{script}"), &[])?;
        tree.write(&format!("DEBIAN/{script}"), 0o755, text.as_bytes())?;
    }
    tree.settle()?;
    let name = format!("precise_{}_{architecture}.deb", release.version);
    // xz: dpkg of Debian 11 does not read zstd.
    process::output(
        Command::new("dpkg-deb")
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(tree.root())
            .arg(folder.join(&name)),
    )?;
    Ok(name)
}
