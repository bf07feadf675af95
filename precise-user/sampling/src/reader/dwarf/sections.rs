//! The sections of a file's debug information, in memory.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use flate2::read::ZlibDecoder;
use gimli::{DwarfPackage, DwoId, EndianSlice, LittleEndian, SectionId};

use super::Bytes;
use super::variables::{VariableSymbol, VariableSymbols};
use crate::reader::elf::{is_wide, le32, le64, read_up_to};
use crate::reader::sections::{FileSection, Sections};

/// The sections that are read, of those that a file has.
const WANTED: [SectionId; 14] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    // Where the units of a `.dwp` file are.
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    // gimli reads the header of the line table of each unit.
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTuIndex,
    SectionId::DebugTypes,
];
/// Maximum number of bytes of one decompressed section. A copy with more is refused as a whole
/// (`copy.rs`), so this is the limit of what a wrong size in a header can take.
const MAX_DECOMPRESSED: u64 = 512 << 20;
/// `ELFCOMPRESS_ZLIB` and `ELFCOMPRESS_ZSTD` of the ELF specification.
const ZLIB: u32 = 1;
const ZSTD: u32 = 2;

/// The content of the sections of one file.
#[derive(Debug)]
pub(super) struct SectionContents {
    mapping: Mapping,
    sections: Vec<(SectionId, Content)>,
    /// The table of symbols and its texts: offsets and sizes in the mapping.
    symbols: [(usize, usize); 2],
    /// The variables in the table of symbols, read when they are first needed.
    variables: OnceCell<VariableSymbols>,
}

#[derive(Debug)]
enum Content {
    /// The offset and the size in the mapping.
    Mapped(usize, usize),
    Decompressed(Vec<u8>),
}

impl SectionContents {
    /// Reads the sections of a copy that the worker made.
    pub fn of(copy: &File) -> io::Result<Self> {
        Self::named(copy, |id| Some(id.name()))
    }

    /// Reads the sections of a copy of a `.dwo` or a `.dwp` file.
    pub fn of_split(copy: &File) -> io::Result<Self> {
        Self::named(copy, SectionId::dwo_name)
    }

    fn named(copy: &File, name: fn(SectionId) -> Option<&'static str>) -> io::Result<Self> {
        let mut header = [0; 64];
        let got = read_up_to(copy, &mut header, 0)?;
        let wide = is_wide(&header, got).ok_or_else(|| io::Error::other("it is not an ELF file"))?;
        let all = Sections::read(copy, &header, got)?;
        let mapping = Mapping::of(copy)?;
        let mut sections = Vec::new();
        for id in WANTED {
            let Some(section) = name(id).and_then(|name| all.named(name)) else { continue };
            let [offset, size] =
                [section.offset, section.size].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            let bytes = mapping.range(offset, size);
            let content = match section.compressed {
                true => Content::Decompressed(decompressed(bytes, wide)?),
                false => Content::Mapped(offset, size),
            };
            sections.push((id, content));
        }
        // The tables of 32-bit programs have entries of another form.
        let table = all.named(".symtab").filter(|_| wide);
        let texts = table.and_then(|table| all.all.get(table.link as usize));
        let place = |section: Option<&FileSection>| {
            let number = |of: fn(&FileSection) -> u64| section.map_or(0, of);
            [number(|of| of.offset), number(|of| of.size)].map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        };
        let symbols = [table, texts].map(|section| place(section).into());
        Ok(Self { mapping, sections, symbols, variables: OnceCell::new() })
    }

    /// Returns the variable that contains an address by the table of symbols, with its name.
    pub fn variable_at(&self, address: u64) -> Option<(VariableSymbol, &[u8])> {
        let [_, texts] = self.symbols();
        self.variables().at(address, texts)
    }

    /// Returns where a kernel has the variables of which each CPU has a copy.
    pub fn per_cpu(&self) -> Range<u64> {
        self.variables().per_cpu.clone()
    }

    fn variables(&self) -> &VariableSymbols {
        let [table, texts] = self.symbols();
        self.variables.get_or_init(|| VariableSymbols::of(table, texts))
    }

    /// Returns the table of symbols, and the texts that it refers to.
    fn symbols(&self) -> [&[u8]; 2] {
        self.symbols.map(|(offset, size)| self.mapping.range(offset, size))
    }

    /// Returns a section; empty if the file does not have it.
    fn section(&self, id: SectionId) -> &[u8] {
        match self.sections.iter().find(|(known, _)| *known == id) {
            Some((_, Content::Mapped(offset, size))) => self.mapping.range(*offset, *size),
            Some((_, Content::Decompressed(bytes))) => bytes,
            None => &[],
        }
    }

    /// Returns the debug information.
    pub fn dwarf(&self) -> gimli::Dwarf<Bytes<'_>> {
        gimli::Dwarf::load(|id| self.load(id)).unwrap_or_default()
    }

    /// Returns the debug information of the unit `id` that `parent` refers to; `None` if it is not
    /// there.
    pub fn split<'a>(
        &'a self,
        id: DwoId,
        parent: &gimli::Dwarf<Bytes<'a>>,
    ) -> Option<gimli::Dwarf<Bytes<'a>>> {
        if self.section(SectionId::DebugCuIndex).is_empty() {
            let mut dwarf = self.dwarf();
            dwarf.make_dwo(parent);
            return Some(dwarf);
        }
        let package = DwarfPackage::load(|id| self.load(id), EndianSlice::new(&[], LittleEndian)).ok()?;
        package.find_cu(id, parent).ok().flatten()
    }

    fn load(&self, id: SectionId) -> Result<Bytes<'_>, gimli::Error> {
        Ok(EndianSlice::new(self.section(id), LittleEndian))
    }
}

/// Returns the content of a section that begins with a header of compression (`Elf64_Chdr`).
fn decompressed(section: &[u8], wide: bool) -> io::Result<Vec<u8>> {
    let (head, size) = if wide { (24, le64(section, 8)) } else { (12, u64::from(le32(section, 4))) };
    let (bytes, size) = (section.get(head..).unwrap_or_default(), size.min(MAX_DECOMPRESSED));
    let mut content = Vec::new();
    match le32(section, 0) {
        ZLIB => ZlibDecoder::new(bytes).take(size).read_to_end(&mut content)?,
        ZSTD => zstd::stream::Decoder::with_buffer(bytes)?.take(size).read_to_end(&mut content)?,
        other => {
            let what = format!("its debug information is compressed in the unknown way {other}");
            return Err(io::Error::other(what));
        }
    };
    Ok(content)
}

/// A copy in memory, mapped for reading.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn of(copy: &File) -> io::Result<Self> {
        let length = usize::try_from(copy.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Err(io::Error::other("it is empty"));
        }
        let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, copy.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("it is mapped at 0"))?;
        Ok(Self { start, length })
    }

    /// Returns bytes of the copy; none if they are not all in it.
    fn range(&self, offset: usize, size: usize) -> &[u8] {
        // SAFETY: the mapping has this length and lives as long as `self`. The file is a copy in
        // memory that only this process has, and nothing writes to it or truncates it any more.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) };
        offset.checked_add(size).and_then(|end| all.get(offset..end)).unwrap_or_default()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `range` lends its bytes for no longer than `self` lives.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
