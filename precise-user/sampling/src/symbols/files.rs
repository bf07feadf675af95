//! Opens and holds the files that processes have mapped.
//!
//! A file is opened when it is first seen and stays open. It can then be read after the process has
//! exited, after the path got another file, and after its mount namespace has ended. The symbolizer
//! reads it through `/proc/self/fd`.
//!
//! Paths come from untrusted processes. Below the root of another process they are resolved with
//! that root (`openat2`, `RESOLVE_IN_ROOT`), so that a symbolic link cannot lead out of a
//! container. Only regular files are opened.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Recorded;
use super::elf::Elf;
use super::mapping::{Image, Mapped};
use precise_model::Reason;
use precise_records::record::{BuildId, FileId};

/// Maximum number of failures that are kept, so that a missing file is not searched for at every
/// sample.
const MAX_FAILURES: usize = 4096;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    /// The ELF headers; `None` if the file is not an ELF file.
    pub elf: Option<Elf>,
    /// The build id from the file's notes; `None` if it has none.
    pub build_id: Option<BuildId>,
    /// Path of separate debug information, found by the build id; it uses the same virtual
    /// addresses.
    pub debug: Option<PathBuf>,
    /// The path at which the symbolizer reads the file; valid while `_file` is open.
    pub path: PathBuf,
    inode: (u64, u64),
    last_used: u64,
    _file: File,
    _debug: Option<File>,
}

/// The index of an open file.
pub type FileIndex = u64;

/// The open files.
#[derive(Debug)]
pub struct Files {
    proc: PathBuf,
    debug_dirs: Vec<PathBuf>,
    recorded: Option<Recorded>,
    limit: usize,
    open: FxHashMap<FileIndex, OpenFile>,
    by_image: FxHashMap<Arc<Image>, FileIndex>,
    by_inode: FxHashMap<(u64, u64), FileIndex>,
    /// Failures by process, generation and image.
    failures: FxHashMap<(u32, u64, Arc<Image>), Reason>,
    /// Paths of files that were closed to make room; the symbolizer must discard them.
    closed: Vec<PathBuf>,
    clock: u64,
    next: FileIndex,
}

impl Files {
    /// Creates an empty set of at most `limit` files. Looks for processes below `proc`, unless they
    /// are `recorded` ones, and for debug information below `debug_dirs`.
    pub fn new(proc: PathBuf, debug_dirs: Vec<PathBuf>, recorded: Option<Recorded>, limit: usize) -> Self {
        Self {
            proc,
            debug_dirs,
            recorded,
            limit: limit.max(1),
            open: FxHashMap::default(),
            by_image: FxHashMap::default(),
            by_inode: FxHashMap::default(),
            failures: FxHashMap::default(),
            closed: Vec::new(),
            clock: 0,
            next: 0,
        }
    }

    /// Returns the file with this index; `None` if it was closed.
    pub fn get(&self, index: FileIndex) -> Option<&OpenFile> {
        self.open.get(&index)
    }

    /// Returns the paths of the files that were closed since the last call.
    pub fn take_closed(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.closed)
    }

    /// Returns the file behind `mapped`, and opens it if necessary.
    pub fn find(&mut self, mapped: &Mapped) -> Result<FileIndex, Reason> {
        let image = mapped.mapping.image.as_ref().ok_or(Reason::Failed)?;
        self.clock += 1;
        // Without an identity, the same path may mean a different file in every process.
        let identified = image.id != FileId::None;
        if identified && let Some(&index) = self.by_image.get(image) {
            self.touch(index);
            return Ok(index);
        }
        let key = (mapped.pid, mapped.generation, image.clone());
        if let Some(&reason) = self.failures.get(&key) {
            return Err(reason);
        }
        match self.look_for(mapped, image) {
            Ok(file) => {
                let index = self.keep(file, mapped.pid)?;
                if identified {
                    self.by_image.insert(image.clone(), index);
                }
                Ok(index)
            }
            Err(reason) => {
                if self.failures.len() >= MAX_FAILURES {
                    self.failures.clear();
                }
                self.failures.insert(key, reason);
                Err(reason)
            }
        }
    }

    /// Adds a file that has no path in any process: the image of the vDSO.
    pub fn adopt(&mut self, file: File) -> Result<FileIndex, Reason> {
        self.keep(file, 0)
    }

    fn look_for(&self, mapped: &Mapped, image: &Image) -> Result<File, Reason> {
        if let Some(recorded) = &self.recorded {
            return self.look_for_recorded(recorded, image);
        }
        let process = self.proc.join(mapped.pid.to_string());
        let mut reason = Reason::FileMissing;
        let candidates: [&dyn Fn() -> Option<File>; 3] = [
            &|| self.open_mapped(&process, mapped, image),
            &|| open_in_root(&process.join("root"), Path::new(&image.path)).ok(),
            &|| open_regular(Path::new(&image.path)).ok(),
        ];
        for (nth, candidate) in candidates.into_iter().enumerate() {
            let Some(file) = candidate() else { continue };
            if is_the_file(&file, image, nth == 0) {
                return Ok(file);
            }
            reason = Reason::FileChanged;
        }
        Err(reason)
    }

    /// Looks for a file of a recording. Processes with the same ids on this machine are different
    /// ones.
    fn look_for_recorded(&self, recorded: &Recorded, image: &Image) -> Result<File, Reason> {
        if let FileId::BuildId(id) = image.id {
            // In the layout of `perf buildid-cache`.
            let cached = by_build_id(&id, "/elf")
                .and_then(|name| self.debug_dirs.iter().find_map(|dir| open_regular(&dir.join(&name)).ok()));
            if let Some(file) = cached.filter(|file| is_the_file(file, image, false)) {
                return Ok(file);
            }
        }
        let path = Path::new(&image.path);
        let (file, exact) = match &recorded.symfs {
            Some(symfs) => (open_regular(&symfs.join(path.strip_prefix("/").unwrap_or(path))), true),
            None => (open_regular(path), false),
        };
        let file = file.map_err(|_| Reason::FileMissing)?;
        let comparable = exact || recorded.this_host || matches!(image.id, FileId::BuildId(_));
        match (comparable, is_the_file(&file, image, exact)) {
            (true, true) => Ok(file),
            (true, false) => Err(Reason::FileChanged),
            // There is a file at the path, but no way to tell whether it is the recorded one.
            (false, _) => Err(Reason::FileMissing),
        }
    }

    /// Opens the file through the mapping itself, which is right even if its path has another file
    /// by now.
    fn open_mapped(&self, process: &Path, mapped: &Mapped, image: &Image) -> Option<File> {
        let range = format!("{:x}-{:x}", mapped.mapping.start, mapped.mapping.end);
        let link = process.join("map_files").join(range);
        let target = std::fs::read_link(&link).ok()?;
        let target = target.as_os_str().as_bytes();
        // The range may have been mapped to another file since.
        (target.strip_suffix(b" (deleted)").unwrap_or(target) == image.path.as_bytes()).then_some(())?;
        open_regular(&link).ok()
    }

    fn keep(&mut self, file: File, pid: u32) -> Result<FileIndex, Reason> {
        let stat = file.metadata().map_err(|_| Reason::FileMissing)?;
        let inode = (stat.dev(), stat.ino());
        // The open descriptor keeps the inode number from being reused.
        if let Some(&index) = self.by_inode.get(&inode) {
            self.touch(index);
            return Ok(index);
        }
        if self.open.len() >= self.limit {
            self.close_oldest();
        }
        let elf = Elf::read(&file).map_err(|_| Reason::Failed)?;
        let build_id = elf.as_ref().and_then(|elf| elf.build_id);
        let debug = build_id.and_then(|id| self.debug_file(pid, &id));
        let path = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let index = self.next;
        self.next += 1;
        let open = OpenFile {
            elf,
            build_id,
            debug: debug.as_ref().map(path),
            path: path(&file),
            inode,
            last_used: self.clock,
            _file: file,
            _debug: debug,
        };
        self.open.insert(index, open);
        self.by_inode.insert(inode, index);
        Ok(index)
    }

    /// Returns the debug information with this build id: `.build-id/ab/cdef.debug`, on this machine
    /// or below the root of the process.
    fn debug_file(&self, pid: u32, id: &BuildId) -> Option<File> {
        let name = by_build_id(id, ".debug")?;
        let root = self.proc.join(pid.to_string()).join("root");
        let mut found = self.debug_dirs.iter().flat_map(|dir| {
            let path = dir.join(&name);
            let inside = self.recorded.is_none().then(|| open_in_root(&root, &path).ok()).flatten();
            [open_regular(&path).ok(), inside]
        });
        found.find_map(|file| {
            let file = file?;
            (Elf::read(&file).ok()??.build_id.as_ref() == Some(id)).then_some(file)
        })
    }

    fn touch(&mut self, index: FileIndex) {
        if let Some(file) = self.open.get_mut(&index) {
            file.last_used = self.clock;
        }
    }

    fn close_oldest(&mut self) {
        let Some(oldest) = self.open.iter().min_by_key(|(_, f)| f.last_used).map(|(&i, _)| i) else { return };
        let Some(file) = self.open.remove(&oldest) else { return };
        self.by_inode.remove(&file.inode);
        self.by_image.retain(|_, index| *index != oldest);
        self.closed.push(file.path.clone());
        self.closed.extend(file.debug.clone());
    }
}

/// Returns `.build-id/ab/cdef…` followed by `ending`.
fn by_build_id(id: &BuildId, ending: &str) -> Option<String> {
    let hex = id.hex();
    let (first, rest) = hex.split_at_checked(2)?;
    Some(format!(".build-id/{first}/{rest}{ending}"))
}

/// Returns whether `file` is the file of the mapped image. `exact` says that it was opened through
/// the mapping itself or belongs to the recording.
fn is_the_file(file: &File, image: &Image, exact: bool) -> bool {
    match image.id {
        FileId::BuildId(wanted) => {
            Elf::read(file).ok().flatten().is_some_and(|elf| elf.build_id == Some(wanted))
        }
        _ if exact => true,
        FileId::Inode { major, minor, inode, .. } => {
            let Ok(stat) = file.metadata() else { return false };
            // On stacked and copy-on-write file systems, mappings show another device than `stat`
            // does. Inode numbers can be compared only if the devices are equal.
            let same_device = (libc::major(stat.dev()), libc::minor(stat.dev())) == (major, minor);
            if same_device { stat.ino() == inode } else { !image.deleted }
        }
        FileId::None => !image.deleted,
    }
}

/// Opens a regular file for reading. Never blocks on other kinds of files.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    regular(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
}

/// Opens the regular file that `path` names for a process whose root is `root`.
pub fn open_in_root(root: &Path, path: &Path) -> io::Result<File> {
    #[repr(C)]
    struct OpenHow {
        flags: u64,
        mode: u64,
        resolve: u64,
    }
    const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
    const RESOLVE_IN_ROOT: u64 = 0x10;
    let root = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_PATH).open(root)?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let how = OpenHow {
        flags: (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY) as u64,
        mode: 0,
        resolve: RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    // SAFETY: `root` is open, `path` ends in NUL, `how` has the size that is passed, and all three
    // outlive the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    regular(file)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}
