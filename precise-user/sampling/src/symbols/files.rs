//! Opens and holds the files that processes have mapped.
//!
//! A file is opened when it is first seen and stays open. It can then be read after the process has
//! exited, after the path got another file, and after its mount namespace has ended. The reader
//! ([`crate::reader`]) reads it; nothing here looks at its content.
//!
//! Paths and build ids come from the processes. So they never decide alone that two processes have
//! the same file: a file is known by the device and inode of what was opened, and a path by the
//! mount namespace and the root in which it means something.

mod separate;

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use separate::Separate;

use super::Recorded;
use super::debug_server::DebugServer;
use super::mapping::{Image, Mapped};
use super::notes::Notes;
use super::opening::{open_beneath, open_in_root, open_regular};
use super::recent::Recent;
use crate::reader::elf::{Headers, by_build_id};
use crate::reader::protocol::{FileId, FoundSymbol, Symbol};
use crate::reader::{Reader, SentAhead};
use precise_model::Reason;
use precise_records::record::{self, BuildId};

/// Maximum number of failures, and of processes whose scope is known, that are kept, so that a
/// missing file is not searched for at every sample.
const MAX_REMEMBERED: usize = 4096;
/// Maximum number of sentences that are kept about files that cannot be read.
const MAX_TROUBLES: usize = 32;
/// Maximum number of images whose file is remembered.
const MAX_IMAGES: usize = 1 << 16;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// The ELF headers; `None` if the file is not an ELF file.
    pub elf: Option<Headers>,
    /// The build id from the file's notes; `None` if it has none.
    pub build_id: Option<BuildId>,
    /// Separate debug information; it uses the same virtual addresses.
    pub debug: Option<Rc<Separate>>,
    /// Supplementary debug information, to which that of the file, or `debug`, refers.
    pub supplement: Option<Rc<Separate>>,
    /// The path by which the file was found, for notes.
    pub path: String,
    key: InodeKey,
    /// Whether it is never closed, because it has no path by which it could be opened again.
    stays: bool,
    last_used: u64,
}

impl OpenFile {
    /// Returns the separate debug information.
    fn debug(&self) -> Option<(FileId, &File)> {
        self.debug.as_ref().map(|separate| (separate.id, &separate.file))
    }

    /// Returns the supplementary debug information.
    fn supplement(&self) -> Option<(FileId, &File)> {
        self.supplement.as_ref().map(|separate| (separate.id, &separate.file))
    }
}

/// Device and inode number.
type Inode = (u64, u64);

/// A file, and the scope from which its debug information is; `None`: from this machine's folders.
type InodeKey = (Inode, Option<Scope>);

/// Where a path means something: a mount namespace, and the root folder in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Scope {
    mounts: Inode,
    root: Inode,
}

/// For whom an image means the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Whose {
    /// For all processes of a recording, of which nothing else is known.
    Recording,
    /// For the processes of a scope.
    Scope(Scope),
    /// For a process and generation whose scope is not known, or whose files have no identity.
    Process(u32, u64),
}

/// The open files.
#[derive(Debug)]
pub struct OpenFiles {
    proc: PathBuf,
    debug_dirs: Vec<PathBuf>,
    recorded: Option<Recorded>,
    limit: usize,
    own_scope: Option<Scope>,
    open: FxHashMap<FileId, OpenFile>,
    by_image: Recent<(Arc<Image>, Whose), FileId>,
    by_inode: FxHashMap<InodeKey, FileId>,
    separate: FxHashMap<Inode, Rc<Separate>>,
    /// Who is asked for debug information that is not below the folders; `None`: nobody.
    server: Option<Box<dyn DebugServer>>,
    /// Scopes by process and generation; `None` if it could not be read.
    scopes: Recent<(u32, u64), Option<Scope>>,
    /// Failures by process, generation and image.
    failures: Recent<(u32, u64, Arc<Image>), Reason>,
    /// Files that were closed to make room; the reader must forget them.
    closed: Vec<FileId>,
    /// Why files could not be read.
    troubles: Notes,
    clock: u64,
    /// The time of the last [`OpenFiles::forget_unused`].
    turned: u64,
}

impl OpenFiles {
    /// Creates an empty set of at most `limit` files. Looks for processes below `proc`, unless they
    /// are `recorded` ones, and for debug information below `debug_dirs`.
    pub fn new(proc: PathBuf, debug_dirs: Vec<PathBuf>, recorded: Option<Recorded>, limit: usize) -> Self {
        Self {
            own_scope: scope_of(&proc.join("self")),
            proc,
            debug_dirs,
            recorded,
            limit: limit.max(1),
            open: FxHashMap::default(),
            by_image: Recent::default(),
            by_inode: FxHashMap::default(),
            separate: FxHashMap::default(),
            server: None,
            scopes: Recent::default(),
            failures: Recent::default(),
            closed: Vec::new(),
            troubles: Notes::new(MAX_TROUBLES),
            clock: 0,
            turned: 0,
        }
    }

    /// Asks a server for debug information that is not below the debug folders, from now on.
    pub fn ask(&mut self, server: Box<dyn DebugServer>) {
        self.server = Some(server);
    }

    /// Returns the file with this number; `None` if it was closed.
    pub fn get(&self, id: FileId) -> Option<&OpenFile> {
        self.open.get(&id)
    }

    /// Returns the maximum number of open files.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the numbers of the files that were closed since the last call.
    pub fn take_closed(&mut self) -> Vec<FileId> {
        std::mem::take(&mut self.closed)
    }

    /// Returns why files could not be read since the last call, one sentence each.
    pub fn take_troubles(&mut self) -> Vec<String> {
        self.troubles.take()
    }

    /// Returns the file behind `mapped`, and opens it if necessary.
    pub fn find(&mut self, reader: &mut Reader, mapped: &Mapped) -> Result<FileId, Reason> {
        let image = mapped.mapping.image.as_ref().ok_or(Reason::Failed)?;
        self.clock += 1;
        let key = (image.clone(), self.whose(mapped, image));
        if let Some(&id) = self.by_image.get(&key) {
            self.touch(id);
            return Ok(id);
        }
        let failure = (mapped.pid, mapped.generation, image.clone());
        if let Some(&reason) = self.failures.get(&failure) {
            return Err(reason);
        }
        match self.look_for(reader, mapped, image).and_then(|file| self.keep(reader, file, mapped, image)) {
            Ok(id) => {
                self.by_image.bound(MAX_IMAGES);
                self.by_image.insert(key, id);
                Ok(id)
            }
            Err(reason) => {
                self.failures.bound(MAX_REMEMBERED);
                self.failures.insert(failure, reason);
                Err(reason)
            }
        }
    }

    /// Adds a file that has no path in any process: the image of the vDSO.
    pub fn adopt(&mut self, reader: &mut Reader, file: File, name: &str) -> Result<FileId, Reason> {
        let open = OpenFile { stays: true, ..self.opened(reader, file, name)? };
        Ok(self.insert(reader, open))
    }

    /// Adds a file of this machine, with its debug information.
    pub fn add(&mut self, reader: &mut Reader, file: File, path: &str) -> Result<FileId, Reason> {
        self.clock += 1;
        let known = inode(&file).and_then(|inode| self.by_inode.get(&(inode, None)).copied());
        if let Some(id) = known {
            self.touch(id);
            return Ok(id);
        }
        let mut open = self.opened(reader, file, path)?;
        self.find_debug(reader, &mut open, None);
        Ok(self.insert(reader, open))
    }

    /// Has the reader look up the symbols at virtual addresses of a file, for a later call of
    /// [`Self::symbols`]. `None`: as in [`Reader::ask_ahead`].
    pub fn ask_ahead(&self, reader: &mut Reader, id: FileId, addresses: &[u64]) -> Option<SentAhead> {
        let open = self.open.get(&id)?;
        reader.ask_ahead(open.debug().unwrap_or((id, &open.file)), open.supplement(), addresses)
    }

    /// Returns the symbols at virtual addresses of a file, in their order. `sent` is what
    /// [`Self::ask_ahead`] returned for the same addresses.
    pub fn symbols(
        &mut self,
        reader: &mut Reader,
        id: FileId,
        addresses: &[u64],
        mut sent: Option<SentAhead>,
    ) -> Vec<Result<Symbol, Reason>> {
        let Self { open, troubles, .. } = self;
        let Some(open) = open.get(&id) else {
            sent.iter().for_each(|sent| reader.forget_ahead(sent));
            return vec![Err(Reason::FileMissing); addresses.len()];
        };
        let supplement = open.supplement();
        let mut found = vec![Err(Reason::NoSymbol); addresses.len()];
        // Separate debug information is asked first, because it has more symbols; the file itself
        // is asked for the rest.
        for file in open.debug().into_iter().chain([(id, &open.file)]) {
            if found.iter().all(Result::is_ok) {
                break;
            }
            let fresh = reader.symbols(file, supplement, addresses, sent.take(), |what, why| {
                troubles.add(format!("cannot use the {what} of {}: {why}", open.path));
            });
            if fresh.contains(&FoundSymbol::Failed) && !reader.has_given_up(file.0) {
                troubles
                    .add(format!("some names of {} cannot be read: the file is damaged there", open.path));
            }
            for (known, fresh) in found.iter_mut().zip(fresh) {
                if known.is_err() {
                    *known = match fresh {
                        FoundSymbol::Symbol(symbol) => Ok(symbol),
                        FoundSymbol::None => Err(Reason::NoSymbol),
                        FoundSymbol::Failed => Err(Reason::Failed),
                    };
                }
            }
        }
        found
    }

    /// Reads the headers of a file that is to be added.
    fn opened(&mut self, reader: &mut Reader, file: File, path: &str) -> Result<OpenFile, Reason> {
        let inode = inode(&file).ok_or(Reason::FileMissing)?;
        let elf = headers(reader, &file, path, &mut self.troubles).ok_or(Reason::Failed)?;
        Ok(OpenFile {
            file,
            build_id: elf.as_ref().and_then(Headers::build_id),
            elf,
            debug: None,
            supplement: None,
            path: path.to_owned(),
            key: (inode, None),
            stays: false,
            last_used: self.clock,
        })
    }

    fn whose(&mut self, mapped: &Mapped, image: &Image) -> Whose {
        let process = Whose::Process(mapped.pid, mapped.generation);
        match image.id {
            // The same path may mean a different file in every process.
            record::MappedFileId::None => process,
            _ if self.recorded.is_some() => Whose::Recording,
            _ => self.scope(mapped).map_or(process, Whose::Scope),
        }
    }

    fn scope(&mut self, mapped: &Mapped) -> Option<Scope> {
        let process = (mapped.pid, mapped.generation);
        if let Some(known) = self.scopes.get(&process) {
            return *known;
        }
        let scope = scope_of(&self.proc.join(mapped.pid.to_string()));
        self.scopes.bound(MAX_REMEMBERED);
        self.scopes.insert(process, scope);
        scope
    }

    fn look_for(&mut self, reader: &mut Reader, mapped: &Mapped, image: &Image) -> Result<File, Reason> {
        if let Some(recorded) = self.recorded.clone() {
            return self.look_for_recorded(reader, &recorded, image);
        }
        let process = self.proc.join(mapped.pid.to_string());
        // A file of another device than the mapping's may be the right one (see `is_the_file`), if
        // the path means here what it means there.
        let here = self.own_scope.is_some() && self.scope(mapped) == self.own_scope;
        let mut reason = Reason::FileMissing;
        let candidates: [(&dyn Fn() -> Option<File>, Trust); 3] = [
            (&|| open_mapped(&process, mapped, image), Trust::Exact),
            (&|| open_in_root(&process.join("root"), Path::new(&image.path)).ok(), Trust::Path),
            (&|| open_regular(Path::new(&image.path)).ok(), if here { Trust::Path } else { Trust::Identity }),
        ];
        for (candidate, trust) in candidates {
            let Some(file) = candidate() else { continue };
            match is_the_file(reader, &file, image, trust, &mut self.troubles) {
                Ok(true) => return Ok(file),
                Ok(false) => reason = Reason::FileChanged,
                // It may be the file.
                Err(failed) => return Err(failed),
            }
        }
        Err(reason)
    }

    /// Looks for a file of a recording. Processes with the same ids on this machine are different
    /// ones.
    fn look_for_recorded(
        &mut self,
        reader: &mut Reader,
        recorded: &Recorded,
        image: &Image,
    ) -> Result<File, Reason> {
        if let record::MappedFileId::BuildId(id) = image.id {
            // In the layout of `perf buildid-cache`.
            let cached = by_build_id(&id, "/elf").and_then(|name| {
                self.debug_dirs.iter().find_map(|dir| open_beneath(dir, Path::new(&name)).ok())
            });
            if let Some(file) = cached
                && is_the_file(reader, &file, image, Trust::Path, &mut self.troubles) == Ok(true)
            {
                return Ok(file);
            }
        }
        let path = Path::new(&image.path);
        let (file, exact) = match &recorded.symfs {
            Some(symfs) => (open_in_root(symfs, path), true),
            None => (open_regular(path), false),
        };
        let file = file.map_err(|_| Reason::FileMissing)?;
        let comparable = exact || recorded.this_host || matches!(image.id, record::MappedFileId::BuildId(_));
        let trust = if exact { Trust::Exact } else { Trust::Path };
        match (comparable, is_the_file(reader, &file, image, trust, &mut self.troubles)?) {
            (true, true) => Ok(file),
            (true, false) => Err(Reason::FileChanged),
            // There is a file at the path, but no way to tell whether it is the recorded one.
            (false, _) => Err(Reason::FileMissing),
        }
    }

    fn keep(
        &mut self,
        reader: &mut Reader,
        file: File,
        mapped: &Mapped,
        image: &Image,
    ) -> Result<FileId, Reason> {
        let inode = inode(&file).ok_or(Reason::FileMissing)?;
        let scope = if self.recorded.is_some() { self.own_scope } else { self.scope(mapped) };
        let foreign = scope != self.own_scope;
        // The open descriptor keeps the inode number from being reused.
        let shared = self.by_inode.get(&(inode, None)).copied();
        let has_debug = |id| self.open.get(&id).is_some_and(|open| open.debug.is_some());
        let of_scope = scope.and_then(|scope| self.by_inode.get(&(inode, Some(scope))).copied());
        if let Some(id) = of_scope.or(shared.filter(|&id| !foreign || has_debug(id))) {
            self.touch(id);
            return Ok(id);
        }
        let mut open = self.opened(reader, file, &image.path)?;
        self.find_debug(reader, &mut open, None);
        // Debug information that a container brings along counts only where its paths do.
        if let (true, None, Some(scope)) = (foreign, &open.debug, scope) {
            let root = self.proc.join(mapped.pid.to_string()).join("root");
            self.find_debug(reader, &mut open, Some(&root));
            if open.debug.is_some() || open.supplement.is_some() {
                open.key.1 = Some(scope);
                return Ok(self.insert(reader, open));
            }
        }
        match shared {
            Some(id) => {
                self.touch(id);
                Ok(id)
            }
            None => Ok(self.insert(reader, open)),
        }
    }

    fn insert(&mut self, reader: &mut Reader, open: OpenFile) -> FileId {
        // One more than the limit may be open: the file that shows that a part of a batch is full
        // must not close one of that part.
        while self.open.len() > self.limit {
            let others = self.open.iter().filter(|(_, file)| !file.stays);
            let Some(oldest) = others.min_by_key(|(_, file)| file.last_used).map(|(&id, _)| id) else {
                break;
            };
            self.close(oldest);
        }
        let id = reader.new_id();
        self.by_inode.insert(open.key, id);
        self.open.insert(id, open);
        id
    }

    fn touch(&mut self, id: FileId) {
        if let Some(file) = self.open.get_mut(&id) {
            file.last_used = self.clock;
        }
    }

    /// Forgets what was not asked for since the last call, and closes the files that were not: a
    /// process that still has them mapped leads to them again.
    pub fn forget_unused(&mut self) {
        let since = std::mem::replace(&mut self.turned, self.clock);
        let unused =
            |(&id, file): (&FileId, &OpenFile)| (!file.stays && file.last_used <= since).then_some(id);
        let unused: Vec<FileId> = self.open.iter().filter_map(unused).collect();
        unused.into_iter().for_each(|id| self.close(id));
        self.by_image.turn();
        self.scopes.turn();
        self.failures.turn();
    }

    fn close(&mut self, id: FileId) {
        let Some(file) = self.open.remove(&id) else { return };
        self.by_inode.remove(&file.key);
        self.by_image.retain(|known| *known != id);
        self.closed.push(id);
        for separate in [file.debug, file.supplement].into_iter().flatten() {
            // Held here and in the table: no other file needs it.
            if Rc::strong_count(&separate) == 2 {
                self.separate.remove(&separate.inode);
                self.closed.push(separate.id);
            }
        }
    }
}

/// What makes a file that was opened the mapped one, if its identity cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// It was opened through the mapping itself, or belongs to the recording.
    Exact,
    /// The path means here what it means in the process.
    Path,
    /// Nothing.
    Identity,
}

/// Opens the file through the mapping itself, which is right even if its path has another file by
/// now.
fn open_mapped(process: &Path, mapped: &Mapped, image: &Image) -> Option<File> {
    let range = format!("{:x}-{:x}", mapped.mapping.start, mapped.mapping.end);
    let link = process.join("map_files").join(range);
    let target = std::fs::read_link(&link).ok()?;
    let target = target.as_os_str().as_bytes();
    // The range may have been mapped to another file since.
    (target.strip_suffix(b" (deleted)").unwrap_or(target) == image.path.as_bytes()).then_some(())?;
    open_regular(&link).ok()
}

/// Returns the headers of a file, of which there are none if it is not an ELF file; `None`, and a
/// sentence in `troubles`, if it cannot be read.
fn headers(reader: &mut Reader, file: &File, path: &str, troubles: &mut Notes) -> Option<Option<Headers>> {
    let why = match reader.headers(file) {
        Ok(headers) => return Some(headers),
        Err(why) => why,
    };
    troubles.add(format!("cannot read {path}: {why}"));
    None
}

/// Returns whether `file` is the file of the mapped image; [`Reason::Failed`] if its headers tell,
/// and cannot be read.
fn is_the_file(
    reader: &mut Reader,
    file: &File,
    image: &Image,
    trust: Trust,
    troubles: &mut Notes,
) -> Result<bool, Reason> {
    Ok(match image.id {
        record::MappedFileId::BuildId(wanted) => headers(reader, file, &image.path, troubles)
            .ok_or(Reason::Failed)?
            .is_some_and(|elf| elf.build_id() == Some(wanted)),
        _ if trust == Trust::Exact => true,
        record::MappedFileId::Inode { major, minor, inode, .. } => {
            let Ok(stat) = file.metadata() else { return Ok(false) };
            // On stacked and copy-on-write file systems, mappings show another device than `stat`
            // does. Inode numbers can be compared only if the devices are equal.
            let same_device = (libc::major(stat.dev()), libc::minor(stat.dev())) == (major, minor);
            if same_device { stat.ino() == inode } else { trust == Trust::Path && !image.deleted }
        }
        record::MappedFileId::None => trust == Trust::Path && !image.deleted,
    })
}

fn inode(file: &File) -> Option<Inode> {
    let stat = file.metadata().ok()?;
    Some((stat.dev(), stat.ino()))
}

/// Returns the scope of the process whose folder in `/proc` this is; `None` if it has ended, or may
/// not be looked at.
fn scope_of(process: &Path) -> Option<Scope> {
    let inode = |path: &str| std::fs::metadata(process.join(path)).ok().map(|stat| (stat.dev(), stat.ino()));
    Some(Scope { mounts: inode("ns/mnt")?, root: inode("root")? })
}
