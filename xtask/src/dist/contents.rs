//! What an installed precise consists of: one list for all packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::binary::Binary;
use super::release::Release;
use super::tree::StagedTree;
use crate::checkout;

/// The configuration file, which belongs to the administrator once it is installed.
pub const CONFIGURATION: &str = "etc/precise/serve.toml";
/// The unit, which is installed and not started: a profiler samples only when somebody asks for it.
pub const UNIT: &str = "usr/lib/systemd/system/precise.service";
/// The program.
pub const PROGRAM: &str = "usr/bin/precise";

/// Where a distribution looks for completions of zsh; all other folders are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zsh {
    /// Debian and Ubuntu.
    Vendor,
    /// Fedora, SUSE, and programs below /usr/local.
    Site,
}

impl Zsh {
    const fn folder(self) -> &'static str {
        match self {
            Self::Vendor => "usr/share/zsh/vendor-completions",
            Self::Site => "usr/share/zsh/site-functions",
        }
    }
}

/// Files that are installed as they are: from the checkout, to the package.
const FILES: &[(&str, &str)] = &[
    ("packaging/serve.toml", CONFIGURATION),
    ("packaging/systemd/precise.service", UNIT),
    ("docs/completions/precise.bash", "usr/share/bash-completion/completions/precise"),
    ("docs/completions/precise.fish", "usr/share/fish/vendor_completions.d/precise.fish"),
    ("packaging/prometheus/precise.rules.yml", "usr/share/precise/precise.rules.yml"),
    ("packaging/grafana/precise.json", "usr/share/precise/precise.dashboard.json"),
    ("README.md", "usr/share/doc/precise/README.md"),
    ("LICENSE-MIT", "usr/share/doc/precise/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/precise/LICENSE-APACHE"),
];

/// Folders from which every file is installed: from the checkout, suffix, to the package.
const DOCUMENTS: (&str, &str, &str) = ("docs", "md", "usr/share/doc/precise/docs");
const MANUAL: (&str, &str, &str) = ("docs/man", "1", "usr/share/man/man1");

/// Puts everything that is installed into a folder, as it is installed.
pub fn stage(release: &Release, binary: &Binary, zsh: Zsh, folder: PathBuf) -> Result<StagedTree> {
    let root = checkout::root();
    let tree = StagedTree::create(folder, release)?;
    tree.copy(PROGRAM, 0o755, &binary.stripped)?;
    for (from, to) in FILES {
        tree.copy(to, 0o644, &root.join(from))?;
    }
    tree.copy(&format!("{}/_precise", zsh.folder()), 0o644, &root.join("docs/completions/precise.zsh"))?;
    let (from, suffix, to) = DOCUMENTS;
    for (name, file) in listed(&root.join(from), suffix)? {
        tree.copy(&format!("{to}/{name}"), 0o644, &file)?;
    }
    let (from, suffix, to) = MANUAL;
    for (name, file) in listed(&root.join(from), suffix)? {
        tree.compress(&format!("{to}/{name}.gz"), 0o644, &file)?;
    }
    let changes = root.join("CHANGELOG.md");
    tree.compress("usr/share/doc/precise/changelog.gz", 0o644, &changes)?;
    Ok(tree)
}

/// Puts what an image needs into a folder: the program, its configuration and its licences.
pub fn stage_image(release: &Release, binary: &Binary, folder: PathBuf) -> Result<StagedTree> {
    let tree = StagedTree::create(folder, release)?;
    tree.copy(PROGRAM, 0o755, &binary.stripped)?;
    for (from, to) in FILES {
        if *to == CONFIGURATION || from.starts_with("LICENSE") {
            tree.copy(to, 0o644, &checkout::root().join(from))?;
        }
    }
    Ok(tree)
}

/// Returns the files of a folder with this suffix, with their names.
fn listed(folder: &Path, suffix: &str) -> Result<Vec<(String, PathBuf)>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == suffix) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, path));
        }
    }
    Ok(files)
}
