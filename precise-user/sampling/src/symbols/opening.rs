//! Opens files by paths that others chose.
//!
//! Only regular files are opened, and never anything else on the way: opening a device can have
//! effects, and opening a pipe can take forever. So a path is first looked up without opening
//! (`O_PATH`), and what it is decides.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// Opens a regular file for reading.
///
/// # Errors
///
/// Returns an error if there is no file, or if it is not a regular one.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    reopened(&File::from(found))
}

/// Opens the regular file that `path` names for a process whose root is `root`. No symbolic link
/// leads out of it.
///
/// # Errors
///
/// As [`open_regular`].
pub fn open_in_root(root: &Path, path: &Path) -> io::Result<File> {
    open_from(root, path, ResolveFlags::IN_ROOT)
}

/// Opens the regular file `path` below the folder `folder`. Neither `..` nor a symbolic link leads
/// out of it.
///
/// # Errors
///
/// As [`open_regular`].
pub fn open_beneath(folder: &Path, path: &Path) -> io::Result<File> {
    open_from(folder, path.strip_prefix("/").unwrap_or(path), ResolveFlags::BENEATH)
}

/// A folder that stays the same one, whatever its path names later.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no folder at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = File::from(open_folder(path)?);
        let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
        Ok(Self { handle, path })
    }

    /// Returns the absolute path of the folder when it was opened, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the regular file at a relative path, as [`open_beneath`] does.
    ///
    /// # Errors
    ///
    /// As [`open_regular`].
    pub fn file(&self, path: &Path) -> io::Result<File> {
        open_at(&self.handle, path, ResolveFlags::BENEATH)
    }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn open_from(folder: &Path, path: &Path, resolve: ResolveFlags) -> io::Result<File> {
    open_at(open_folder(folder)?, path, resolve)
}

fn open_at(folder: impl AsFd, path: &Path, resolve: ResolveFlags) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = loop {
        match openat2(&folder, path, flags, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS) {
            // A rename elsewhere on the machine can make the kernel unsure whether `..` stays
            // within the folder (openat2(2)).
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    reopened(&File::from(found))
}

/// Opens for reading what was only looked up.
fn reopened(found: &File) -> io::Result<File> {
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(File::from(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let inside = dir.path().join("debug");
        std::fs::create_dir(&inside).expect("a folder");
        std::fs::write(inside.join("file"), "x").expect("written");
        std::fs::write(dir.path().join("secret"), "x").expect("written");
        symlink("../secret", inside.join("out")).expect("a link");
        symlink("file", inside.join("in")).expect("a link");
        symlink("/secret", inside.join("absolute")).expect("a link");
        let fifo = std::process::Command::new("mkfifo").arg(inside.join("fifo")).status();
        assert!(fifo.expect("mkfifo runs").success());

        let beneath = |path: &str| open_beneath(&inside, Path::new(path)).is_ok();
        assert!(beneath("file") && beneath("/file") && beneath("in"));
        for path in ["out", "absolute", "../secret", "../debug/../secret", "fifo", ".", "/dev/null", "no"] {
            assert!(!beneath(path), "{path}");
        }
        assert!(open_in_root(dir.path(), Path::new("/debug/absolute")).is_ok());
        assert!(open_in_root(&inside, Path::new("/../file")).is_ok());
        for path in [Path::new("/dev/null"), &inside, &inside.join("fifo"), Path::new("/nonexistent")] {
            assert!(open_regular(path).is_err(), "{path:?}");
        }
        assert!(open_regular(&inside.join("out")).is_ok());
    }
}
