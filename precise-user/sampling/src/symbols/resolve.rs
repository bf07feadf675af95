//! Resolves queries with the symbolization library. The library is bound to one thread; see
//! [`super::worker`].

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::evict::{self, Evict};
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use rustc_hash::FxHashMap;

use super::SymbolOptions;
use super::files::{FileIndex, Files};
use super::jit::PerfMaps;
use super::kernel::{KERNEL, KernelSymbols};
use super::mapping::{MapKind, Mapped};
use super::procfs;
use super::query::{CodeQuery, DataQuery};
use precise_model::{CodeLocation, DataLocation, Frame, Name, NameId, Names, Reason};

/// Maximum number of answers that are kept between batches.
const MAX_ANSWERS: usize = 1 << 16;
/// Maximum number of notes that are kept, because the same problem tends to occur many times.
const MAX_NOTES: usize = 32;
/// Minimum alignment in bytes of variables that are searched for within a granule.
const STEP: u64 = 4;
/// Maximum number of bytes of a granule that are searched: two cache lines of 64 bytes.
const MAX_GRANULE: u64 = 128;

/// Resolves batches of queries.
pub struct Resolver {
    symbolizer: Symbolizer,
    files: Files,
    /// Perf maps; `None` for a recording, because the processes with its process ids on this
    /// machine are different ones.
    perf_maps: Option<PerfMaps>,
    kernel: KernelSymbols,
    vmlinux: Option<PathBuf>,
    vdso: Option<(FileIndex, u64)>,
    /// Earlier answers: a live run asks for the same addresses in every epoch.
    answers: Answers,
    notes: Vec<String>,
}

/// The symbol of a file at one address.
type Answer = Result<Rc<Sym<'static>>, Reason>;
/// Answers by file and by virtual address in the file.
type Answers = FxHashMap<(FileIndex, u64), Answer>;

impl Resolver {
    /// Creates a resolver. Opens no files except the vDSO.
    pub fn new(options: &SymbolOptions) -> Self {
        let symbolizer = Symbolizer::builder()
            // An opened file is the one that was mapped; a file that appears later at the same path
            // is different.
            .enable_auto_reload(false)
            .set_debug_dirs(Some(&options.debug_dirs))
            .build();
        let recorded = options.recorded.clone();
        let live = recorded.is_none();
        let proc = options.root.join("proc");
        let kallsyms = match &recorded {
            None => Some(proc.join("kallsyms")),
            Some(recorded) => recorded.kallsyms.clone(),
        };
        let mut files = Files::new(proc.clone(), options.debug_dirs.clone(), recorded, options.max_files);
        let vdso = own_vdso().filter(|_| live);
        let vdso = vdso.and_then(|(file, length)| Some((files.adopt(file).ok()?, length)));
        Self {
            symbolizer,
            files,
            perf_maps: live.then(|| PerfMaps::new(proc)),
            kernel: KernelSymbols::new(options.root.clone(), kallsyms, live),
            vmlinux: vmlinux(&options.root).filter(|_| live),
            vdso,
            answers: Answers::default(),
            notes: Vec::new(),
        }
    }

    /// Opens a file now, while its process exists.
    pub fn open(&mut self, mapped: &Mapped) {
        let _ = self.files.find(mapped);
        self.forget_closed();
    }

    /// Returns the problems since the last call, one sentence each.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the answers to `queries`, in their order, with names interned into `names`.
    pub fn code(&mut self, names: &mut Names, queries: &[CodeQuery]) -> Vec<CodeLocation> {
        self.perf_maps.iter_mut().for_each(PerfMaps::begin);
        self.bound_answers();
        let wanted: Vec<_> = queries.iter().map(|q| self.place(q.kernel, &q.mapping, q.address)).collect();
        self.ask_files(&wanted);
        let resolve = |(query, place): (&CodeQuery, &AddressTarget)| self.code_location(names, query, place);
        queries.iter().zip(&wanted).map(resolve).collect()
    }

    /// Returns the answers to `queries`, in their order, with names interned into `names`.
    pub fn data(&mut self, names: &mut Names, queries: &[DataQuery]) -> Vec<DataLocation> {
        self.bound_answers();
        let places: Vec<_> = queries.iter().map(|q| self.place(q.kernel, &q.mapping, q.address)).collect();
        self.ask_files(&places);
        // If no variable holds the first byte, one may begin at a later byte of the granule.
        let mut rest = Vec::new();
        for (query, place) in queries.iter().zip(&places) {
            if let AddressTarget::File { file, vaddr: Some(vaddr) } = *place
                && variable(&self.answers, file, vaddr).is_none()
            {
                rest.extend(
                    steps(query).skip(1).map(|step| AddressTarget::File { file, vaddr: Some(vaddr + step) }),
                );
            }
        }
        self.ask_files(&rest);
        let resolve = |(query, place): (&DataQuery, &AddressTarget)| self.data_location(names, query, place);
        queries.iter().zip(&places).map(resolve).collect()
    }

    /// Returns where to look for an address.
    fn place(&mut self, kernel: bool, mapping: &Result<Mapped, Reason>, address: u64) -> AddressTarget {
        if kernel {
            return AddressTarget::Kernel;
        }
        let mapped = match mapping {
            Ok(mapped) => mapped,
            Err(reason) => return AddressTarget::Nowhere(*reason),
        };
        match mapped.mapping.kind {
            MapKind::File | MapKind::Memfd | MapKind::Bss => match self.files.find(mapped) {
                Err(reason) => AddressTarget::NoFile(reason),
                Ok(file) => {
                    let elf = self.files.get(file).and_then(|open| open.elf.as_ref());
                    let vaddr = elf.and_then(|elf| elf.vaddr(mapped, address));
                    AddressTarget::File { file, vaddr }
                }
            },
            MapKind::Vdso => match self.vdso {
                // The vDSO of a process with another word size is a different file.
                Some((file, length)) if length == mapped.mapping.end - mapped.mapping.start => {
                    AddressTarget::File { file, vaddr: Some(address - mapped.mapping.start) }
                }
                _ => AddressTarget::NoFile(Reason::FileMissing),
            },
            MapKind::Heap | MapKind::Stack | MapKind::Anon | MapKind::Special => AddressTarget::Memory,
        }
    }

    /// Asks each file once for all of its addresses that have no answer yet.
    fn ask_files(&mut self, places: &[AddressTarget]) {
        // Looking up the places may have closed files, whose descriptors, and so paths, may now
        // belong to other files.
        self.forget_closed();
        let mut by_file: FxHashMap<FileIndex, Vec<u64>> = FxHashMap::default();
        for place in places {
            if let AddressTarget::File { file, vaddr: Some(vaddr) } = *place
                && !self.answers.contains_key(&(file, vaddr))
            {
                by_file.entry(file).or_default().push(vaddr);
            }
        }
        for (file, mut addresses) in by_file {
            addresses.sort_unstable();
            addresses.dedup();
            let found = self.ask_file(file, &addresses);
            self.answers.extend(addresses.into_iter().map(|address| (file, address)).zip(found));
        }
    }

    fn ask_file(&mut self, file: FileIndex, addresses: &[u64]) -> Vec<Answer> {
        let Some(open) = self.files.get(file) else { return vec![Err(Reason::FileMissing); addresses.len()] };
        let (debug, path) = (open.debug.clone(), open.path.clone());
        let mut found = vec![Err(Reason::NoSymbol); addresses.len()];
        // Separate debug information is asked first, because it has more symbols; the file itself
        // is asked for the rest.
        for (path, debug_syms) in debug.into_iter().map(|path| (path, true)).chain([(path.clone(), true)]) {
            if found.iter().all(Result::is_ok) {
                break;
            }
            let fresh = match ask(&self.symbolizer, &path, debug_syms, addresses) {
                Ok(fresh) => fresh,
                Err(error) => {
                    self.note(format!(
                        "cannot use the line information of {}: {error:#}",
                        link_target(&path)
                    ));
                    ask(&self.symbolizer, &path, false, addresses).unwrap_or_else(|error| {
                        self.note(format!("cannot use the symbols of {}: {error:#}", link_target(&path)));
                        vec![Err(Reason::Failed); addresses.len()]
                    })
                }
            };
            for (known, fresh) in found.iter_mut().zip(fresh) {
                if known.is_err() {
                    *known = fresh;
                }
            }
        }
        found
    }

    fn code_location(&mut self, names: &mut Names, query: &CodeQuery, place: &AddressTarget) -> CodeLocation {
        let mut location = unknown_code(query);
        let mapped = match (place, &query.mapping) {
            (AddressTarget::Kernel, _) => {
                self.kernel_code(names, query.address, &mut location);
                return location;
            }
            (AddressTarget::Nowhere(reason), _) | (_, Err(reason)) => {
                location.module = Name::Unknown(*reason);
                location.function = Name::Unknown(*reason);
                location.source = Name::Unknown(*reason);
                return location;
            }
            (_, Ok(mapped)) => mapped,
        };
        location.module = Name::Known(names.intern(&region_name(mapped, *place == AddressTarget::Memory)));
        let recorded = mapped.mapping.image.as_ref().and_then(|image| match image.id {
            precise_records::record::FileId::BuildId(id) => Some(id),
            _ => None,
        });
        let open = if let AddressTarget::File { file, .. } = place { self.files.get(*file) } else { None };
        if let Some(id) = open.and_then(|open| open.build_id).or(recorded) {
            location.build_id = names.intern(&id.hex());
        }
        if !matches!(place, AddressTarget::Memory) && mapped.mapping.kind != MapKind::Bss {
            location.file_offset = mapped.file_offset(query.address);
        }
        let answer = match place {
            AddressTarget::File { file, vaddr: Some(vaddr) } => match self.answers.get(&(*file, *vaddr)) {
                Some(Ok(symbol)) => Ok(symbol.clone()),
                Some(Err(reason)) => Err(*reason),
                None => Err(Reason::NoSymbol),
            },
            AddressTarget::NoFile(reason) => Err(*reason),
            AddressTarget::Memory => Err(Reason::Jit),
            _ => Err(Reason::NoSymbol),
        };
        match answer {
            Ok(symbol) => fill(names, &symbol, &mut location),
            Err(reason) => {
                location.function = Name::Unknown(reason);
                location.source =
                    Name::Unknown(if reason == Reason::NoSymbol { Reason::NoLine } else { reason });
                // JITs also put code into files: shared memory, caches of compiled code.
                if open.is_none_or(|open| open.elf.is_none()) {
                    self.jit_code(names, mapped, query.address, &mut location);
                }
            }
        }
        location
    }

    fn jit_code(&mut self, names: &mut Names, mapped: &Mapped, address: u64, location: &mut CodeLocation) {
        let maps = self.perf_maps.as_mut();
        if let Some((name, offset)) = maps.and_then(|maps| maps.find(mapped.pid, mapped.generation, address))
        {
            location.module = Name::Known(names.intern("[jit]"));
            location.file_offset = 0;
            location.function = Name::Known(names.intern(&name));
            location.function_offset = offset;
            location.source = Name::Unknown(Reason::NoLine);
        }
    }

    fn kernel_code(&mut self, names: &mut Names, address: u64, location: &mut CodeLocation) {
        location.module = Name::Known(names.intern(KERNEL));
        let module = match self.kernel.function(address) {
            Ok(found) => {
                location.module = Name::Known(names.intern(found.module));
                location.function = Name::Known(names.intern(found.name));
                location.function_offset = found.offset;
                location.source = Name::Unknown(Reason::NoLine);
                found.module.to_owned()
            }
            Err(reason) => {
                location.function = Name::Unknown(reason);
                location.source = Name::Unknown(reason);
                if reason == Reason::KernelHidden {
                    location.runtime_address = 0;
                }
                KERNEL.to_owned()
            }
        };
        if let Some(id) = self.kernel.build_id(&module) {
            location.build_id = names.intern(&id.hex());
        }
        let Some(vmlinux) = self.vmlinux.clone() else { return };
        let image = MaybeDefault::Some(vmlinux.clone());
        let kernel = source::Kernel { vmlinux: image, ..source::Kernel::default() };
        match self.symbolizer.symbolize_single(&Source::Kernel(kernel), Input::AbsAddr(address)) {
            // Use vmlinux only for addresses with a line; the names of all others come from
            // kallsyms above.
            Ok(Symbolized::Sym(symbol)) if symbol.code_info.is_some() => fill(names, &symbol, location),
            Ok(_) => {}
            Err(error) => {
                self.vmlinux = None;
                self.note(format!("cannot use {}: {error:#}", vmlinux.display()));
            }
        }
    }

    fn data_location(&mut self, names: &mut Names, query: &DataQuery, place: &AddressTarget) -> DataLocation {
        let mut location = DataLocation {
            runtime_address: query.address,
            region: Name::Unknown(Reason::NoSymbol),
            file_offset: 0,
            variable: Name::Unknown(Reason::NoSymbol),
            variable_offset: 0,
        };
        match (*place, &query.mapping) {
            (AddressTarget::Kernel, _) => {
                location.region = Name::Known(names.intern(KERNEL));
                match self.kernel.variable(query.address) {
                    Ok(found) => {
                        location.region = Name::Known(names.intern(found.module));
                        location.variable = Name::Known(names.intern(found.name));
                        location.variable_offset = found.offset;
                    }
                    Err(reason) => {
                        location.variable = Name::Unknown(reason);
                        if reason == Reason::KernelHidden {
                            location.runtime_address = 0;
                        }
                    }
                }
            }
            (AddressTarget::Nowhere(reason), _) | (_, &Err(reason)) => {
                location.region = Name::Unknown(reason);
                location.variable = Name::Unknown(reason);
            }
            (AddressTarget::NoFile(reason), Ok(mapped)) => {
                location.region = Name::Known(names.intern(&region_name(mapped, false)));
                location.variable = Name::Unknown(reason);
                // Also for a file that cannot be opened: two processes share its bytes at the same
                // offset.
                if matches!(mapped.mapping.kind, MapKind::File | MapKind::Memfd) {
                    location.file_offset = mapped.file_offset(query.address);
                }
            }
            (AddressTarget::Memory, Ok(mapped)) => {
                location.region = Name::Known(names.intern(&region_name(mapped, true)));
            }
            (AddressTarget::File { file, vaddr }, Ok(mapped)) => {
                // Anonymous memory after a file's last segment that the file's variables do not
                // reach.
                let beyond = mapped.mapping.kind == MapKind::Bss && vaddr.is_none();
                location.region = Name::Known(names.intern(&region_name(mapped, beyond)));
                if mapped.mapping.kind != MapKind::Bss {
                    location.file_offset = mapped.file_offset(query.address);
                }
                let Some(vaddr) = vaddr else { return location };
                let found = steps(query).find_map(|step| variable(&self.answers, file, vaddr + step));
                if let Some(symbol) = found {
                    location.variable = Name::Known(names.intern(&symbol.name));
                    location.variable_offset = vaddr.saturating_sub(symbol.addr);
                }
            }
        }
        location
    }

    /// Makes the library forget closed files, because their paths will soon refer to other files.
    fn forget_closed(&mut self) {
        for path in self.files.take_closed() {
            if let Err(error) = self.symbolizer.evict(&Evict::Elf(evict::Elf::new(path))) {
                self.note(format!("cannot remove a closed file from memory: {error:#}"));
            }
        }
    }

    fn bound_answers(&mut self) {
        if self.answers.len() > MAX_ANSWERS {
            self.answers.clear();
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The place where an address is to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressTarget {
    /// In the kernel.
    Kernel,
    /// In no known mapping.
    Nowhere(Reason),
    /// In a file that cannot be read.
    NoFile(Reason),
    /// In a file, at a virtual address of the file; `None` if no segment holds it.
    File { file: FileIndex, vaddr: Option<u64> },
    /// In memory without a file.
    Memory,
}

fn ask(symbolizer: &Symbolizer, path: &Path, debug_syms: bool, at: &[u64]) -> blazesym::Result<Vec<Answer>> {
    let mut elf = source::Elf::new(path);
    elf.debug_syms = debug_syms;
    let found = symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(at))?;
    let answer = |symbolized| match symbolized {
        Symbolized::Sym(symbol) => Ok(Rc::new(symbol.into_owned())),
        Symbolized::Unknown(blazesym::symbolize::Reason::IgnoredError) => Err(Reason::Failed),
        Symbolized::Unknown(_) => Err(Reason::NoSymbol),
    };
    Ok(found.into_iter().map(answer).collect())
}

/// Returns the variable at an address. A symbol without a size is a marker of the linker, not a
/// variable: the library lets it reach to the next symbol, which may be far away.
fn variable(answers: &Answers, file: FileIndex, vaddr: u64) -> Option<&Sym<'static>> {
    let symbol = answers.get(&(file, vaddr))?.as_deref().ok()?;
    symbol.size.is_some_and(|size| symbol.offset < size).then_some(symbol)
}

/// Returns the offsets from the address of a query at which to look for its variable.
fn steps(query: &DataQuery) -> impl Iterator<Item = u64> {
    (0..query.granule.clamp(1, MAX_GRANULE)).step_by(STEP as usize)
}

fn unknown_code(query: &CodeQuery) -> CodeLocation {
    CodeLocation {
        kernel: query.kernel,
        runtime_address: query.address,
        module: Name::Unknown(Reason::NoSymbol),
        build_id: NameId::default(),
        file_offset: 0,
        function: Name::Unknown(Reason::NoSymbol),
        function_offset: 0,
        source: Name::Unknown(Reason::NoLine),
        line: 0,
        inlined_into: Vec::new(),
    }
}

/// Sets function, line and inlined frames. The library lists frames from the outermost to the
/// innermost, the model from the innermost to the outermost.
fn fill(names: &mut Names, symbol: &Sym<'_>, location: &mut CodeLocation) {
    location.function_offset = symbol.offset as u64;
    let outer = std::iter::once((&symbol.name, symbol.code_info.as_deref()));
    let inner = symbol.inlined.iter().map(|f| (&f.name, f.code_info.as_ref()));
    let mut frames: Vec<Frame> = outer
        .chain(inner)
        .map(|(name, info)| Frame {
            function: names.intern(name),
            source: info.map_or(NameId::default(), |info| names.intern(&info.to_path().to_string_lossy())),
            line: info.and_then(|info| info.line).unwrap_or(0),
        })
        .collect();
    frames.reverse();
    let mut frames = frames.into_iter();
    let Some(innermost) = frames.next() else { return };
    let nothing = NameId::default();
    let named = |id, reason| if id == nothing { Name::Unknown(reason) } else { Name::Known(id) };
    location.function = named(innermost.function, Reason::NoSymbol);
    location.source = named(innermost.source, Reason::NoLine);
    location.line = innermost.line;
    location.inlined_into = frames.collect();
}

/// Returns the name of a mapping in reports.
fn region_name(mapped: &Mapped, memory: bool) -> Cow<'_, str> {
    let kind =
        if memory && mapped.mapping.kind == MapKind::Bss { MapKind::Anon } else { mapped.mapping.kind };
    match (kind, &mapped.mapping.image) {
        (MapKind::File | MapKind::Memfd | MapKind::Bss, Some(image)) => Cow::Borrowed(&image.path),
        (MapKind::Heap, _) => Cow::Borrowed("[heap]"),
        (MapKind::Stack, _) => Cow::Borrowed("[stack]"),
        (MapKind::Vdso, _) => Cow::Borrowed("[vdso]"),
        (MapKind::Special, _) => Cow::Borrowed("[special]"),
        _ => Cow::Borrowed("[anon]"),
    }
}

/// Returns the path behind `/proc/self/fd/N`, for a note.
fn link_target(path: &Path) -> String {
    std::fs::read_link(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Returns the kernel image with line information, if a distribution's debug package has installed
/// it.
fn vmlinux(root: &Path) -> Option<PathBuf> {
    let release = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease")).ok()?;
    let name = format!("vmlinux-{}", release.trim_end());
    let dirs = ["boot", "usr/lib/debug/boot"];
    dirs.iter().map(|dir| root.join(dir).join(&name)).find(|path| path.is_file())
}

/// Returns a copy of the vDSO image, which all processes of this word size share, and the length of
/// its mapping in bytes.
fn own_vdso() -> Option<(File, u64)> {
    let own = procfs::read(Path::new("/"), std::process::id()).ok()?;
    let map = own.maps.iter().find(|map| map.path == "[vdso]")?;
    let mut image = vec![0; usize::try_from(map.len).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut image, map.start).ok()?;
    // SAFETY: the name is a C string; the kernel returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"vdso".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(&image).ok()?;
    Some((file, map.len))
}
