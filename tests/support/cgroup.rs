//! Cgroups of the v2 hierarchy that go when the test ends.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

/// A cgroup of this test. Removed when dropped: drop the inner one of two first.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    /// Path from the root of the hierarchy, as precise prints it.
    pub path: String,
}

impl Cgroup {
    /// Makes a cgroup at the top of the hierarchy. Its name has the id of this process, so that no
    /// other run has the same.
    ///
    /// # Errors
    ///
    /// When no v2 hierarchy is mounted, or cgroups cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        let name = format!("precise-{}-{name}", std::process::id());
        Self::make(mount_point()?.join(&name), format!("/{name}"))
    }

    /// Makes a cgroup below this one.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn child(&self, name: &str) -> Result<Self> {
        Self::make(self.folder.join(name), format!("{}/{name}", self.path))
    }

    fn make(folder: PathBuf, path: String) -> Result<Self> {
        std::fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { folder, path })
    }

    /// Runs a program in it, to its end.
    ///
    /// # Errors
    ///
    /// When it does not end with 0.
    pub fn run<A: AsRef<OsStr>>(&self, program: &Path, arguments: impl IntoIterator<Item = A>) -> Result<()> {
        let status = Command::new("sh")
            .args(["-c", "echo 0 > \"$0\" && exec \"$@\""])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .status()?;
        ensure!(status.success(), "{} in {}: {status}", program.display(), self.path);
        Ok(())
    }

    /// Removes it now.
    ///
    /// # Errors
    ///
    /// When something is still in it.
    pub fn remove(self) -> Result<()> {
        remove(&self.folder).with_context(|| format!("{} cannot be removed", self.path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The test has said already what went wrong.
        let _left = remove(&self.folder);
    }
}

/// A process that was waited for can stay in its cgroup for a moment.
fn remove(folder: &Path) -> std::io::Result<()> {
    let begin = Instant::now();
    loop {
        match std::fs::remove_dir(folder) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < Duration::from_secs(5) =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
}

fn mount_point() -> Result<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    mounts
        .lines()
        .find(|line| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("cgroup2 ")))
        .and_then(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .context("no cgroup v2 hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup/unified")
}
