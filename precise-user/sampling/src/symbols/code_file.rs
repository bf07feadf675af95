//! The files that contain code of processes, and their unwind information: what [`crate::unwind`]
//! asks.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustc_hash::FxHashMap;

use super::mapping::{MapKind, Mapped};
use super::resolve::BatchResolver;
use super::table_cache::{CacheCounts, TableKey};
use super::vaddr::vaddr;
use crate::reader::protocol::FileId;
use crate::reader::unwind::UnwindInfo;
use precise_model::Reason;

/// Maximum number of contents whose file is remembered between the two questions about it.
const MAX_CONTENTS: usize = 1 << 14;

/// Identifies the content of a file. A program chooses the path and the build id of what it maps,
/// but not these: a file that is written to, or another file with the same inode number, has
/// another time of change (`st_ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContentId {
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl ContentId {
    /// Returns the identity of a file's content; `None` if the file has none.
    pub(super) fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        })
    }

    /// Returns the identity as bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { device, inode, size, changed_s, changed_ns } = *self;
        let words = [device, inode, size, changed_s.cast_unsigned(), changed_ns.cast_unsigned()];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The unwind information of a file.
#[derive(Clone, Debug)]
pub struct FileUnwinding {
    /// The path of the file; empty if it is not known.
    pub path: String,
    /// The information, or why it cannot be read, in words that follow the path.
    pub info: Result<UnwindInfo, String>,
    /// Whether it was made in an earlier run.
    pub cached: bool,
    /// What became of the tables on disk so far.
    pub counts: CacheCounts,
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
pub(super) type ContentFiles = FxHashMap<ContentId, FileId>;

impl BatchResolver {
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

    /// Returns the unwind information of a file that [`Self::code_file`] has returned lately.
    pub fn unwind_info(&mut self, content: ContentId, frame_pointers: bool) -> FileUnwinding {
        let open = self.contents.get(&content).and_then(|&id| Some((id, self.files.get(id)?)));
        let Some((id, open)) = open else {
            let info = Err("was closed to make room for others".to_owned());
            return FileUnwinding {
                path: String::new(),
                info,
                cached: false,
                counts: CacheCounts::default(),
            };
        };
        let path = open.path.clone();
        let key = open.build_id.map(|build_id| TableKey { build_id, content, frame_pointers });
        let mut cache = self.tables.as_mut().zip(key);
        let kept = cache.as_mut().and_then(|(cache, key)| cache.get(key));
        let cached = kept.is_some();
        let info = match kept {
            Some(info) => Ok(info),
            None => self.reader.unwind(id, &open.file, frame_pointers),
        };
        if let (Some((cache, key)), Ok(info), false) = (&mut cache, &info, cached) {
            cache.put(key, info);
        }
        let info = info.map_err(|trouble| format!("cannot be read: {trouble}"));
        let counts = cache.map(|(cache, _)| cache.counts().clone()).unwrap_or_default();
        FileUnwinding { path, info, cached, counts }
    }
}
