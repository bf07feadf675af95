//! What is packaged: version and commit, and the one time that all files get.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{checkout, process};

/// What follows a commit that is not what was built.
const MODIFIED: &str = "-modified";

/// The state of the checkout that packages are made of.
#[derive(Clone, Debug)]
pub struct Release {
    /// The version of the workspace.
    pub version: String,
    /// The commit, and `-modified` if tracked files differ from it.
    pub commit: String,
    /// The day of the commit, as 2026-11-24.
    pub date: String,
    /// The time of the commit, in seconds since 1970. No file of a package is newer.
    pub epoch: u64,
    /// How hard archives are compressed: 6 for a release, 1 where nobody keeps them.
    pub level: u32,
}

impl Release {
    /// Reads the checkout.
    pub fn of_checkout() -> Result<Self> {
        let said = git(&["log", "-1", "--format=%h %cs %ct", "--abbrev=12"])?;
        let mut words = said.split_whitespace();
        let mut word = || words.next().map(str::to_owned).context("git log does not tell the commit");
        let (mut commit, date, epoch) = (word()?, word()?, word()?);
        if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
            commit += MODIFIED;
        }
        let epoch = epoch.parse().with_context(|| format!("git log gives {epoch} as a time in seconds"))?;
        // xtask has the version of the workspace, like every crate of it.
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), commit, date, epoch, level: 6 })
    }

    /// Returns whether tracked files differ from the commit.
    pub fn is_modified(&self) -> bool {
        self.commit.ends_with(MODIFIED)
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    process::output(Command::new("git").current_dir(checkout::root()).args(arguments))
        .context("packages are made of a commit, and git does not tell which one is checked out")
}
