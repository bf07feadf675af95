//! The headers of an ELF file: its segments, its build id, and which files hold its debug
//! information.
//!
//! Reads the file by position and never maps it, so that a file that shrinks meanwhile causes an
//! error and not a signal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Buf;
use serde::{Deserialize, Serialize};

use super::protocol::MAX_TEXT;
use super::sections::Sections;
use precise_records::record::BuildId;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// The flag of a segment that is executable.
pub const PF_X: u32 = 1;
/// The flag of a segment that is writable.
pub const PF_W: u32 = 2;
const NT_GNU_BUILD_ID: u32 = 3;
/// Maximum number of program headers, and maximum number of bytes of notes and of links, that are
/// read.
const MAX_HEADERS: u16 = 512;
const MAX_NOTES: u64 = 1 << 16;

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The virtual address of the first byte.
    pub vaddr: u64,
    /// The number of bytes in the file.
    pub file_size: u64,
    /// The number of bytes in memory; those beyond `file_size` are zero.
    pub mem_size: u64,
    /// [`PF_X`], [`PF_W`], and others.
    pub flags: u32,
}

/// The headers of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headers {
    build_id: Option<Vec<u8>>,
    /// The loadable segments.
    pub segments: Vec<Segment>,
    /// The name and the checksum of a file with the debug information (`.gnu_debuglink`).
    pub debug_link: Option<(String, u32)>,
    supplement: Option<(String, Vec<u8>)>,
    /// Whether the file itself has debug information.
    pub described: bool,
}

impl Headers {
    /// Reads the headers of `file`; `None` if it is not a little-endian ELF file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn read(file: &File) -> io::Result<Option<Self>> {
        let mut header = [0; 64];
        let got = read_up_to(file, &mut header, 0)?;
        let Some(wide) = is_wide(&header, got) else { return Ok(None) };
        // e_phoff, e_phentsize, e_phnum.
        let (table, entry, count) = if wide {
            (le64(&header, 32), le16(&header, 54), le16(&header, 56))
        } else {
            (u64::from(le32(&header, 28)), le16(&header, 42), le16(&header, 44))
        };
        let mut elf = Self::default();
        if usize::from(entry) >= if wide { 56 } else { 32 } {
            let mut headers = vec![0; usize::from(entry) * usize::from(count.min(MAX_HEADERS))];
            let got = read_up_to(file, &mut headers, table)?;
            headers.truncate(got);
            for raw in headers.chunks_exact(usize::from(entry)) {
                let (kind, segment) = program_header(raw, wide);
                if kind == PT_LOAD {
                    elf.segments.push(segment);
                } else if kind == PT_NOTE && elf.build_id.is_none() {
                    let notes = read_vec(file, segment.offset, segment.file_size.min(MAX_NOTES))?;
                    elf.build_id = build_id_in(&notes).map(|id| id.as_bytes().to_vec());
                }
            }
        }
        let sections = Sections::read(file, &header, got)?;
        let content = |name: &str| -> io::Result<Option<Vec<u8>>> {
            let Some(section) = sections.named(name) else { return Ok(None) };
            read_vec(file, section.offset, section.size.min(MAX_NOTES)).map(Some)
        };
        elf.debug_link = content(".gnu_debuglink")?.as_deref().and_then(debug_link);
        elf.supplement = content(".gnu_debugaltlink")?.as_deref().and_then(supplement);
        let has = |name: &str| sections.named(name).is_some_and(|section| section.size > 0);
        elf.described = has(".debug_info") || has(".zdebug_info");
        Ok(Some(elf))
    }

    /// Returns the build id; `None` if the file has none.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id.as_deref().and_then(BuildId::new)
    }

    /// Returns the path and the build id of the file with supplementary debug information
    /// (`.gnu_debugaltlink`); `None` if there is no such file.
    pub fn supplement(&self) -> Option<(&str, BuildId)> {
        let (path, id) = self.supplement.as_ref()?;
        Some((path, BuildId::new(id)?))
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
        self.segments.iter().find(holds).map(|s| (vaddr - s.vaddr).wrapping_add(s.offset))
    }
}

impl Segment {
    /// Returns the virtual address of the byte at a file offset.
    pub fn vaddr_of(&self, offset: u64) -> u64 {
        offset.wrapping_sub(self.offset).wrapping_add(self.vaddr)
    }
}

/// Returns whether a file header of `got` bytes is that of a 64-bit ELF file, or of a 32-bit one;
/// `None` if it is neither, or big-endian.
pub(super) fn is_wide(header: &[u8; 64], got: usize) -> Option<bool> {
    match header {
        [0x7f, b'E', b'L', b'F', 1, 1, ..] if got >= 52 => Some(false),
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if got == 64 => Some(true),
        _ => None,
    }
}

/// Returns the name of a file below a folder of debug information, by its build id:
/// `.build-id/ab/cdef…` followed by `ending`. `None` for a build id of no byte.
pub fn by_build_id(id: &BuildId, ending: &str) -> Option<String> {
    let hex = id.hex();
    let (first, rest) = hex.split_at_checked(2)?;
    Some(format!(".build-id/{first}/{rest}{ending}"))
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

/// Parses `.gnu_debuglink`: a file name, zeros up to a multiple of four bytes, and a checksum. Only
/// the last part of the name counts, because a file may be found in debug folders only.
fn debug_link(section: &[u8]) -> Option<(String, u32)> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(section.get(..end)?).ok().filter(|name| name.len() <= MAX_TEXT)?;
    let name = name.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | ".."))?;
    let mut sum = section.get((end + 1).checked_next_multiple_of(4)?..)?;
    Some((name.to_owned(), sum.try_get_u32_le().ok()?))
}

/// Parses `.gnu_debugaltlink`: a path, a zero, and the build id of the file.
fn supplement(section: &[u8]) -> Option<(String, Vec<u8>)> {
    let end = section.iter().position(|&byte| byte == 0).filter(|&end| end <= MAX_TEXT)?;
    let path = std::str::from_utf8(section.get(..end)?).ok()?;
    Some((path.to_owned(), BuildId::new(section.get(end + 1..)?)?.as_bytes().to_vec()))
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

/// Reads up to `length` bytes, which the caller has bounded. Returns fewer if the file ends.
pub(super) fn read_vec(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let got = read_up_to(file, &mut bytes, offset)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
pub(super) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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

pub(super) fn le16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|mut b| b.try_get_u16_le().ok()).unwrap_or(0)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|mut b| b.try_get_u32_le().ok()).unwrap_or(0)
}

pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|mut b| b.try_get_u64_le().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn this_program_has_segments() {
        let file = File::open("/proc/self/exe").expect("readable");
        let elf = Headers::read(&file).expect("readable").expect("an ELF file");
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

    #[test]
    fn links_name_a_file_and_no_folder() {
        assert_eq!(debug_link(b"x.debug\0\x01\x02\x03\x04"), Some(("x.debug".to_owned(), 0x0403_0201)));
        assert_eq!(debug_link(b"/dev/watchdog\0\0\0\x01\0\0\0"), Some(("watchdog".to_owned(), 1)));
        assert_eq!(debug_link(b"../../etc/..\0\0\0\0\x01\0\0\0"), None);
        assert_eq!(debug_link(b"x.debug"), None);
        assert_eq!(supplement(b"../.dwz/x\0\x01\x02"), Some(("../.dwz/x".to_owned(), vec![1, 2])));
        assert_eq!(supplement(b"/etc/shadow\0"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, wide: bool, notes: Vec<u8>) {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 1]).expect("written");
            file.write_all(&bytes).expect("written");
            let _ = Headers::read(&file);
            let _ = build_id_in(&notes);
            let _ = debug_link(&notes);
        }
    }
}
