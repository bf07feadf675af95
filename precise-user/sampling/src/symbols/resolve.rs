//! Resolves queries: opens the files, asks the reader, and turns its answers into locations. Bound
//! to one thread; see [`super::worker`].

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use rustc_hash::{FxHashMap, FxHashSet};

use super::SymbolOptions;
use super::ahead::AskedAhead;
use super::code_file::ContentFiles;
use super::files::OpenFiles;
use super::jit::PerfMaps;
use super::kernel::{KERNEL, KernelSymbols};
use super::mapping::{MapKind, Mapped};
use super::notes::Notes;
use super::procfs;
use super::query::{CodeQuery, DataQuery};
use super::recent::Recent;
use super::table_cache::TableCache;
use super::vaddr::vaddr;
use super::vmlinux;
use crate::reader::protocol::{FileId, FileLine, Symbol};
use crate::reader::{Reader, SentAhead, convert};
use precise_model::{CodeLocation, DataLocation, Frame, Name, NameId, Names, Reason};

/// Maximum number of answers since the last turn that are kept between batches.
const MAX_ANSWERS: usize = 1 << 16;
/// Maximum number of notes that are kept between two calls of [`BatchResolver::take_notes`].
const MAX_NOTES: usize = 32;
/// Minimum alignment in bytes of variables that are searched for within a granule.
const STEP: u64 = 4;
/// Maximum number of bytes of a granule that are searched: two cache lines of 64 bytes.
const MAX_GRANULE: u64 = 128;

/// Resolves batches of queries.
pub struct BatchResolver {
    pub(super) reader: Reader,
    /// Reads the debug information of the kernel, which root installed.
    symbolizer: Symbolizer,
    pub(super) files: OpenFiles,
    /// The files of contents that were asked for lately.
    pub(super) contents: ContentFiles,
    /// Unwind tables on disk; `None` if none are kept.
    pub(super) tables: Option<TableCache>,
    /// Perf maps; `None` for a recording, because the processes with its process ids on this
    /// machine are different ones.
    perf_maps: Option<PerfMaps>,
    kernel: KernelSymbols,
    vmlinux: Option<PathBuf>,
    /// The vDSO and the length of its mapping in bytes; opened when first needed, because that
    /// starts the reader.
    vdso: OnceCell<Option<(FileId, u64)>>,
    /// Whether the samples are of the running kernel, whose vDSO processes have.
    this_boot: bool,
    /// Earlier answers: a live run asks for the same addresses in every epoch.
    pub(super) answers: Answers,
    /// The functions of perf maps that the present batch asks for.
    jit: FxHashMap<JitKey, (String, u64)>,
    pub(super) notes: Notes,
}

/// The symbol of a file at one address.
type Answer = Result<Rc<Symbol>, Reason>;
/// Answers by file and by virtual address in the file.
type Answers = Recent<(FileId, u64), Answer>;
/// What a query asks: whether the address is the kernel's, its mapping, and the address.
type Asked<'q> = (bool, &'q Result<Mapped, Reason>, u64);
/// Process, generation and runtime address.
type JitKey = (u32, u64, u64);

impl BatchResolver {
    /// Creates a resolver. Opens no files.
    pub fn new(options: &SymbolOptions, reader: Reader) -> Self {
        let symbolizer =
            Symbolizer::builder().enable_demangling(false).set_debug_dirs(Some(&options.debug_dirs)).build();
        let recorded = options.recorded.clone();
        let live = recorded.is_none();
        let this_boot = recorded.as_ref().is_none_or(|recorded| recorded.this_boot);
        let proc = options.root.join("proc");
        let kallsyms = match &recorded {
            None => Some(proc.join("kallsyms")),
            Some(recorded) => recorded.kallsyms.clone(),
        };
        let files = OpenFiles::new(proc.clone(), options.debug_dirs.clone(), recorded, options.max_files);
        Self {
            reader,
            symbolizer,
            files,
            contents: ContentFiles::default(),
            tables: options.caches.as_deref().map(TableCache::open),
            perf_maps: live.then(|| PerfMaps::new(proc)),
            kernel: KernelSymbols::new(options.root.clone(), kallsyms, live),
            vmlinux: vmlinux(&options.root).filter(|_| live),
            vdso: OnceCell::new(),
            this_boot,
            answers: Answers::default(),
            jit: FxHashMap::default(),
            notes: Notes::new(MAX_NOTES),
        }
    }

    /// Opens a file now, while its process exists.
    pub fn open(&mut self, mapped: &Mapped) {
        let _ = self.files.find(&mut self.reader, mapped);
        self.forget_closed();
    }

    /// Forgets what nobody asked for since the last call, and closes the files that belong to it.
    pub fn forget_unused(&mut self) {
        self.answers.turn();
        self.files.forget_unused();
        if let Some(maps) = &mut self.perf_maps {
            maps.forget_unused(&mut self.reader);
        }
        self.forget_closed();
    }

    /// Returns the problems since the last call, one sentence each.
    pub fn take_notes(&mut self) -> Vec<String> {
        for note in self.reader.take_notes().into_iter().chain(self.files.take_troubles()) {
            self.notes.add(note);
        }
        self.notes.take()
    }

    /// Returns the answers to `queries`, in their order, with names interned into `names`. `ahead`
    /// is what [`Self::ask_ahead`] returned for them.
    pub fn code(
        &mut self,
        names: &mut Names,
        queries: &[CodeQuery],
        ahead: Option<AskedAhead>,
    ) -> Vec<CodeLocation> {
        self.perf_maps.iter_mut().for_each(PerfMaps::begin);
        self.bound_answers();
        if let Some(asked) = ahead {
            self.take_ahead(asked);
        }
        let mut locations = Vec::with_capacity(queries.len());
        while let Some(rest) = queries.get(locations.len()..).filter(|rest| !rest.is_empty()) {
            let places = self.places(rest.iter().map(|q| (q.kernel, &q.mapping, q.address)));
            let of_kernel = rest.iter().filter(|query| query.kernel).map(|query| query.address);
            of_kernel.max().into_iter().for_each(|last| self.kernel.read_ahead(last));
            self.ask_files(&places);
            self.ask_perf_maps(rest, &places);
            let resolve = |(query, place)| self.code_location(names, query, place);
            locations.extend(rest.iter().zip(&places).map(resolve));
        }
        locations
    }

    /// Returns the answers to `queries`, in their order, with names interned into `names`.
    pub fn data(&mut self, names: &mut Names, queries: &[DataQuery]) -> Vec<DataLocation> {
        self.bound_answers();
        let mut locations = Vec::with_capacity(queries.len());
        while let Some(rest) = queries.get(locations.len()..).filter(|rest| !rest.is_empty()) {
            let places = self.places(rest.iter().map(|q| (q.kernel, &q.mapping, q.address)));
            self.ask_files(&places);
            // If no variable holds the first byte, one may begin at a later byte of the granule.
            let mut later = Vec::new();
            for (query, place) in rest.iter().zip(&places) {
                if let AddressTarget::File { file, vaddr: Some(vaddr) } = *place
                    && variable(&self.answers, file, vaddr).is_none()
                {
                    let file_at = |step| AddressTarget::File { file, vaddr: vaddr.checked_add(step) };
                    later.extend(steps(query).skip(1).map(file_at));
                }
            }
            self.ask_files(&later);
            let resolve = |(query, place)| self.data_location(names, query, place);
            locations.extend(rest.iter().zip(&places).map(resolve));
        }
        locations
    }

    /// Returns where to look for the first of these addresses: for as many as have no more files
    /// than may be open, so that all of them are open until they are resolved.
    pub(super) fn places<'q>(&mut self, addresses: impl Iterator<Item = Asked<'q>>) -> Vec<AddressTarget> {
        let mut files = FxHashSet::default();
        let mut places = Vec::new();
        for (kernel, mapping, address) in addresses {
            let place = self.place(kernel, mapping, address);
            if let AddressTarget::File { file, .. } = place {
                files.insert(file);
                if files.len() > self.files.limit() {
                    break;
                }
            }
            places.push(place);
        }
        places
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
            MapKind::File | MapKind::Memfd | MapKind::Bss | MapKind::BssAndHeap => {
                match self.files.find(&mut self.reader, mapped) {
                    Err(reason) => AddressTarget::NoFile(reason),
                    Ok(file) => {
                        let elf = self.files.get(file).and_then(|open| open.elf.as_ref());
                        let vaddr = elf.and_then(|elf| vaddr(elf, mapped, address));
                        AddressTarget::File { file, vaddr }
                    }
                }
            }
            MapKind::Vdso => match self.vdso() {
                // The vDSO of a process with another word size is a different file.
                Some((file, length)) if length == mapped.mapping.end - mapped.mapping.start => {
                    AddressTarget::File { file, vaddr: Some(address - mapped.mapping.start) }
                }
                _ => AddressTarget::NoFile(Reason::FileMissing),
            },
            MapKind::Vsyscall => AddressTarget::Vsyscall,
            MapKind::Heap | MapKind::Stack | MapKind::Anon | MapKind::Special => AddressTarget::Memory,
        }
    }

    pub(super) fn vdso(&mut self) -> Option<(FileId, u64)> {
        let Self { vdso, files, reader, this_boot, .. } = self;
        *vdso.get_or_init(|| {
            let (file, length) = own_vdso().filter(|_| *this_boot)?;
            Some((files.adopt(reader, file, "[vdso]").ok()?, length))
        })
    }

    /// Asks each file once for all of its addresses that have no answer yet.
    fn ask_files(&mut self, places: &[AddressTarget]) {
        self.forget_closed();
        for (file, addresses) in self.unanswered(places) {
            self.keep_answers(file, addresses, None);
        }
    }

    /// Has the reader look up addresses of a file, and keeps the answers. `sent` is as in
    /// [`OpenFiles::symbols`].
    pub(super) fn keep_answers(&mut self, file: FileId, addresses: Vec<u64>, sent: Option<SentAhead>) {
        let found = self.files.symbols(&mut self.reader, file, &addresses, sent);
        let found = found.into_iter().map(|found| found.map(Rc::new));
        for (address, found) in addresses.into_iter().zip(found) {
            self.answers.insert((file, address), found);
        }
    }

    /// Asks the perf map of each process once for all addresses that no file names.
    fn ask_perf_maps(&mut self, queries: &[CodeQuery], places: &[AddressTarget]) {
        self.jit.clear();
        let Some(maps) = &mut self.perf_maps else { return };
        let mut by_process: FxHashMap<(u32, u64), Vec<u64>> = FxHashMap::default();
        for (query, place) in queries.iter().zip(places) {
            // JITs also put code into files: shared memory, caches of compiled code.
            let code = match place {
                AddressTarget::Memory | AddressTarget::NoFile(_) => true,
                AddressTarget::File { file, .. } => {
                    self.files.get(*file).is_none_or(|open| open.elf.is_none())
                }
                AddressTarget::Kernel | AddressTarget::Nowhere(_) | AddressTarget::Vsyscall => false,
            };
            if let Ok(mapped) = &query.mapping
                && code
            {
                by_process.entry((mapped.pid, mapped.generation)).or_default().push(query.address);
            }
        }
        for ((pid, generation), mut addresses) in by_process {
            addresses.sort_unstable();
            addresses.dedup();
            let Some(map) = maps.find(&mut self.reader, pid, generation) else { continue };
            match self.reader.jit(map, &addresses) {
                Ok(answer) => {
                    if answer.refused > 0 {
                        self.notes.add(format!(
                            "the perf map of process {pid} is too large: {} of its functions are not used",
                            answer.refused
                        ));
                    }
                    let named = addresses.into_iter().zip(answer.functions);
                    let named = named.filter_map(|(at, found)| Some(((pid, generation, at), found?)));
                    self.jit.extend(named);
                }
                Err(why) => {
                    self.notes.add(format!("cannot use the perf map of process {pid}: {why}"));
                }
            }
        }
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
            precise_records::record::MappedFileId::BuildId(id) => Some(id),
            _ => None,
        });
        let open = if let AddressTarget::File { file, .. } = place { self.files.get(*file) } else { None };
        if let Some(id) = open.and_then(|open| open.build_id).or(recorded) {
            location.build_id = names.intern(&id.hex());
        }
        if !matches!(place, AddressTarget::Memory) && !mapped.mapping.kind.is_bss() {
            location.file_offset = mapped.file_offset(query.address);
        }
        let answer = match place {
            AddressTarget::File { file, vaddr: Some(vaddr) } => match self.answers.peek(&(*file, *vaddr)) {
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

    fn jit_code(&self, names: &mut Names, mapped: &Mapped, address: u64, location: &mut CodeLocation) {
        if let Some((name, offset)) = self.jit.get(&(mapped.pid, mapped.generation, address)) {
            location.module = Name::Known(names.intern("[jit]"));
            location.file_offset = 0;
            location.function = Name::Known(names.intern(name));
            location.function_offset = *offset;
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
            Ok(Symbolized::Sym(symbol)) if symbol.code_info.is_some() => {
                let has_start = symbol.addr > 0 || symbol.size.is_some();
                let Some(mut symbol) = convert(symbol) else { return };
                if !has_start && let Ok(found) = self.kernel.function(address) {
                    (symbol.name, symbol.offset) = (found.name.into(), found.offset);
                }
                fill(names, &symbol, location);
            }
            Ok(_) => {}
            Err(error) => {
                self.vmlinux = None;
                self.notes.add(format!("cannot use {}: {error:#}", vmlinux.display()));
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
            (AddressTarget::Memory | AddressTarget::Vsyscall, Ok(mapped)) => {
                location.region = Name::Known(names.intern(&region_name(mapped, true)));
            }
            (AddressTarget::File { file, vaddr }, Ok(mapped)) => {
                // Anonymous memory after a file's last segment that the file's variables do not
                // reach.
                let beyond = mapped.mapping.kind.is_bss() && vaddr.is_none();
                location.region = Name::Known(names.intern(&region_name(mapped, beyond)));
                if !mapped.mapping.kind.is_bss() {
                    location.file_offset = mapped.file_offset(query.address);
                }
                let Some(vaddr) = vaddr else { return location };
                let found = steps(query).find_map(|step| variable(&self.answers, file, vaddr + step));
                if let Some(symbol) = found {
                    location.variable = Name::Known(names.intern(&symbol.name));
                    location.variable_offset = vaddr.saturating_sub(symbol.address);
                }
            }
        }
        location
    }

    /// Makes the reader forget closed files.
    pub(super) fn forget_closed(&mut self) {
        self.reader.forget(self.files.take_closed());
    }

    fn bound_answers(&mut self) {
        self.answers.bound(MAX_ANSWERS);
    }
}

/// The place where an address is to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressTarget {
    /// In the kernel.
    Kernel,
    /// In no known mapping.
    Nowhere(Reason),
    /// In a file that cannot be read.
    NoFile(Reason),
    /// In a file, at a virtual address of the file; `None` if no segment holds it.
    File { file: FileId, vaddr: Option<u64> },
    /// In memory without a file.
    Memory,
    /// In the vsyscall page, which has no symbols and no file.
    Vsyscall,
}

/// Returns the variable at an address. A symbol without a size is a marker of the linker, not a
/// variable: the library lets it reach to the next symbol, which may be far away.
fn variable(answers: &Answers, file: FileId, vaddr: u64) -> Option<&Symbol> {
    let symbol = answers.peek(&(file, vaddr))?.as_deref().ok()?;
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

/// Sets function, line and inlined frames. Symbols list frames from the outermost to the innermost,
/// the model from the innermost to the outermost.
fn fill(names: &mut Names, symbol: &Symbol, location: &mut CodeLocation) {
    location.function_offset = symbol.offset;
    let outer = std::iter::once((&symbol.name, &symbol.line));
    let inner = symbol.inlined.iter().map(|frame| (&frame.name, &frame.line));
    let line = |line: &Option<FileLine>| line.as_ref().and_then(|line| line.number).unwrap_or(0);
    let mut frames: Vec<Frame> = outer
        .chain(inner)
        .map(|(name, at)| Frame {
            function: names.intern(name),
            source: at.as_ref().map_or(NameId::default(), |at| names.intern(&at.path)),
            line: line(at),
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
    let kind = match mapped.mapping.kind {
        MapKind::Bss if memory => MapKind::Anon,
        MapKind::BssAndHeap if memory => MapKind::Heap,
        kind => kind,
    };
    match (kind, &mapped.mapping.image) {
        (MapKind::File | MapKind::Memfd | MapKind::Bss | MapKind::BssAndHeap, Some(image)) => image.name(),
        (MapKind::Heap, _) => Cow::Borrowed("[heap]"),
        (MapKind::Stack, _) => Cow::Borrowed("[stack]"),
        (MapKind::Vdso, _) => Cow::Borrowed("[vdso]"),
        (MapKind::Vsyscall, _) => Cow::Borrowed("[vsyscall]"),
        (MapKind::Special, _) => Cow::Borrowed("[special]"),
        _ => Cow::Borrowed("[anon]"),
    }
}

/// Returns the kernel image with line information, if a distribution's debug package has installed
/// it.
fn vmlinux(root: &Path) -> Option<PathBuf> {
    vmlinux::installed(root).into_iter().map(|place| root.join(place)).find(|path| path.is_file())
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
