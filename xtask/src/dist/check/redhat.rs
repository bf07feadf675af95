//! The .rpm, by rpm itself, in a root that has a shell and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Packages;
use crate::dist::contents::{CONFIGURATION, PROGRAM};
use crate::process;

/// The shell of Debian's busybox-static.
const SHELL: &str = "/bin/busybox";

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let root = root(&packages.folder)?;
    let rpm =
        |arguments: &[&str]| process::output(Command::new("rpm").arg("--root").arg(&root).args(arguments));
    rpm(&["--initdb"])?;
    let package = packages.file(".rpm")?.display().to_string();
    // Debian's rpm has no database of what provides /bin/sh.
    rpm(&["--install", "--nodeps", &package])?;
    rpm(&["--verify", "--nodeps", "precise"])?;
    let said =
        process::output(Command::new("chroot").arg(&root).args([&format!("/{PROGRAM}"), "--version"]))?;
    ensure!(said.contains(&packages.release.commit), "the installed binary says {said}");

    let settings = root.join(CONFIGURATION);
    let changed = fs::read_to_string(&settings)? + "# changed\n";
    fs::write(&settings, &changed)?;
    rpm(&["--upgrade", "--force", "--nodeps", &package])?;
    ensure!(fs::read_to_string(&settings)? == changed, "the upgrade replaced the changed settings");

    rpm(&["--erase", "precise"])?;
    let left = left(&root)?;
    ensure!(left == [settings.with_extension("toml.rpmsave")], "the removal left {left:?}");
    Ok(())
}

fn root(folder: &Path) -> Result<PathBuf> {
    let root = folder.join("redhat");
    fs::create_dir_all(root.join("bin")).with_context(|| format!("cannot create {}", root.display()))?;
    let shell = root.join("bin/sh");
    fs::copy(SHELL, &shell)
        .with_context(|| format!("cannot copy {SHELL}; `cargo xtask setup` installs it"))?;
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))?;
    Ok(root)
}

/// Returns the files of precise that are left below a root.
fn left(root: &Path) -> Result<Vec<PathBuf>> {
    let mut find = Command::new("find");
    find.arg(root).args(["-path", "*precise*", "-type", "f"]);
    Ok(process::output(&mut find)?
        .lines()
        .map(PathBuf::from)
        .filter(|path| !path.ends_with("rpmdb.sqlite"))
        .collect())
}
