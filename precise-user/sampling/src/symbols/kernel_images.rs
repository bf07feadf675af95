//! The addresses of a recorded kernel and its modules, from `PERF_RECORD_MMAP` of process -1.

use std::collections::BTreeMap;

use super::kernel::KERNEL;
use precise_model::{CodeLocation, Name, NameId, Names};
use precise_records::record::{BuildId, MappedFileId, MmapRecord};

/// The process id of the kernel's mappings in records.
pub const KERNEL_PID: u32 = u32::MAX;
/// Maximum memory of all parts, in bytes: a kernel has some hundred modules.
const MAX_BYTES: usize = 4 << 20;

/// The kernel or one of its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    end: u64,
    name: String,
    build_id: Option<BuildId>,
}

/// The kernel and its modules, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelImages {
    images: BTreeMap<u64, Image>,
    first_symbol: Option<(String, u64)>,
    /// The bytes of `images`.
    bytes: usize,
    /// The number of parts that were left out because of [`MAX_BYTES`].
    left_out: u64,
}

impl KernelImages {
    /// Adds a mapping of process [`KERNEL_PID`]. `build_id_of` returns the build id that is known
    /// for a path; it is used if the record has none.
    pub fn add(&mut self, map: &MmapRecord, build_id_of: impl Fn(&str) -> Option<BuildId>) {
        let (name, path) = name_of(&map.path);
        // The nodes of a B-tree are at least half full.
        let bytes = 2 * size_of::<(u64, Image)>() + name.len();
        if self.bytes + bytes > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += bytes;
        let build_id = match map.file {
            MappedFileId::BuildId(id) => Some(id),
            _ => build_id_of(path),
        };
        let end = map.start.saturating_add(map.len);
        if name == KERNEL && self.first_symbol.is_none() {
            self.first_symbol =
                Some((map.path.get(path.len()..).unwrap_or_default().to_owned(), map.page_offset));
        }
        if let Some(old) = self.images.insert(map.start, Image { end, name, build_id }) {
            self.bytes -= 2 * size_of::<(u64, Image)>() + old.name.len();
        }
    }

    /// Returns the number of parts that were left out to limit memory.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the name and address of the kernel's first symbol (`_text` or `_stext`). With KASLR
    /// the address differs after each boot.
    pub fn first_symbol(&self) -> Option<(&str, u64)> {
        self.first_symbol.as_ref().map(|(name, address)| (name.as_str(), *address))
    }

    /// Returns the build id of the kernel; `None` if unknown.
    pub fn kernel_build_id(&self) -> Option<BuildId> {
        self.images.values().find(|image| image.name == KERNEL)?.build_id
    }

    /// Sets the module of a location: the part of the kernel that holds its address.
    pub fn describe(&self, location: &mut CodeLocation, names: &mut Names) {
        let below = self.images.range(..=location.runtime_address).next_back();
        let Some((start, image)) = below.filter(|(_, image)| location.runtime_address < image.end) else {
            return;
        };
        location.module = Name::Known(names.intern(&image.name));
        if let Some(id) = image.build_id {
            location.build_id = names.intern(&id.hex());
        } else {
            location.build_id = NameId::default();
        }
        if image.name != KERNEL {
            // perf records where a module was, not which part of its file that is, so the offset
            // counts from the start of the module.
            location.file_offset = location.runtime_address - start;
        }
    }
}

/// Returns the name of a part in reports, and its path in the build-id table:
/// `[kernel.kallsyms]_text` is the kernel, and `/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko.xz` is
/// `[xfs]`.
fn name_of(path: &str) -> (String, &str) {
    if let Some(end) = path.find(']').filter(|_| path.starts_with("[kernel")) {
        return (KERNEL.to_owned(), path.get(..=end).unwrap_or(path));
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    match file.find(".ko") {
        Some(end) => (format!("[{}]", file.get(..end).unwrap_or(file).replace('-', "_")), path),
        None => (path.to_owned(), path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_the_names_that_kallsyms_gives_them() {
        assert_eq!(name_of("[kernel.kallsyms]_text"), ("[kernel]".into(), "[kernel.kallsyms]"));
        let path = "/lib/modules/6.1.0/kernel/net/nf-x.ko.xz";
        assert_eq!(name_of(path), ("[nf_x]".into(), path));
        assert_eq!(name_of("[xfs]"), ("[xfs]".into(), "[xfs]"));
    }
}
