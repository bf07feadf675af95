//! The files that contain code of processes, and their unwind information: what [`crate::unwind`]
//! asks.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustc_hash::FxHashMap;

use super::mapping::{MapKind, Mapped};
use super::resolve::Resolver;
use super::vaddr::vaddr;
use crate::reader::protocol::FileId;
use crate::reader::unwind::UnwindInfo;
use precise_model::Reason;

/// Maximum number of contents whose file is remembered between the two questions about it.
const MAX_CONTENTS: usize = 1 << 14;

/// Identifies the content of a file. Whoever maps a file chooses its path and build id, but not
/// these: a file that is written to, or another file with the same inode number, has another time
/// of change (`st_ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContentId {
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl ContentId {
    fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        })
    }
}

/// The file of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// Its content.
    pub content: ContentId,
    /// The difference between a runtime address in the mapping and the address in the ELF file.
    pub bias: u64,
}

/// The files of contents, for the second of two questions about them.
pub(super) type Contents = FxHashMap<ContentId, FileId>;

impl Resolver {
    /// Returns the file of a mapping of code.
    ///
    /// # Errors
    ///
    /// Returns why there is none that can be read.
    pub fn code_file(&mut self, mapped: &Mapped) -> Result<CodeFile, Reason> {
        let start = mapped.mapping.start;
        let id = match mapped.mapping.kind {
            MapKind::Vdso => self.vdso().map(|(id, _)| id).ok_or(Reason::FileMissing)?,
            MapKind::File | MapKind::Memfd => self.files.find(&mut self.reader, mapped)?,
            _ => return Err(Reason::FileMissing),
        };
        let open = self.files.get(id).ok_or(Reason::FileMissing)?;
        let address = match (mapped.mapping.kind, &open.elf) {
            // Its image begins at address 0.
            (MapKind::Vdso, _) => Some(mapped.mapping.page_offset),
            (_, Some(elf)) => vaddr(elf, mapped, start),
            (_, None) => None,
        };
        let bias = start.wrapping_sub(address.ok_or(Reason::Failed)?);
        let content = ContentId::of(&open.file).ok_or(Reason::FileMissing)?;
        if self.contents.len() >= MAX_CONTENTS {
            self.contents.clear();
        }
        self.contents.insert(content, id);
        self.forget_closed();
        Ok(CodeFile { content, bias })
    }

    /// Returns the unwind information of a file that [`Self::code_file`] has returned lately, and
    /// the path of the file.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, in words that follow the path of the file, if that is known.
    pub fn unwind_info(
        &mut self,
        content: ContentId,
        frame_pointers: bool,
    ) -> (String, Result<UnwindInfo, String>) {
        let open = self.contents.get(&content).and_then(|&id| Some((id, self.files.get(id)?)));
        let Some((id, open)) = open else {
            return (String::new(), Err("was closed to make room for others".to_owned()));
        };
        let info = self.reader.unwind(id, &open.file, frame_pointers);
        (open.path.clone(), info.map_err(|trouble| format!("cannot be read: {trouble}")))
    }
}
