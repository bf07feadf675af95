//! A worker: answers requests about files, one at a time.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use blazesym::symbolize::evict::{self, Evict};
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};
use rustc_hash::FxHashMap;

use super::confine::{self, Confinement};
use super::copy::{MAX_FILE, copy};
use super::demangle::bounded;
use super::dwarf::Programs;
use super::elf::{Headers, by_build_id};
use super::jit::OpenPerfMaps;
use super::protocol::{
    FileId, FoundTypes, FunctionCode, MAX_ADDRESSES, ReaderRequest, Reply, Split, SplitFile,
};
use super::symbols::{PackedSymbols, Packer};
use super::{paths, unwind, wire};
use precise_code::return_site::{BEFORE, BEHIND, ReturnSite};
use precise_code::types::TypedCode;

/// Maximum number of bytes of all copies. To make room, the copy that was used least recently goes.
const MAX_COPIES: u64 = MAX_FILE;
/// Maximum number of copies.
const MAX_FILES: usize = 1024;
/// The folder in which the library is told to look for debug information.
const DEBUG: &str = "/d";

/// Confines this process further, and answers until the other end of the socket is closed.
pub(super) fn run(socket: &UnixStream, confined: Confinement) -> io::Result<()> {
    let prepared = prepare();
    let first = match &prepared {
        Ok(()) => Reply::Ready(confined),
        Err(why) => Reply::Failed(why.clone()),
    };
    wire::send(socket, &first, &[])?;
    prepared.map_err(io::Error::other)?;
    let mut worker = Worker::new();
    loop {
        let (request, files) = wire::receive(socket, || Ok(()))?;
        wire::send(socket, &worker.answer(request, files), &[])?;
    }
}

fn prepare() -> Result<(), String> {
    // SAFETY: standard input is the socket of the nursery, which only the nursery may use.
    unsafe { libc::close(0) };
    confine::end_with_parent()?;
    paths::handle_traps().map_err(|error| format!("cannot handle SIGSYS: {error}"))?;
    confine::allow_few_calls()
}

/// A copy of a file, and where the library finds it.
struct Kept {
    copy: File,
    bytes: u64,
    path: String,
    /// The path at which the library looks for the file as a supplement of others; `None` if it is
    /// none.
    supplement: Option<String>,
    used: u64,
}

/// A file, and whether its copy has debug information.
type CopyKey = (FileId, bool);

struct Worker {
    symbolizer: Symbolizer,
    copies: FxHashMap<CopyKey, Kept>,
    maps: OpenPerfMaps,
    programs: Programs,
    clock: u64,
}

impl Worker {
    fn new() -> Self {
        let symbolizer = Symbolizer::builder()
            // A path never gets another file.
            .enable_auto_reload(false)
            // The library sets no limit to the length of a name.
            .enable_demangling(false)
            .set_debug_dirs(Some([DEBUG]))
            .build();
        Self {
            symbolizer,
            copies: FxHashMap::default(),
            maps: OpenPerfMaps::default(),
            programs: Programs::default(),
            clock: 0,
        }
    }

    fn answer(&mut self, request: ReaderRequest, files: Vec<File>) -> Reply {
        let mut files = files.into_iter();
        let (file, second) = (files.next(), files.next());
        let answer = match (request, file) {
            (ReaderRequest::Forget(ids), _) => {
                ids.into_iter().for_each(|id| self.forget(id));
                Ok(Reply::Done)
            }
            (_, None) => Err(io::Error::other("a request came without its file")),
            (ReaderRequest::Inspect, Some(file)) => Headers::read(&file).map(Reply::Headers),
            (ReaderRequest::Checksum(expected), Some(file)) => {
                checksum(&file).map(|sum| Reply::Checksum(sum == expected))
            }
            (ReaderRequest::Jit { map, addresses }, Some(file)) => {
                Ok(Reply::Jit(self.maps.find(map, &file, &addresses)))
            }
            (ReaderRequest::Unwind { frame_pointers }, Some(file)) => {
                unwind::read(&file, frame_pointers).map(Reply::Unwind)
            }
            (ReaderRequest::ReturnSites(offsets), Some(file)) => {
                sites(&file, &offsets).map(Reply::ReturnSites)
            }
            (ReaderRequest::Symbols { file: id, supplement, lines, addresses }, Some(file)) => {
                let supplement = supplement.zip(second);
                self.symbols((id, lines), &file, supplement, &addresses).map(Reply::Symbols)
            }
            (ReaderRequest::Types { file: id, split, supplement, start, of, code, wanted }, Some(file)) => {
                let code = FunctionCode { start, of, bytes: &code, wanted: &wanted };
                self.types((id, &file), (split, supplement, second), &code).map(Reply::Types)
            }
        };
        answer.unwrap_or_else(|error| Reply::Failed(bounded(&error.to_string())))
    }

    fn symbols(
        &mut self,
        key: CopyKey,
        file: &File,
        supplement: Option<(FileId, File)>,
        addresses: &[u64],
    ) -> io::Result<PackedSymbols> {
        let addresses = addresses.get(..addresses.len().min(MAX_ADDRESSES)).unwrap_or_default();
        self.clock += 1;
        if let Some((id, file)) = supplement {
            // Without it, names that are stored only there are missing, and no others.
            let _names_are_missing = self.keep_supplement((id, true), &file);
        }
        self.keep(key, file)?;
        let all = self.copies.values();
        paths::set(all.flat_map(|kept| {
            let own = (kept.path.as_str(), &kept.copy);
            [Some(own), kept.supplement.as_deref().map(|path| (path, &kept.copy))].into_iter().flatten()
        }));
        let path = self.copies.get(&key).map(|kept| PathBuf::from(&kept.path)).unwrap_or_default();
        let found = self.look_up(&path, key.1, addresses)?;
        let parts = self.parts(&path, addresses, &found)?;
        let mut packer = Packer::default();
        for (index, found) in found.iter().enumerate() {
            packer.add(found, parts.get(&index));
        }
        Ok(packer.finish())
    }

    fn look_up(&self, path: &Path, debug: bool, addresses: &[u64]) -> io::Result<Vec<Symbolized<'_>>> {
        let mut source = source::Elf::new(path);
        source.debug_syms = debug;
        let found = self.symbolizer.symbolize(&Source::Elf(source), Input::VirtOffset(addresses));
        found.map_err(|error| io::Error::other(format!("{error:#}")))
    }

    /// Returns the parts of functions that addresses are in, by the table of symbols, for the
    /// symbols that do not say where they begin. The name of a part is its own (`main.cold`). Of a
    /// function in several parts (`DW_AT_ranges`: hot and cold code) the library knows the name and
    /// the lines only.
    fn parts(
        &self,
        path: &Path,
        addresses: &[u64],
        found: &[Symbolized<'_>],
    ) -> io::Result<FxHashMap<usize, Sym<'_>>> {
        let without_start =
            |found: &Symbolized<'_>| found.as_sym().is_some_and(|sym| sym.addr == 0 && sym.size.is_none());
        let all = found.iter().zip(addresses).enumerate();
        let (indexes, at): (Vec<usize>, Vec<u64>) = all
            .filter(|(_, (found, _))| without_start(found))
            .map(|(index, (_, address))| (index, *address))
            .unzip();
        if at.is_empty() {
            return Ok(FxHashMap::default());
        }
        let parts = indexes.into_iter().zip(self.look_up(path, false, &at)?);
        let parts = parts.filter_map(|(index, found)| Some((index, found.into_sym()?)));
        Ok(parts.filter(|(_, part)| part.size.is_some_and(|size| part.offset < size)).collect())
    }

    fn types(
        &mut self,
        (id, file): (FileId, &File),
        (split, supplement, second): (SplitFile, Option<FileId>, Option<File>),
        code: &FunctionCode<'_>,
    ) -> io::Result<FoundTypes> {
        self.clock += 1;
        self.keep((id, true), file)?;
        if let (Some(other), Some(second)) = (supplement, &second) {
            // Without it, what is in the file itself has types.
            let _types_are_missing = self.keep((other, true), second);
        }
        let part = match (split, second) {
            (SplitFile::Unknown, _) => Split::Unknown,
            (SplitFile::Found(part), Some(second)) => {
                self.keep((part, true), &second)?;
                self.copies.get(&(part, true)).map_or(Split::Missing, |kept| Split::Found(part, &kept.copy))
            }
            (SplitFile::Found(_) | SplitFile::Missing, _) => Split::Missing,
        };
        match self.copies.get(&(id, true)) {
            Some(kept) => {
                let other = supplement.and_then(|id| Some((id, &self.copies.get(&(id, true))?.copy)));
                self.programs.types((id, &kept.copy), part, other, code)
            }
            None => Ok(FoundTypes::Code(TypedCode::default())),
        }
    }

    /// Makes sure that there is a copy of the file.
    fn keep(&mut self, key: CopyKey, file: &File) -> io::Result<()> {
        if let Some(kept) = self.copies.get_mut(&key) {
            kept.used = self.clock;
            return Ok(());
        }
        let copied = copy(file, key.1)?;
        while self.copies.len() >= MAX_FILES
            || self.copies.values().map(|kept| kept.bytes).sum::<u64>() + copied.bytes > MAX_COPIES
        {
            // Those of this request stay, even if both together are larger than the limit.
            let others = self.copies.iter().filter(|(_, kept)| kept.used < self.clock);
            let Some(oldest) = others.min_by_key(|(_, kept)| kept.used).map(|(&key, _)| key) else { break };
            self.remove(oldest);
        }
        let path = format!("/{}-{}", key.0, u8::from(key.1));
        let (copy, bytes) = (copied.file, copied.bytes);
        self.copies.insert(key, Kept { copy, bytes, path, supplement: None, used: self.clock });
        Ok(())
    }

    /// As [`Self::keep`], for a file to which others refer by its build id.
    fn keep_supplement(&mut self, key: CopyKey, file: &File) -> io::Result<()> {
        self.keep(key, file)?;
        let Some(kept) = self.copies.get_mut(&key).filter(|kept| kept.supplement.is_none()) else {
            return Ok(());
        };
        let build_id = Headers::read(file)?.and_then(|headers| headers.build_id());
        let name = build_id.and_then(|id| by_build_id(&id, ".debug"));
        kept.supplement = name.map(|name| format!("{DEBUG}/{name}"));
        Ok(())
    }

    fn forget(&mut self, id: FileId) {
        self.maps.forget(id);
        self.remove((id, true));
        self.remove((id, false));
    }

    fn remove(&mut self, key: CopyKey) {
        let Some(kept) = self.copies.remove(&key) else { return };
        self.programs.forget(key.0);
        for path in [Some(kept.path), kept.supplement].into_iter().flatten() {
            // A path that the library does not know is not an error.
            let _nothing_to_evict = self.symbolizer.evict(&Evict::Elf(evict::Elf::new(path)));
        }
    }
}

/// Returns what is at offsets of a file.
fn sites(file: &File, offsets: &[u64]) -> io::Result<Vec<Option<ReturnSite>>> {
    let mut bytes = [0; BEFORE + BEHIND];
    let site = |&offset: &u64| {
        // The first bytes of a file are its headers.
        let Some(start) = offset.checked_sub(BEFORE as u64) else { return Ok(None) };
        let got = super::elf::read_up_to(file, &mut bytes, start)?;
        let (before, behind) = bytes.get(..got).unwrap_or_default().split_at(got.min(BEFORE));
        Ok((got >= BEFORE).then(|| ReturnSite::of(before, behind)))
    };
    offsets.iter().take(MAX_ADDRESSES).map(site).collect()
}

/// Returns the CRC-32 of a whole file.
fn checksum(file: &File) -> io::Result<u32> {
    let length = file.metadata()?.len();
    if length > MAX_FILE {
        return Err(io::Error::other(format!("a file of {} MiB is not checked", length >> 20)));
    }
    let mut sum = crc32fast::Hasher::new();
    let (mut buffer, mut done) = (vec![0; 1 << 20], 0);
    while done < length {
        let got = super::elf::read_up_to(file, &mut buffer, done)?;
        if got == 0 {
            break;
        }
        sum.update(buffer.get(..got).unwrap_or_default());
        done += got as u64;
    }
    Ok(sum.finalize())
}
