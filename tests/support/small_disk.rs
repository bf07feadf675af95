//! A file system that is soon full.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// A small file system in memory, which is unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system of this size, such as `256k`.
    ///
    /// # Errors
    ///
    /// Returns an error if none can be mounted.
    pub fn new(size: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(folder.path())
            .status()?;
        ensure!(mounted.success(), "no tmpfs can be mounted");
        Ok(Self(folder))
    }

    /// Returns where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The test has already reported what went wrong.
        let _left = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
