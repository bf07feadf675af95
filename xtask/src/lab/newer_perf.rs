//! A perf that is newer than that of this machine's Debian: it runs with the libraries of its own
//! Debian, from a folder. Nothing is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::apt::Apt;
use super::sh;

/// Where it comes from, the suite of its libraries first.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];

/// Returns the command, and fetches it (44 MB) below `folder` if it is not there.
pub fn newer_perf(folder: &Path) -> Result<PathBuf> {
    let command = folder.join("perf");
    if command.exists() {
        return Ok(command);
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let apt = Apt::new(folder.join("apt"), &SUITES)?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    for package in apt.with_dependencies("linux-perf", SUITES[1])? {
        sh::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root))?;
    }
    fs::remove_dir_all(folder.join("apt"))?;
    let (root, libraries) = (root.display(), root.join("usr/lib/x86_64-linux-gnu"));
    let script = format!(
        "#!/bin/sh\nexec '{root}/usr/lib64/ld-linux-x86-64.so.2' --library-path '{}' '{root}/usr/bin/perf' \"$@\"\n",
        libraries.display()
    );
    let made = folder.join("perf.partial");
    fs::write(&made, script)?;
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755))?;
    fs::rename(made, &command)?;
    Ok(command)
}
