//! The folder of what was fetched, in the layout of elfutils: `BUILD_ID/debuginfo`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The name of a file with debug information.
const NAME: &str = "debuginfo";
/// Files that were not read for this time are removed when another one is fetched: what elfutils'
/// client does.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of folders that are looked at for unused files.
const MAX_FOLDERS: usize = 10_000;

/// A cache. Without a folder, nothing is found in it and nothing is kept.
#[derive(Debug)]
pub(super) struct DebugCache {
    folder: Option<PathBuf>,
}

impl DebugCache {
    pub const fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Returns the file of a build id, in hexadecimal digits; `None` if there is none.
    pub fn find(&self, id: &str) -> Option<File> {
        let path = self.folder.as_ref()?.join(id).join(NAME);
        // The folder may belong to somebody else than this process: opening a pipe would wait, and
        // a link may lead anywhere.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        // elfutils keeps an empty file for what no server has, which may be true no longer.
        let found = file.metadata().ok()?;
        (found.is_file() && found.len() > 0).then_some(file)
    }

    /// Begins a file. It gets its name when it is complete.
    pub fn create(&self, id: &str) -> Result<NewEntry, String> {
        let Some(folder) = &self.folder else {
            let file = precise_capture::temporary();
            let file = file.map_err(|error| format!("cannot make a temporary file: {error}"))?;
            return Ok(NewEntry { file, partial: None, path: PathBuf::new() });
        };
        let cannot = |path: &Path, error: io::Error| {
            format!("cannot write {}: {error}; DEBUGINFOD_CACHE_PATH names another folder", path.display())
        };
        self.remove_unused(folder);
        let own = folder.join(id);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&own)
            .map_err(|error| cannot(&own, error))?;
        // Another client may fetch the same file.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let partial = own.join(format!("{NAME}.{}-{}.partial", std::process::id(), now.as_nanos()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o400).open(&partial);
        let file = file.map_err(|error| cannot(&partial, error))?;
        Ok(NewEntry { file, partial: Some(partial), path: own.join(NAME) })
    }

    /// Removes the file of a build id.
    pub fn remove(&self, id: &str) {
        if let Some(folder) = &self.folder {
            // It may be gone, or belong to somebody else: then it is refused again the next time.
            let _gone = fs::remove_file(folder.join(id).join(NAME));
        }
    }

    /// Removes what was not read for a week. What cannot be removed stays.
    fn remove_unused(&self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().take(MAX_FOLDERS) {
            let is_id = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let Some(files) = fs::read_dir(entry.path()).ok().filter(|_| is_id) else { continue };
            for file in files.flatten().take(MAX_FOLDERS) {
                let ours = file.file_name().to_str().is_some_and(|name| name.starts_with(NAME));
                if ours && file.metadata().is_ok_and(|metadata| is_unused(&metadata)) {
                    let _stays = fs::remove_file(file.path());
                }
            }
            // Fails as long as there is a file in it.
            let _stays = fs::remove_dir(entry.path());
        }
    }
}

/// Returns whether a file was neither read nor written for a week.
fn is_unused(metadata: &fs::Metadata) -> bool {
    let last = metadata.atime().max(metadata.mtime()).max(0).unsigned_abs();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    metadata.is_file() && since.saturating_sub(Duration::from_secs(last)) > UNUSED
}

/// A file that is not complete. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct NewEntry {
    file: File,
    partial: Option<PathBuf>,
    path: PathBuf,
}

impl NewEntry {
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, and returns it.
    pub fn keep(mut self) -> Result<File, String> {
        if let Some(partial) = self.partial.take() {
            fs::rename(&partial, &self.path).map_err(|error| {
                format!("cannot rename {} to {}: {error}", partial.display(), self.path.display())
            })?;
        }
        self.file.try_clone().map_err(|error| format!("cannot keep {}: {error}", self.path.display()))
    }
}

impl Drop for NewEntry {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _gone = fs::remove_file(partial);
        }
    }
}
