//! Where a capture is written: all of it, or nothing.
//!
//! A file is written under a temporary name in the directory of its target (mode 0600, never through a link),
//! synced, and renamed over the target. Whatever happens before the rename leaves the target as it was. A
//! target that is a device or a pipe is written to directly: there is nothing to replace. A symbolic link to
//! a file is replaced, not followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tries to find a free temporary name.
const ATTEMPTS: u32 = 64;

/// A file that appears only when it is complete, or a stream.
pub(crate) struct Output {
    sink: Sink,
}

enum Sink {
    File { file: BufWriter<File>, temporary: PathBuf, target: PathBuf },
    Stream(Box<dyn Write + Send>),
    Done,
}

impl Output {
    /// Opens `path`; `-` is the standard output.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::stream(Box::new(io::stdout())));
        }
        if let Ok(metadata) = fs::metadata(path) {
            let kind = metadata.file_type();
            if kind.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
            }
            if kind.is_char_device() || kind.is_fifo() {
                let file = OpenOptions::new().write(true).custom_flags(libc::O_CLOEXEC).open(path)?;
                return Ok(Self::stream(Box::new(file)));
            }
            if !kind.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a pipe"));
            }
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let (file, temporary) = create_temporary(directory)?;
        let sink = Sink::File { file: BufWriter::new(file), temporary, target: path.to_owned() };
        Ok(Self { sink })
    }

    /// Writes to `stream`: nothing is undone there when the writer fails.
    pub(crate) fn stream(stream: Box<dyn Write + Send>) -> Self {
        Self { sink: Sink::Stream(stream) }
    }

    /// Makes what was written durable and gives it its name.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::File { file, temporary, target } => {
                file.flush()?;
                file.get_ref().sync_all()?;
                fs::rename(temporary.as_path(), target.as_path())?;
                let directory = temporary.parent().map(Path::to_owned);
                self.sink = Sink::Done;
                // The data is safe and named; a directory that cannot be synced (some network file systems)
                // only means that a power cut may bring the old name back.
                if let Some(directory) = directory.and_then(|d| File::open(d).ok()) {
                    let _ = directory.sync_all();
                }
                Ok(())
            }
            Sink::Stream(stream) => stream.flush(),
            Sink::Done => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::File { file, .. } => file.write(bytes),
            Sink::Stream(stream) => stream.write(bytes),
            Sink::Done => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::File { file, .. } => file.flush(),
            Sink::Stream(stream) => stream.flush(),
            Sink::Done => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Sink::File { temporary, .. } = &self.sink {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A new file of our own in `directory`, readable by its owner only.
pub(super) fn create_temporary(directory: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".precise-{}-{number}.tmp", std::process::id()));
        let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Writes `bytes` to `path` (`-`: standard output): completely, or not at all. The file's mode is 0600.
///
/// # Errors
///
/// What the file system says; then nothing is there that was not there before.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut output = Output::create(path)?;
    output.write_all(bytes)?;
    output.commit()
}
