//! The package for Fedora, RHEL and SUSE, made by rpmbuild.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::binary::Binary;
use super::contents::{self, CONFIGURATION, Zsh};
use super::release::Release;
use super::template::fill;
use crate::process;

/// Makes the package in `folder` and returns its name.
pub fn make(release: &Release, binary: &Binary, work: &Path, folder: &Path) -> Result<String> {
    let tree = contents::stage(release, binary, Zsh::Site, work.join("rpm"))?;
    tree.settle()?;
    let files: Vec<String> = tree.files()?.iter().map(|file| line(file)).collect();
    let architecture = binary.architecture()?.rpm;
    let spec = fill(
        "packaging/rpm/precise.spec",
        &[
            ("VERSION", &release.version),
            ("ARCHITECTURE", architecture),
            ("TREE", &tree.root().display().to_string()),
            ("FILES", &files.join("\n")),
        ],
    )?;
    let file = work.join("precise.spec");
    fs::write(&file, spec).with_context(|| format!("cannot write {}", file.display()))?;
    process::output(
        Command::new("rpmbuild")
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
            .args(["-bb", "--define"])
            .arg(format!("_topdir {}", work.join("rpmbuild").display()))
            .arg("--define")
            .arg(format!("_rpmdir {}", folder.display()))
            .args(["--define", "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"])
            .arg(&file),
    )?;
    Ok(format!("precise-{}-1.{architecture}.rpm", release.version))
}

/// Returns the line of %files for a file.
fn line(file: &str) -> String {
    let kind = match file {
        CONFIGURATION => "%config(noreplace) ",
        _ if file.starts_with("usr/share/doc/") => "%doc ",
        _ => "",
    };
    format!("{kind}/{file}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_configuration_survives_an_upgrade() {
        assert_eq!(super::line("etc/precise/serve.toml"), "%config(noreplace) /etc/precise/serve.toml");
        assert_eq!(super::line("usr/share/doc/precise/README.md"), "%doc /usr/share/doc/precise/README.md");
        assert_eq!(super::line("usr/bin/precise"), "/usr/bin/precise");
    }
}
