//! The table of sections of an ELF file, read by position.

use std::fs::File;
use std::io;

use super::elf::{is_wide, le16, le32, le64, read_vec};

/// Maximum number of sections that are read.
const MAX_SECTIONS: u64 = 1 << 16;
/// Maximum size in bytes of the names of sections.
const MAX_NAMES: u64 = 4 << 20;
/// The number of sections, or the index of their names, is in the first section header
/// (`SHN_XINDEX`).
const EXTENDED: u16 = 0xffff;
const SHT_NOBITS: u32 = 8;
const SHF_COMPRESSED: u64 = 1 << 11;

/// A section.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FileSection {
    /// The name; empty if it is not UTF-8.
    pub name: String,
    /// The type, as in elf(5).
    pub kind: u32,
    /// Whether the content is compressed.
    pub compressed: bool,
    /// The virtual address of the content; 0 if it is not loaded.
    pub address: u64,
    /// The offset of the content in the file, in bytes.
    pub offset: u64,
    /// The size of the content in the file, in bytes: 0 for a section without content.
    pub size: u64,
    /// The index of a section that belongs to this one.
    pub link: u32,
}

/// The sections of a file, and their table as it is in the file.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// The sections.
    pub all: Vec<FileSection>,
    /// The table in the file.
    pub raw: Vec<u8>,
    /// The size of an entry of the table, in bytes.
    pub entry: usize,
    /// The index of the section with the names of sections.
    pub names: usize,
}

impl Sections {
    /// Reads the table of the file whose header is `header`, of which `got` bytes exist. A file
    /// that is not an ELF file, or that has no table, has no sections.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn read(file: &File, header: &[u8; 64], got: usize) -> io::Result<Self> {
        let Some(wide) = is_wide(header, got) else { return Ok(Self::default()) };
        // e_shoff, e_shentsize, e_shnum, e_shstrndx.
        let (table, entry, count, names) = if wide {
            (le64(header, 40), le16(header, 58), le16(header, 60), le16(header, 62))
        } else {
            (u64::from(le32(header, 32)), le16(header, 46), le16(header, 48), le16(header, 50))
        };
        let entry = usize::from(entry);
        // Other sizes exist in no file, and would have to be told apart when the table is copied.
        if table == 0 || entry != if wide { 64 } else { 40 } {
            return Ok(Self::default());
        }
        let first = section(&read_vec(file, table, entry as u64)?, wide);
        let count = if count == 0 { first.size } else { u64::from(count) }.min(MAX_SECTIONS);
        let mut raw = read_vec(file, table, count * entry as u64)?;
        raw.truncate(raw.len() / entry * entry);
        let mut all: Vec<FileSection> = raw.chunks_exact(entry).map(|raw| section(raw, wide)).collect();
        let names = if names == EXTENDED { first.link as usize } else { usize::from(names) };
        let texts = match all.get(names) {
            Some(section) => read_vec(file, section.offset, section.size.min(MAX_NAMES))?,
            None => Vec::new(),
        };
        for (section, raw) in all.iter_mut().zip(raw.chunks_exact(entry)) {
            let name = texts.get(le32(raw, 0) as usize..).unwrap_or_default();
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
            let name = name.get(..end.min(256)).unwrap_or_default();
            section.name = std::str::from_utf8(name).unwrap_or_default().to_owned();
            if section.kind == SHT_NOBITS {
                section.size = 0;
            }
        }
        Ok(Self { all, raw, entry, names })
    }

    /// Returns the first section with this name.
    pub fn named(&self, name: &str) -> Option<&FileSection> {
        self.all.iter().find(|section| section.name == name)
    }
}

fn section(raw: &[u8], wide: bool) -> FileSection {
    let narrow = |at| u64::from(le32(raw, at));
    let (flags, address, offset, size, link) = if wide {
        (le64(raw, 8), le64(raw, 16), le64(raw, 24), le64(raw, 32), le32(raw, 40))
    } else {
        (narrow(8), narrow(12), narrow(16), narrow(20), le32(raw, 24))
    };
    let compressed = flags & SHF_COMPRESSED != 0;
    FileSection { name: String::new(), kind: le32(raw, 4), compressed, address, offset, size, link }
}
