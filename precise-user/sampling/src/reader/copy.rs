//! Copies of the parts of ELF files that name addresses.
//!
//! The symbolization library maps the files that it reads. A mapping of somebody else's file ends
//! the process when that file is truncated, and changes under its reader. So the library gets a
//! copy in memory: the tables of symbols and the debug information, without code and data. A copy
//! is bounded before its first byte is read, whatever the file claims, and whatever holes it has.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::elf::{is_wide, le32, le64, read_up_to, read_vec};
use super::sections::{FileSection, Sections};

/// Maximum number of bytes of a copy.
pub(super) const MAX_FILE: u64 = 1 << 30;
/// Maximum number of bytes that the compressed sections of a file may have when decompressed.
const MAX_DECOMPRESSED: u64 = 512 << 20;
/// Number of bytes per read: what the cache of a core keeps until they are written.
const CHUNK: u64 = 64 << 10;
/// Alignment of the content of sections in bytes: that of every table in it.
const ALIGNED: u64 = 16;

/// The first number of sections that does not fit into the header (`SHN_LORESERVE`).
const RESERVED: u16 = 0xff00;
const SHT_NULL: u32 = 0;
const SHT_SYMTAB: u32 = 2;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;
const SHT_SYMTAB_SHNDX: u32 = 18;

/// A copy.
#[derive(Debug)]
pub(super) struct Copied {
    /// The copy, in memory.
    pub file: File,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Copies the tables of symbols of a file, and with `lines` its debug information.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not an ELF file, or is too large.
pub(super) fn copy(file: &File, lines: bool) -> io::Result<Copied> {
    let mut header = [0; 64];
    let got = read_up_to(file, &mut header, 0)?;
    let wide = is_wide(&header, got).ok_or_else(|| io::Error::other("it is not an ELF file"))?;
    let sections = Sections::read(file, &header, got)?;
    let wanted = wanted(&sections, lines);
    let length = file.metadata()?.len();
    let mut plan = Plan::new(header, wide, &sections);
    for (index, section) in sections.all.iter().enumerate() {
        if wanted.get(index) != Some(&true) {
            plan.leave_out(index);
            continue;
        }
        // What is beyond the end of the file is not read as zeros: the claim is wrong.
        let size = section.size.min(length.saturating_sub(section.offset));
        plan.take(index, section.offset, size);
    }
    plan.check(file, length, &sections, &wanted)?;
    let memory = rustix::fs::memfd_create(c"copy", rustix::fs::MemfdFlags::CLOEXEC)?;
    plan.write(file, File::from(memory))
}

/// Returns for each section whether it is copied.
fn wanted(sections: &Sections, lines: bool) -> Vec<bool> {
    let of_debug = |section: &FileSection| {
        let name = section.name.as_str();
        name.starts_with(".debug_") || name.starts_with(".zdebug_") || name == ".gnu_debugaltlink"
    };
    let mut wanted: Vec<bool> = sections
        .all
        .iter()
        .map(|section| match section.kind {
            SHT_SYMTAB | SHT_DYNSYM | SHT_SYMTAB_SHNDX => true,
            SHT_NOTE => section.name == ".note.gnu.build-id",
            SHT_NULL | SHT_NOBITS => false,
            _ => lines && of_debug(section),
        })
        .collect();
    let linked = sections.all.iter().filter(|s| matches!(s.kind, SHT_SYMTAB | SHT_DYNSYM));
    let needed: Vec<usize> = linked.map(|s| s.link as usize).chain([sections.names]).collect();
    for index in needed {
        if let Some(wanted) = wanted.get_mut(index)
            && sections.all.get(index).is_some_and(|section| section.kind != SHT_NOBITS)
        {
            *wanted = true;
        }
    }
    wanted
}

/// What a copy will contain.
struct Plan {
    wide: bool,
    header: [u8; 64],
    table: Vec<u8>,
    entry: usize,
    /// The offset in the original, the size, and the offset in the copy, in bytes.
    parts: Vec<(u64, u64, u64)>,
    end: u64,
}

impl Plan {
    fn new(mut header: [u8; 64], wide: bool, sections: &Sections) -> Self {
        // The copy has no segments. Its table of sections follows the header.
        let size = if wide { 64_u64 } else { 52 };
        let table = if sections.all.is_empty() { 0 } else { size.next_multiple_of(ALIGNED) };
        if wide {
            put(&mut header, 32, &[0; 8]);
            put(&mut header, 40, &table.to_le_bytes());
            put(&mut header, 56, &[0; 2]);
        } else {
            put(&mut header, 28, &[0; 4]);
            put(&mut header, 32, &(table as u32).to_le_bytes());
            put(&mut header, 44, &[0; 2]);
        }
        if sections.all.is_empty() {
            put(&mut header, if wide { 60 } else { 48 }, &[0; 4]);
        }
        let end = (table.max(size) + sections.raw.len() as u64).next_multiple_of(ALIGNED);
        let mut plan =
            Self { wide, header, table: sections.raw.clone(), entry: sections.entry, parts: Vec::new(), end };
        // More sections than were read must not be looked for. The count is in the header, or, if
        // it does not fit there, in the first section.
        let at = if wide { 60 } else { 48 };
        match u16::try_from(sections.all.len()) {
            Ok(count) if count < RESERVED => put(&mut plan.header, at, &count.to_le_bytes()),
            _ => {
                put(&mut plan.header, at, &[0; 2]);
                plan.set_place(0, 0, sections.all.len() as u64);
            }
        }
        plan
    }

    /// Leaves the section without a content, and without a name by which it would be found.
    fn leave_out(&mut self, index: usize) {
        let at = index * self.entry;
        if index > 0 {
            put(&mut self.table, at, &[0; 4]);
            put(&mut self.table, at + 4, &SHT_NOBITS.to_le_bytes());
            self.set_place(index, 0, 0);
        }
    }

    fn take(&mut self, index: usize, offset: u64, size: u64) {
        self.set_place(index, self.end, size);
        self.parts.push((offset, size, self.end));
        self.end = self.end.saturating_add(size).saturating_add(ALIGNED) & !(ALIGNED - 1);
    }

    fn set_place(&mut self, index: usize, offset: u64, size: u64) {
        let at = index * self.entry;
        if self.wide {
            put(&mut self.table, at + 24, &offset.to_le_bytes());
            put(&mut self.table, at + 32, &size.to_le_bytes());
        } else {
            put(&mut self.table, at + 16, &(offset as u32).to_le_bytes());
            put(&mut self.table, at + 20, &(size as u32).to_le_bytes());
        }
    }

    /// Returns an error if the copy, or what the library would make of it, is too large.
    fn check(&self, file: &File, length: u64, sections: &Sections, wanted: &[bool]) -> io::Result<()> {
        // The sections of a sound file do not overlap. Otherwise a small file would become a large
        // copy.
        let taken = self.parts.iter().map(|(_, size, _)| *size).fold(0, u64::saturating_add);
        if taken > length {
            return Err(io::Error::other("its sections overlap"));
        }
        if self.end > MAX_FILE {
            return Err(too_large("symbols and debug information", self.end, MAX_FILE));
        }
        let mut claimed = 0_u64;
        for (section, _) in sections.all.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            let head = read_vec(file, section.offset, 24.min(section.size))?;
            if section.compressed {
                // ch_size of Elf64_Chdr and Elf32_Chdr.
                claimed = claimed.saturating_add(if self.wide {
                    le64(&head, 8)
                } else {
                    u64::from(le32(&head, 4))
                });
            } else if section.name.starts_with(".zdebug_") && head.starts_with(b"ZLIB") {
                claimed = claimed.saturating_add(le64(&head, 4).swap_bytes());
            }
        }
        if claimed > MAX_DECOMPRESSED {
            return Err(too_large("decompressed debug information", claimed, MAX_DECOMPRESSED));
        }
        Ok(())
    }

    fn write(self, from: &File, to: File) -> io::Result<Copied> {
        to.set_len(self.end)?;
        let header = if self.wide { &self.header[..] } else { self.header.get(..52).unwrap_or_default() };
        to.write_all_at(header, 0)?;
        to.write_all_at(&self.table, (header.len() as u64).next_multiple_of(ALIGNED))?;
        let mut buffer = Vec::new();
        for (offset, size, place) in self.parts {
            let mut done = 0;
            while done < size {
                buffer.resize((size - done).min(CHUNK) as usize, 0);
                let got = read_up_to(from, &mut buffer, offset.saturating_add(done))?;
                if got == 0 {
                    // The file was truncated. The rest of the section is zeros.
                    break;
                }
                to.write_all_at(buffer.get(..got).unwrap_or_default(), place + done)?;
                done += got as u64;
            }
        }
        Ok(Copied { file: to, bytes: self.end })
    }
}

fn too_large(what: &str, bytes: u64, limit: u64) -> io::Error {
    io::Error::other(format!("its {what} take {} MiB, which is more than {} MiB", bytes >> 20, limit >> 20))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
