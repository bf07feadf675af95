//! A folder of files as they are installed, and archives of it whose bytes depend on nothing else.

use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::release::Release;
use crate::process;

/// A folder in which every file and folder has a fixed mode and the time of the release.
#[derive(Clone, Debug)]
pub struct StagedTree {
    root: PathBuf,
    epoch: u64,
    level: u32,
}

impl StagedTree {
    /// Creates an empty tree; what was in the folder before goes.
    pub fn create(root: PathBuf, release: &Release) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
        }
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self::adopt(root, release))
    }

    /// Takes a folder that exists as a tree.
    pub fn adopt(root: PathBuf, release: &Release) -> Self {
        Self { root, epoch: release.epoch, level: release.level }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Adds a file with this content.
    pub fn write(&self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        let file = self.root.join(path);
        let write = || {
            fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
            fs::write(&file, bytes)?;
            fs::set_permissions(&file, Permissions::from_mode(mode))
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    /// Adds a copy of a file.
    pub fn copy(&self, path: &str, mode: u32, from: &Path) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(path, mode, &bytes)
    }

    /// Adds a compressed copy of a file, as manual pages are installed.
    pub fn compress(&self, path: &str, mode: u32, from: &Path) -> Result<()> {
        // Without -n, the time and the name of the file would be in it.
        let mut gzip = Command::new("gzip");
        gzip.args([&format!("-{}", self.level), "-n", "-c"]).arg(from);
        self.write(path, mode, &process::bytes(&mut gzip)?)
    }

    /// Returns the paths of all files below the root, sorted.
    pub fn files(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        self.walk(&self.root, &mut |path, is_folder| {
            if !is_folder {
                files.push(path.strip_prefix(&self.root)?.to_string_lossy().into_owned());
            }
            Ok(())
        })?;
        files.sort();
        Ok(files)
    }

    /// Gives folders their mode and everything the time of the release. The last call before the
    /// tree is packed.
    pub fn settle(&self) -> Result<()> {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.epoch);
        self.walk(&self.root, &mut |path, is_folder| {
            if is_folder {
                fs::set_permissions(path, Permissions::from_mode(0o755))?;
            }
            fs::File::open(path)?.set_times(FileTimes::new().set_modified(time))?;
            Ok(())
        })
    }

    /// Visits everything, folders after what they hold, because a file that is written changes the
    /// time of its folder.
    fn walk(&self, folder: &Path, visit: &mut dyn FnMut(&Path, bool) -> Result<()>) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                self.walk(&path, visit)?;
            } else {
                visit(&path, false)?;
            }
        }
        visit(folder, true)
    }

    /// Writes a tar archive of the tree, sorted, with owner root. The names in it begin with
    /// `prefix`.
    pub fn tar(&self, file: &Path, prefix: &str) -> Result<()> {
        let mut top: Vec<_> = fs::read_dir(&self.root)?.flatten().map(|entry| entry.file_name()).collect();
        top.sort();
        let mut tar = Command::new("tar");
        tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.epoch))
            .arg(format!("--transform=s,^,{prefix},"))
            .arg("--file")
            .arg(file)
            .arg("--directory")
            .arg(&self.root)
            .args(top);
        process::output(&mut tar).map(drop)
    }

    /// Writes a compressed tar archive. See [`StagedTree::tar`].
    pub fn tar_gz(&self, file: &Path, prefix: &str) -> Result<()> {
        let plain = file.with_extension("part");
        self.tar(&plain, prefix)?;
        let packed =
            process::bytes(Command::new("gzip").args([&format!("-{}", self.level), "-n", "-c"]).arg(&plain))?;
        fs::write(file, packed).with_context(|| format!("cannot write {}", file.display()))?;
        fs::remove_file(&plain).with_context(|| format!("cannot remove {}", plain.display()))
    }
}
