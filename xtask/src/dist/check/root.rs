//! A root that has a shell and nothing else, and what docs/install.md says about a machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{checkout, process};

/// The shell of Debian's busybox-static, with tar, sed and the other programs of a small system.
const SHELL: &str = "/bin/busybox";
/// The page whose commands the roots run.
const PAGE: &str = "docs/install.md";
/// How long it may take from the installation to the first answer.
const FIRST: Duration = Duration::from_secs(60);
/// Shows the kernel to the root in which it then runs a script. Nothing of it stays mounted.
const ENTER: &str = r#"
for system in proc sys dev; do mkdir -p "$1/$system"; mount --rbind "/$system" "$1/$system"; done
exec chroot "$1" /bin/sh -euc "cd /tmp; $2"
"#;

/// A root of busybox.
pub struct BareRoot(PathBuf);

impl BareRoot {
    /// Makes it in a folder that does not exist yet.
    pub fn make(folder: PathBuf) -> Result<Self> {
        for inside in ["bin", "tmp"] {
            let inside = folder.join(inside);
            fs::create_dir_all(&inside).with_context(|| format!("cannot create {}", inside.display()))?;
        }
        let shell = folder.join("bin/busybox");
        fs::copy(SHELL, &shell)
            .with_context(|| format!("cannot copy {SHELL}; `cargo xtask setup` installs it"))?;
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))?;
        let mut install = Command::new("chroot");
        process::output(install.arg(&folder).args([SHELL, "--install", "-s", "/bin"]))?;
        Ok(Self(folder))
    }

    /// Returns its path on this machine.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a script in its folder /tmp, and returns what it printed.
    pub fn run(&self, script: &str) -> Result<String> {
        let mut enter = Command::new("unshare");
        enter.args(["--mount", "sh", "-euc", ENTER, "sh"]).arg(&self.0).arg(script);
        process::output(enter.env("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"))
    }

    /// Checks that the first answer comes in time after an installation that began at `start`.
    pub fn answers(&self, start: Instant) -> Result<()> {
        let said = self.run(&first_answer()?)?;
        let took = start.elapsed();
        ensure!(said.contains("cpu-clock") || said.contains("cycles"), "the first answer is {said:?}");
        ensure!(took < FIRST, "from the installation to the first answer it took {took:?}");
        Ok(())
    }

    /// Returns the files whose path names precise, except databases of packages.
    pub fn left(&self) -> Result<Vec<PathBuf>> {
        let mut find = Command::new("find");
        find.arg(&self.0).args(["-type", "f"]);
        let found = process::output(&mut find)?;
        let below = |path: &&Path| path.strip_prefix(&self.0).is_ok_and(names_precise);
        Ok(found.lines().map(Path::new).filter(below).map(Path::to_owned).collect())
    }
}

fn names_precise(path: &Path) -> bool {
    path.to_string_lossy().contains("precise") && !path.ends_with("rpmdb.sqlite")
}

/// Returns the commands of the page that lead to the first answer.
pub fn first_answer() -> Result<String> {
    documented("\nprecise record ", "\n")
}

/// Returns a command of the page, from its first words to what follows it.
pub fn documented(begin: &str, end: &str) -> Result<String> {
    let page =
        fs::read_to_string(checkout::root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let (_, rest) = page.split_once(begin).with_context(|| format!("{PAGE} has no {begin:?}"))?;
    let (command, _) = rest.split_once(end).with_context(|| format!("{begin:?} has no end in {PAGE}"))?;
    // In a table, a pipe is escaped.
    Ok(format!("{}{command}", begin.trim_start_matches(['\n', '`'])).replace(r"\|", "|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_page() {
        assert_eq!(first_answer().unwrap(), "precise record -a --duration 5s && precise explain");
        let removed = documented("`tar -tzf ", "`").unwrap();
        assert!(removed.contains(".tar.gz | sed ") && !removed.contains('`'), "{removed}");
        assert!(documented("no such command", "\n").is_err());
    }
}
