//! Unwind tables of ELF files: what `precise_common::unwind` says, made of `.eh_frame` and
//! `.debug_frame`.
//!
//! The process that reads the file makes the table; the process that samples checks it
//! ([`UnwindInfo::check`]) and publishes it. Functions are found first (`functions.rs`), put into
//! order, and evaluated one behind another: so rows come sorted by address, and a table is built
//! without a second copy (`table.rs`). `rule.rs` translates what a function says about an address
//! into a rule.

mod functions;
mod rule;
mod table;

use std::fs::File;
use std::io;

use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian, Section as _};
use serde::{Deserialize, Serialize};

use super::elf::{Headers, PF_X, Segment, is_wide, le16, read_up_to, read_vec};
use super::protocol::MAX_TEXT;
use super::sections::{FileSection, Sections};
use functions::{FrameSection, Functions};
use table::TableBuilder;
pub use table::UnwindTable;

/// Maximum number of bytes of a section that is read. That of a browser has 30 MiB.
const MAX_SECTION: u64 = 128 << 20;
/// Maximum number of segments in an answer.
const MAX_SEGMENTS: usize = 512;
/// The machine of a program that a table is made for (`EM_X86_64`), and the types of files that are
/// mapped as code (`ET_EXEC`, `ET_DYN`).
const X86_64: u16 = 62;
const EXECUTABLE: std::ops::RangeInclusive<u16> = 2..=3;

/// The unwind information of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwindInfo {
    /// The loadable segments that are executable, for the bias of a mapping.
    pub segments: Vec<Segment>,
    /// How its code is unwound.
    pub code: CodeUnwinding,
    /// The number of functions whose unwind information is damaged, or contradicts that of another
    /// function. The table has nothing about them, or says that they are unsupported.
    pub skipped: u64,
}

/// How the code of a file is unwound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeUnwinding {
    /// By a table.
    Table(UnwindTable),
    /// By frame pointers: most of the code was compiled by Go, which keeps them.
    FramePointers,
    /// Not at all, for this reason: words that follow the name of the file, such as "has no
    /// .eh_frame section".
    None(String),
}

impl UnwindInfo {
    /// Checks an answer of the reader. A hostile file may have taken over the reader, and then
    /// wrote the answer itself.
    ///
    /// # Errors
    ///
    /// Returns what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.segments.len() > MAX_SEGMENTS {
            return Err("it has too many segments");
        }
        match &self.code {
            CodeUnwinding::Table(table) => table.check(),
            CodeUnwinding::None(reason) if reason.len() > MAX_TEXT => Err("its reason is too long"),
            CodeUnwinding::None(_) | CodeUnwinding::FramePointers => Ok(()),
        }
    }
}

/// Makes the unwind information of a file.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is not an ELF file.
pub(super) fn read(file: &File, frame_pointers: bool) -> io::Result<UnwindInfo> {
    let mut header = [0; 64];
    let got = read_up_to(file, &mut header, 0)?;
    let not_elf = || io::Error::other("it is not an ELF file");
    let wide = is_wide(&header, got).ok_or_else(not_elf)?;
    let headers = Headers::read(file)?.ok_or_else(not_elf)?;
    let mut segments = headers.segments;
    segments.retain(|segment| segment.flags & PF_X != 0);
    let mut info = UnwindInfo { segments, code: CodeUnwinding::FramePointers, skipped: 0 };
    // e_type, e_machine.
    let made = if !wide || le16(&header, 18) != X86_64 {
        Err("is not a program for x86-64".to_owned())
    } else if !EXECUTABLE.contains(&le16(&header, 16)) {
        Err("is neither a program nor a library".to_owned())
    } else {
        let sections = Sections::read(file, &header, got)?;
        code(file, &sections, &info.segments, TableBuilder::new(frame_pointers), &mut info.skipped)?
    };
    info.code = made.unwrap_or_else(CodeUnwinding::None);
    Ok(info)
}

/// Makes the table; or returns why there is none.
fn code(
    file: &File,
    sections: &Sections,
    segments: &[Segment],
    mut builder: TableBuilder,
    skipped: &mut u64,
) -> io::Result<Result<CodeUnwinding, String>> {
    let go = [".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid"];
    let go = go.iter().any(|name| sections.named(name).is_some());
    let eh_frame = content(file, sections, ".eh_frame")?;
    let debug_frame = content(file, sections, ".debug_frame")?;
    let (eh_frame, debug_frame) = match (eh_frame, debug_frame) {
        (Ok(None), Ok(None)) if go => return Ok(Ok(CodeUnwinding::FramePointers)),
        (Ok(None), Ok(None)) => return Ok(Err("has no .eh_frame section".to_owned())),
        // The other section may be enough.
        (Ok(Some(eh_frame)), debug_frame) => (eh_frame, debug_frame.ok().flatten().unwrap_or_default()),
        (_, Ok(Some(debug_frame))) => (Vec::new(), debug_frame),
        (Err(_), _) | (_, Err(_)) if go => return Ok(Ok(CodeUnwinding::FramePointers)),
        (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
    };
    let address = |name: &str| sections.named(name).map_or(0, |section| section.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let eh_frame = EhFrame::new(&eh_frame, LittleEndian);
    let debug_frame = DebugFrame::new(&debug_frame, LittleEndian);

    let mut functions = Functions::new(segments);
    functions.collect(&eh_frame, &bases, FrameSection::EhFrame);
    functions.collect(&debug_frame, &bases, FrameSection::DebugFrame);
    let functions = functions.sorted();
    *skipped += functions.skipped;
    let text = segments.iter().map(|segment| segment.file_size).fold(0, u64::saturating_add);
    // Such a program has C code as well, with unwind information of its own.
    if go && functions.bytes() < text / 2 {
        return Ok(Ok(CodeUnwinding::FramePointers));
    }
    let built = functions.evaluate(&eh_frame, &debug_frame, &bases, &mut builder);
    Ok(built.and_then(|damaged| {
        *skipped += damaged;
        builder.finish().map(CodeUnwinding::Table).ok_or_else(|| {
            let section = if eh_frame.reader().is_empty() { ".debug_frame" } else { ".eh_frame" };
            format!("has a section {section} without a function that can be read")
        })
    }))
}

/// Returns the content of a section; `None` if there is no such section, and a reason if it is not
/// read.
fn content(file: &File, sections: &Sections, name: &str) -> io::Result<Result<Option<Vec<u8>>, String>> {
    let Some(section) = sections.named(name).filter(|section| section.size > 0) else { return Ok(Ok(None)) };
    let FileSection { size, offset, compressed, .. } = *section;
    if compressed {
        return Ok(Err(format!("has a compressed section {name}, which is not read")));
    }
    if size > MAX_SECTION {
        let (size, limit) = (size >> 20, MAX_SECTION >> 20);
        return Ok(Err(format!("has a section {name} of {size} MiB, which is more than {limit} MiB")));
    }
    // A section that is cut is damaged at its end, as far as its functions are concerned.
    let size = size.min(file.metadata()?.len().saturating_sub(offset));
    read_vec(file, offset, size).map(|bytes| Ok(Some(bytes)))
}

#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod tests;
