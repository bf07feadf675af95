//! A minimal ELF reader for the segments and the build id.
//!
//! Reads the file by position and never maps it, so that a file that shrinks meanwhile causes an
//! error and not a signal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Buf;

use super::mapping::{MapKind, Mapped};
use precise_records::record::BuildId;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const NT_GNU_BUILD_ID: u32 = 3;
/// Maximum number of program headers, and maximum number of bytes of notes, that are read.
const MAX_HEADERS: u16 = 512;
const MAX_NOTES: u64 = 1 << 16;
const PAGE: u64 = 4096;

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    vaddr: u64,
    file_size: u64,
    mem_size: u64,
    flags: u32,
}

impl Segment {
    /// Returns whether `offset` is in a page of the file that the kernel maps for this segment.
    fn maps(&self, offset: u64) -> bool {
        let begin = self.offset & !(PAGE - 1);
        let end = self.offset.saturating_add(self.file_size).saturating_add(PAGE - 1) & !(PAGE - 1);
        (begin..end).contains(&offset)
    }

    fn vaddr_of(&self, offset: u64) -> u64 {
        offset.wrapping_sub(self.offset).wrapping_add(self.vaddr)
    }
}

/// The segments and the build id of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Elf {
    /// The build id; `None` if the file has none.
    pub build_id: Option<BuildId>,
    segments: Vec<Segment>,
}

impl Elf {
    /// Reads the headers of `file`; `None` if it is not a little-endian ELF file.
    pub fn read(file: &File) -> io::Result<Option<Self>> {
        let mut header = [0; 64];
        let got = read_up_to(file, &mut header, 0)?;
        let wide = match header {
            [0x7f, b'E', b'L', b'F', 1, 1, ..] if got >= 52 => false,
            [0x7f, b'E', b'L', b'F', 2, 1, ..] if got == 64 => true,
            _ => return Ok(None),
        };
        // e_phoff, e_phentsize, e_phnum.
        let (table, entry, count) = if wide {
            (le64(&header, 32), le16(&header, 54), le16(&header, 56))
        } else {
            (u64::from(le32(&header, 28)), le16(&header, 42), le16(&header, 44))
        };
        if usize::from(entry) < if wide { 56 } else { 32 } {
            return Ok(None);
        }
        let mut headers = vec![0; usize::from(entry) * usize::from(count.min(MAX_HEADERS))];
        let got = read_up_to(file, &mut headers, table)?;
        headers.truncate(got);
        let mut elf = Self::default();
        for raw in headers.chunks_exact(usize::from(entry)) {
            let (kind, segment) = program_header(raw, wide);
            if kind == PT_LOAD {
                elf.segments.push(segment);
            } else if kind == PT_NOTE && elf.build_id.is_none() {
                let mut notes = vec![0; usize::try_from(segment.file_size.min(MAX_NOTES)).unwrap_or(0)];
                let got = read_up_to(file, &mut notes, segment.offset)?;
                notes.truncate(got);
                elf.build_id = build_id_in(&notes);
            }
        }
        Ok(Some(elf))
    }

    /// Returns the virtual address of the code at a file offset; `None` if there is no code.
    pub fn code_vaddr(&self, offset: u64) -> Option<u64> {
        let code = self.segments.iter().filter(|s| s.flags & PF_X != 0);
        code.clone()
            .find(|s| (s.offset..s.offset.saturating_add(s.file_size)).contains(&offset))
            .map(|s| s.vaddr_of(offset))
    }

    /// Returns the file offset of the byte at a virtual address; `None` if the file does not
    /// contain it.
    pub fn offset_of_vaddr(&self, vaddr: u64) -> Option<u64> {
        let holds = |s: &&Segment| (s.vaddr..s.vaddr.saturating_add(s.file_size)).contains(&vaddr);
        self.segments.iter().find(holds).map(|s| vaddr - s.vaddr + s.offset)
    }

    /// Returns the virtual address in the file of the runtime address `address` in `mapped`; `None`
    /// if no segment contains it.
    pub fn vaddr(&self, mapped: &Mapped, address: u64) -> Option<u64> {
        if let Some(vaddr) = self.vaddr_from_base(mapped, address) {
            return Some(vaddr);
        }
        if mapped.mapping.kind == MapKind::Bss {
            return None;
        }
        // Two segments may share a page of the file; the protection of the mapping decides between
        // them.
        let offset = mapped.file_offset(address);
        let wanted = |s: &&Segment| s.maps(offset) && (s.flags & PF_X != 0) == mapped.mapping.executable;
        let writable = |s: &&Segment| wanted(s) && (s.flags & PF_W != 0) == mapped.mapping.writable;
        let mut segments = self.segments.iter();
        let found = segments.clone().find(writable).or_else(|| segments.clone().find(wanted));
        found.or_else(|| segments.find(|s| s.maps(offset))).map(|s| s.vaddr_of(offset))
    }

    /// Returns the virtual address computed from the image base, which is the only way for
    /// addresses without a file offset.
    fn vaddr_from_base(&self, mapped: &Mapped, address: u64) -> Option<u64> {
        let base = mapped.image_base?;
        let first = self.segments.iter().find(|s| s.offset & !(PAGE - 1) == 0)?;
        let vaddr = address.wrapping_sub(base).wrapping_add(first.vaddr & !(PAGE - 1));
        let inside = |s: &&Segment| {
            let page = s.vaddr & !(PAGE - 1);
            (page..s.vaddr.saturating_add(s.mem_size)).contains(&vaddr)
        };
        if mapped.mapping.kind == MapKind::Bss {
            return self.segments.iter().find(inside).map(|_| vaddr);
        }
        // A file that is mapped only to be read is not laid out as its segments say.
        let offset = mapped.file_offset(address);
        self.segments.iter().filter(|s| s.maps(offset)).any(|s| s.vaddr_of(offset) == vaddr).then_some(vaddr)
    }
}

/// Returns the build id among ELF notes, which `/sys/kernel/notes` contains as well.
pub fn build_id_in(mut notes: &[u8]) -> Option<BuildId> {
    loop {
        let name_size = notes.try_get_u32_le().ok()?;
        let size = notes.try_get_u32_le().ok()?;
        let kind = notes.try_get_u32_le().ok()?;
        let padded = |size: u32| usize::try_from(size).ok()?.checked_next_multiple_of(4);
        let (name, rest) = notes.split_at_checked(padded(name_size)?)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(rest.get(..usize::try_from(size).ok()?)?);
        }
        notes = rest.get(padded(size)?..)?;
    }
}

fn program_header(raw: &[u8], wide: bool) -> (u32, Segment) {
    let segment = if wide {
        Segment {
            flags: le32(raw, 4),
            offset: le64(raw, 8),
            vaddr: le64(raw, 16),
            file_size: le64(raw, 32),
            mem_size: le64(raw, 40),
        }
    } else {
        let word = |at| u64::from(le32(raw, at));
        Segment {
            flags: le32(raw, 24),
            offset: word(4),
            vaddr: word(8),
            file_size: word(16),
            mem_size: word(20),
        }
    };
    (le32(raw, 0), segment)
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let Some(at) = offset.checked_add(done as u64).filter(|&at| at <= i64::MAX as u64) else { break };
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(got) => done += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|mut b| b.try_get_u16_le().ok()).unwrap_or(0)
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|mut b| b.try_get_u32_le().ok()).unwrap_or(0)
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|mut b| b.try_get_u64_le().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn this_program_has_segments() {
        let file = File::open("/proc/self/exe").expect("readable");
        let elf = Elf::read(&file).expect("readable").expect("an ELF file");
        assert!(elf.segments.iter().any(|s| s.flags & PF_X != 0));
        assert!(elf.segments.iter().any(|s| s.flags & PF_W != 0 && s.mem_size >= s.file_size));
    }

    #[test]
    fn notes_have_a_build_id_among_others() {
        let mut notes = Vec::new();
        for (kind, name, content) in
            [(1u32, "GNU\0", vec![0u8; 5]), (3, "Go\0\0", vec![9; 4]), (3, "GNU\0", vec![7; 20])]
        {
            notes.extend(4u32.to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name.as_bytes());
            notes.extend(&content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_in(&notes), BuildId::new(&[7; 20]));
        assert_eq!(build_id_in(&notes[..notes.len() - 21]), None);
        assert!(build_id_in(&std::fs::read("/sys/kernel/notes").unwrap_or(notes)).is_some());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, wide: bool, notes: Vec<u8>) {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 1]).expect("written");
            file.write_all(&bytes).expect("written");
            let _ = Elf::read(&file);
            let _ = build_id_in(&notes);
        }
    }
}
