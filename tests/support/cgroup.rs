//! Cgroups of the v2 hierarchy that are removed when the test ends.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

/// A cgroup of this test, which is removed when it is dropped. Drop a nested cgroup first.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    /// The path from the root of the hierarchy, as precise prints it.
    pub path: String,
}

impl Cgroup {
    /// Creates a cgroup at the top of the hierarchy. Its name has the id of this process, so that
    /// no other run uses the same name.
    ///
    /// # Errors
    ///
    /// Returns an error if no v2 hierarchy is mounted, or if cgroups cannot be created.
    pub fn new(name: &str) -> Result<Self> {
        let name = format!("precise-{}-{name}", std::process::id());
        Self::make(mount_point()?.join(&name), format!("/{name}"))
    }

    /// Creates a cgroup below this one.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be created.
    pub fn child(&self, name: &str) -> Result<Self> {
        Self::make(self.folder.join(name), format!("{}/{name}", self.path))
    }

    fn make(folder: PathBuf, path: String) -> Result<Self> {
        std::fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { folder, path })
    }

    /// Returns the folder of the cgroup.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a program in the cgroup, to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the program does not exit with 0.
    pub fn run<A: AsRef<OsStr>>(&self, program: &Path, arguments: impl IntoIterator<Item = A>) -> Result<()> {
        let status = self.command(program).args(arguments).status()?;
        ensure!(status.success(), "{} in {}: {status}", program.display(), self.path);
        Ok(())
    }

    /// Returns the command that runs a program in the cgroup; arguments of the program may follow.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 0 > \"$0\" && exec \"$@\""]);
        command.arg(self.folder.join("cgroup.procs")).arg(program).stdin(Stdio::null());
        command
    }

    /// Kills all processes of the cgroup.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel refuses.
    pub fn kill(&self) -> Result<()> {
        let file = self.folder.join("cgroup.kill");
        std::fs::write(&file, "1").with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Removes the cgroup now.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not empty.
    pub fn remove(self) -> Result<()> {
        remove(&self.folder).with_context(|| format!("{} cannot be removed", self.path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The test has already reported what went wrong.
        let _left = remove(&self.folder);
    }
}

/// Removes a cgroup. Retries, because a process that was waited for may stay in its cgroup for a
/// moment.
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

/// Returns where the v2 hierarchy is mounted.
///
/// # Errors
///
/// Returns an error if it is not mounted.
pub fn mount_point() -> Result<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    mounts
        .lines()
        .find(|line| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("cgroup2 ")))
        .and_then(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .context("no cgroup v2 hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup/unified")
}
