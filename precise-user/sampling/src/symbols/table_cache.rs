//! Unwind tables on disk: those of a file are made once, and not once per run.
//!
//! An entry belongs to a build id and a content ([`ContentId`]). The build id alone does not do: a
//! program can have the build id of another one, and one of the two would get the tables of the
//! other. What an entry holds was made by the reader, a process that hostile bytes may have taken
//! over, and a disk may damage it. So an entry is used only if the folder and the file belong to
//! this user and nobody else may write them, its checksum and its content are right, and the table
//! passes the checks that an answer of the reader must pass. Any other entry is removed, counted,
//! and made again.
//!
//! The folder is bounded: of too many entries, those that were used last stay.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};

use super::code_file::ContentId;
use crate::reader::unwind::UnwindInfo;
use precise_model::CompactSort as _;
use precise_records::record::BuildId;

/// The first bytes of an entry. The last two are the format, which is raised when the same file
/// gets another table.
const MAGIC: [u8; 8] = *b"PRUNWI01";
/// The bytes before the table: [`MAGIC`] and the checksum of all that follows.
const HEAD: usize = MAGIC.len() + size_of::<u32>();
/// Maximum size of an entry in bytes. The table of the largest browser has 20 MiB.
const MAX_ENTRY: u64 = 48 << 20;
/// Maximum size of the folder in bytes, and its maximum number of files.
const MAX_BYTES: u64 = 128 << 20;
const MAX_FILES: usize = 4096;
/// The folder is looked at again after this number of bytes was written to it.
const LOOK_EACH: u64 = 8 << 20;
/// The end of the names of entries, and the beginning of the names of files that are being written.
const ENDING: &str = ".unwind";
const UNFINISHED: &str = ".new-";
/// How old in seconds an unfinished file is that nobody writes any more.
const ABANDONED: u64 = 600;

/// Returns the folder for the caches of this program; `None` if nobody says where it is:
/// `$CACHE_DIRECTORY` of a service, `$XDG_CACHE_HOME/precise` or `~/.cache/precise`.
pub fn folder() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    path("CACHE_DIRECTORY")
        .or_else(|| path("XDG_CACHE_HOME").map(|home| home.join("precise")))
        .or_else(|| path("HOME").map(|home| home.join(".cache/precise")))
}

/// What became of the entries that were asked for or written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Entries that were removed because they were damaged, or not what their name says.
    pub refused: u64,
    /// Why tables cannot be kept, if they cannot.
    pub trouble: Option<String>,
}

/// The tables on disk.
#[derive(Debug)]
pub struct TableCache {
    path: PathBuf,
    /// The folder; `None` if it cannot be used.
    folder: Option<File>,
    counts: CacheCounts,
    /// The number of bytes that may be written before the folder is looked at.
    unseen: u64,
    written: u64,
}

impl TableCache {
    /// Opens the folder `unwind` below the folder of caches, and makes it if it is not there.
    pub fn open(caches: &Path) -> Self {
        let path = caches.join("unwind");
        let opened = private_folder(&path);
        let trouble = opened.as_ref().err().map(|error| format!("{}: {error}", path.display()));
        let counts = CacheCounts { trouble, ..CacheCounts::default() };
        Self { path, folder: opened.ok(), counts, unseen: 0, written: 0 }
    }

    /// Returns what became of the entries.
    pub fn counts(&self) -> &CacheCounts {
        &self.counts
    }

    /// Returns the unwind information of a content, if it is there.
    pub fn get(&mut self, key: &TableKey) -> Option<UnwindInfo> {
        let name = key.name();
        let file = self.open_entry(&name)?;
        match read(file, key) {
            Ok(info) => Some(info),
            Err(_) => {
                self.counts.refused += 1;
                self.remove(&name);
                None
            }
        }
    }

    /// Keeps the unwind information of a content. What cannot be kept is made again.
    pub fn put(&mut self, key: &TableKey, info: &UnwindInfo) {
        let Some(bytes) = bytes_of(key, info).filter(|bytes| bytes.len() as u64 <= MAX_ENTRY) else { return };
        if let Err(error) = self.write(&key.name(), &bytes) {
            self.counts.trouble.get_or_insert_with(|| format!("{}: {error}", self.path.display()));
            return;
        }
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written >= self.unseen {
            self.unseen = self.written.saturating_add(LOOK_EACH);
            self.bound(MAX_BYTES, MAX_FILES);
        }
    }

    fn open_entry(&self, name: &str) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self.folder.as_ref()?, name, flags, Mode::empty()).ok()?);
        // Used now: it stays longer than others. If that cannot be written, it does not.
        let _unchanged = file.set_modified(SystemTime::now());
        Some(file)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // The thread id is different from those of all other writers.
        let unfinished = format!("{UNFINISHED}{}", rustix::thread::gettid().as_raw_nonzero());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(folder, &*unfinished, flags, mode)?);
        let written = file.write_all(bytes).and_then(|()| Ok(renameat(folder, &*unfinished, folder, name)?));
        if written.is_err() {
            self.remove(&unfinished);
        }
        written
    }

    fn remove(&self, name: &str) {
        if let Some(folder) = &self.folder {
            // Another process may have removed it.
            let _gone = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// Removes the least recently used entries, until at most `bytes` and `files` are left.
    fn bound(&self, bytes: u64, files: usize) {
        let Ok(found) = std::fs::read_dir(&self.path) else { return };
        let mut entries: Vec<(SystemTime, u64, OsString)> = Vec::new();
        for entry in found.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let (name, modified) = (entry.file_name(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            let is = |part: fn(&str) -> bool| name.to_str().is_some_and(part);
            if is(|name| name.ends_with(ENDING)) {
                entries.push((modified, metadata.len(), name));
            } else if is(|name| name.starts_with(UNFINISHED))
                && modified.elapsed().is_ok_and(|age| age.as_secs() > ABANDONED)
            {
                name.to_str().into_iter().for_each(|name| self.remove(name));
            }
        }
        entries.compact_sort_by(|a, b| b.cmp(a));
        let (mut kept_bytes, mut kept_files) = (0_u64, 0);
        for (_, size, name) in entries {
            kept_bytes = kept_bytes.saturating_add(size);
            kept_files += 1;
            if kept_bytes > bytes || kept_files > files {
                name.to_str().into_iter().for_each(|name| self.remove(name));
            }
        }
    }
}

/// What the unwind information belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableKey {
    /// The build id of the file.
    pub build_id: BuildId,
    /// Its content.
    pub content: ContentId,
    /// Whether code without unwind information is unwound by frame pointers.
    pub frame_pointers: bool,
}

impl TableKey {
    /// Returns the key as it is stored in an entry.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.frame_pointers), self.build_id.as_bytes().len() as u8];
        bytes.extend(self.build_id.as_bytes());
        bytes.extend(self.content.bytes());
        bytes
    }

    fn name(&self) -> String {
        format!("{}-{:08x}{ENDING}", self.build_id.hex(), crc32fast::hash(&self.bytes()))
    }
}

fn bytes_of(key: &TableKey, info: &UnwindInfo) -> Option<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; size_of::<u32>()]);
    bytes.extend(key.bytes());
    let mut bytes = postcard::to_extend(info, bytes).ok()?;
    let sum = crc32fast::hash(bytes.get(HEAD..)?);
    bytes.get_mut(MAGIC.len()..HEAD)?.copy_from_slice(&sum.to_le_bytes());
    Some(bytes)
}

/// Reads an entry that must be of this key.
fn read(file: File, key: &TableKey) -> io::Result<UnwindInfo> {
    let damaged = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_private(&metadata) || metadata.len() > MAX_ENTRY {
        return Err(damaged("not a file of this program"));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(MAX_ENTRY).read_to_end(&mut bytes)?;
    let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| damaged("another format"))?;
    let (sum, rest) = rest.split_first_chunk().ok_or_else(|| damaged("cut"))?;
    if u32::from_le_bytes(*sum) != crc32fast::hash(rest) {
        return Err(damaged("wrong checksum"));
    }
    let rest = rest.strip_prefix(&*key.bytes()).ok_or_else(|| damaged("of another file"))?;
    let (info, behind) = postcard::take_from_bytes::<UnwindInfo>(rest).map_err(|_| damaged("not a table"))?;
    if !behind.is_empty() {
        return Err(damaged("too long"));
    }
    info.check().map_err(damaged)?;
    Ok(info)
}

/// Opens a folder that only this user may write, and makes it if it is not there.
fn private_folder(path: &Path) -> io::Result<File> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(openat(CWD, path, flags, Mode::empty())?);
    if !is_private(&folder.metadata()?) {
        let why = "it belongs to another user, or others may write it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    rustix::fs::accessat(folder.as_fd(), ".", rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)?;
    Ok(folder)
}

fn is_private(metadata: &Metadata) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & OTHERS_WRITE == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use precise_common::unwind::{Rule, row};

    use super::*;
    use crate::reader::unwind::{CodeUnwinding, UnwindTable};

    fn key(id: u8, content: &str) -> TableKey {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        let content = ContentId::of(&File::open(path).unwrap()).unwrap();
        TableKey { build_id: BuildId::new(&[id; 20]).unwrap(), content, frame_pointers: true }
    }

    fn info(rows: u16) -> UnwindInfo {
        let table = UnwindTable {
            first: 3,
            pages: vec![u32::from(rows)],
            rows: (0..rows).map(|at| row::pack(at, at % 2)).collect(),
            rules: vec![Rule::GAP, Rule::ROOT],
        };
        UnwindInfo { segments: Vec::new(), code: CodeUnwinding::Table(table), skipped: 7 }
    }

    fn entries(folder: &Path) -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder.join("unwind")).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_is_kept_is_found_again_for_its_content_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = TableCache::open(folder.path());
        let (one, other) = (key(1, "one"), key(1, "other"));
        assert_eq!(cache.get(&one), None);
        cache.put(&one, &info(100));
        assert_eq!(cache.get(&one), Some(info(100)));
        assert_eq!(TableCache::open(folder.path()).get(&one), Some(info(100)));
        // The same build id, of another file; and the same file, unwound in another way.
        assert_eq!(cache.get(&other), None);
        assert_eq!(cache.get(&TableKey { frame_pointers: false, ..one }), None);
        assert_eq!(cache.counts(), &CacheCounts::default());
    }

    #[test]
    fn a_damaged_entry_is_refused_and_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = TableCache::open(folder.path());
        let key = key(1, "one");
        cache.put(&key, &info(40));
        let [path] = &entries(folder.path())[..] else { panic!("one entry") };
        let whole = std::fs::read(path).unwrap();
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            bytes
        }));
        damaged.push([&whole[..], &[0]].concat());
        let all = damaged.len() as u64;
        for bytes in damaged {
            std::fs::write(path, bytes).unwrap();
            assert_eq!(cache.get(&key), None);
            assert!(!path.exists(), "a damaged entry is removed");
        }
        assert_eq!(cache.counts().refused, all);
        cache.put(&key, &info(40));
        assert_eq!((std::fs::read(path).unwrap(), cache.get(&key)), (whole, Some(info(40))));
    }

    /// A forger can compute the checksum, so it proves nothing about the table.
    #[test]
    fn a_forged_entry_is_checked_like_an_answer_of_the_reader() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = TableCache::open(folder.path());
        let key = key(1, "one");
        let forge = |change: fn(&mut UnwindTable)| {
            let mut info = info(40);
            if let CodeUnwinding::Table(table) = &mut info.code {
                change(table);
            }
            info
        };
        // Rules that do not exist, rows of no page, pages beyond all addresses, no order.
        for wrong in [
            forge(|table| table.rules.truncate(1)),
            forge(|table| table.pages[0] += 1),
            forge(|table| table.first = u32::MAX),
            forge(|table| table.rows.swap(3, 4)),
            forge(|table| table.rows.clear()),
        ] {
            cache.put(&key, &wrong);
            assert_eq!(cache.get(&key), None, "{wrong:?}");
        }
        assert_eq!(cache.counts().refused, 5);
        // The entry of another file under this name.
        cache.put(&super::tests::key(1, "other"), &info(40));
        let [path] = &entries(folder.path())[..] else { panic!("one entry") };
        std::fs::rename(path, path.with_file_name(key.name())).unwrap();
        assert_eq!((cache.get(&key), cache.counts().refused), (None, 6));
    }

    #[test]
    fn files_that_others_may_write_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = TableCache::open(folder.path());
        let key = key(1, "one");
        cache.put(&key, &info(40));
        let [path] = &entries(folder.path())[..] else { panic!("one entry") };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!((cache.get(&key), cache.counts().refused), (None, 1));
        // A link leads elsewhere.
        std::os::unix::fs::symlink("/proc/self/exe", path).unwrap();
        assert_eq!(cache.get(&key), None);
        let unwind = folder.path().join("unwind");
        std::fs::set_permissions(&unwind, std::fs::Permissions::from_mode(0o777)).unwrap();
        let mut open = TableCache::open(folder.path());
        assert!(open.counts().trouble.as_ref().unwrap().contains("others may write it"));
        open.put(&key, &info(40));
        assert_eq!(open.get(&key), None);
    }

    #[test]
    fn the_folder_is_bounded_and_what_was_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = TableCache::open(folder.path());
        let keys: Vec<TableKey> = (1..20).map(|id| key(id, "one")).collect();
        for (at, key) in keys.iter().enumerate() {
            cache.put(key, &info(1000));
            let path = folder.path().join("unwind").join(key.name());
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + at as u64);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let abandoned = folder.path().join("unwind").join(".new-1");
        std::fs::write(&abandoned, "x").unwrap();
        File::options().write(true).open(&abandoned).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(cache.get(&keys[0]), Some(info(1000)), "used now");
        cache.bound(20_000, 100);
        let sizes: u64 = entries(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!((12_000..=20_000).contains(&sizes), "{sizes}");
        assert!(!abandoned.exists() && cache.get(&keys[0]).is_some());
        assert!(cache.get(&keys[18]).is_some() && cache.get(&keys[1]).is_none());
        cache.bound(u64::MAX, 2);
        assert_eq!(entries(folder.path()).len(), 2);
    }
}
