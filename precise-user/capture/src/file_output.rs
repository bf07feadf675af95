//! Writes a capture to its target either completely or not at all.
//!
//! A file is written without a name in the directory of its target (mode 0600), synced, and only
//! then moved to the target's name, never through a link. A failure before that leaves the target
//! unchanged and no other file behind. The file of a long run is the exception: from its first
//! checkpoint on it has the name of a partial file, which stays after a failure. The file of root
//! belongs to the user who called sudo (see `owner`). A target that is a
//! device or a pipe is written to directly, because there is nothing to replace. A symbolic link to
//! a file is replaced, not followed. A link or a pipe in a folder that everybody may write to
//! (`/tmp`) must belong to this user or to the folder's owner. Otherwise it is refused, because
//! another user may have created it to receive the data (the rule of `fs.protected_symlinks` and
//! `fs.protected_fifos`, Documentation/admin-guide/sysctl/fs.rst, applied whatever their setting
//! is).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt as _, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::group_file::ReadBack;
use super::temporary::{Temporary, keep_old, old_name};

/// Bytes that a writer adds to, and that are taken at the end.
#[derive(Clone, Default)]
pub(super) struct MemoryOutput(Arc<Mutex<Vec<u8>>>);

impl MemoryOutput {
    /// Takes the bytes that were written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output: a file that appears only when it is complete, or a stream.
pub struct FileOutput {
    sink: Sink,
    /// Whether a file that is replaced is kept under another name.
    keeps_old: bool,
}

enum Sink {
    File { file: BufWriter<File>, temporary: Temporary, target: PathBuf },
    Stream(Box<dyn Write + Send>),
}

impl FileOutput {
    /// Opens `path`; `-` is the standard output.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::stream(Box::new(io::stdout())));
        }
        if let Ok(metadata) = fs::metadata(path) {
            let kind = metadata.file_type();
            if kind.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file"));
            }
            if kind.is_char_device() || kind.is_fifo() {
                refuse_planted(path)?;
                let file = OpenOptions::new().write(true).custom_flags(libc::O_CLOEXEC).open(path)?;
                let opened = file.metadata()?;
                if (opened.dev(), opened.ino()) != (metadata.dev(), metadata.ino()) {
                    return Err(io::Error::other(
                        "another process replaced it while it was being opened; try again",
                    ));
                }
                return Ok(Self::stream(Box::new(file)));
            }
            if !kind.is_file() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it is not a regular file or a pipe",
                ));
            }
        }
        let (file, temporary) = Temporary::create(folder_of(path))?;
        let sink = Sink::File { file: BufWriter::new(file), temporary, target: path.to_owned() };
        Ok(Self { sink, keeps_old: false })
    }

    /// Writes to `stream`. Bytes that were written remain there if the writer fails later.
    pub fn stream(stream: Box<dyn Write + Send>) -> Self {
        Self { sink: Sink::Stream(stream), keeps_old: false }
    }

    /// Keeps the file that [`Self::commit`] replaces, as the target's name with `.old`. An older
    /// file of that name is replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder has that name.
    pub fn keep_old(&mut self) -> io::Result<()> {
        if let Sink::File { target, .. } = &self.sink
            && old_name(target).is_dir()
        {
            let old = old_name(target);
            let what = format!("the file that it replaces cannot be kept: {} is a folder", old.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, what));
        }
        self.keeps_old = true;
        Ok(())
    }

    /// Makes the written data durable, and visible in a partial file beside the target. Does
    /// nothing for a stream.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        if let Sink::File { file, temporary, target } = &mut self.sink {
            file.flush()?;
            file.get_ref().sync_data()?;
            temporary.show(file.get_ref(), target)?;
        }
        Ok(())
    }

    /// Returns whether the target is a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream(_))
    }

    /// Returns the partial file, if there is one.
    pub fn partial(&self) -> Option<&Path> {
        match &self.sink {
            Sink::File { temporary, .. } => temporary.partial(),
            Sink::Stream(_) => None,
        }
    }

    /// Makes the written data durable and gives the file its name. Returns the name of the file
    /// that it has replaced, if that was kept.
    pub fn commit(self) -> io::Result<Option<PathBuf>> {
        match self.sink {
            Sink::File { mut file, temporary, target } => {
                file.flush()?;
                file.get_ref().sync_all()?;
                let old = if self.keeps_old { keep_old(&target, folder_of(&target))? } else { None };
                temporary.name(file.get_ref(), &target)?;
                // The data is durable and has its name. If the directory cannot be synced (some
                // network file systems), a power cut may bring the old file back.
                if let Ok(directory) = File::open(folder_of(&target)) {
                    let _ = directory.sync_all();
                }
                Ok(old)
            }
            Sink::Stream(mut stream) => stream.flush().map(|()| None),
        }
    }
}

impl ReadBack for FileOutput {
    fn read_back(&self, position: u64, length: usize) -> io::Result<Vec<u8>> {
        let Sink::File { file, .. } = &self.sink else {
            return Err(io::Error::other("what was written to a stream cannot be read"));
        };
        let mut bytes = vec![0; length];
        file.get_ref().read_exact_at(&mut bytes, position)?;
        Ok(bytes)
    }
}

impl Write for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::File { file, .. } => file.write(bytes),
            Sink::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::File { file, .. } => file.flush(),
            Sink::Stream(stream) => stream.flush(),
        }
    }
}

/// Returns the folder that contains a path.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Fails if `path` is a link or a pipe that another user created in a folder that everybody may
/// write to.
fn refuse_planted(path: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let (folder, entry) = (fs::metadata(folder_of(path))?, fs::symlink_metadata(path)?);
    let shared = folder.mode() & STICKY != 0 && folder.mode() & OTHERS_WRITE != 0;
    let kind = entry.file_type();
    // SAFETY: always succeeds, and has no preconditions.
    let us = unsafe { libc::geteuid() };
    if shared && (kind.is_symlink() || kind.is_fifo()) && entry.uid() != us && entry.uid() != folder.uid() {
        let what = if kind.is_symlink() { "a link" } else { "a pipe" };
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it is {what} that another user (uid {}) created in a world-writable folder; write to \
                 another folder",
                entry.uid()
            ),
        ));
    }
    Ok(())
}

/// Writes `bytes` to `path` (`-`: standard output) completely, or not at all. The file's mode is
/// 0600.
///
/// # Errors
///
/// Returns the error of the file system. The target is then unchanged.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut output = FileOutput::create(path)?;
    output.write_all(bytes)?;
    output.commit().map(|_| ())
}

/// Writes `bytes` to `path` completely, unless there is a file of that name. Returns whether there
/// was none. The file's mode is 0600.
///
/// # Errors
///
/// Returns the error of the file system. No file of that name is left then.
pub fn create_whole(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let (mut file, temporary) = Temporary::create(folder_of(path))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let named = temporary.name_new(&file, path)?;
    // As for `commit`: a file system that cannot sync folders keeps the name most of the time.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(named)
}
