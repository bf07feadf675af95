//! The virtual address in a file of an address in a process.

use super::mapping::Mapped;
use crate::reader::elf::{Headers, PF_W, PF_X, Segment};

const PAGE: u64 = 4096;

/// Returns the virtual address in the file of the runtime address `address` in `mapped`; `None` if
/// no segment contains it.
pub fn vaddr(elf: &Headers, mapped: &Mapped, address: u64) -> Option<u64> {
    if let Some(vaddr) = vaddr_from_base(elf, mapped, address) {
        return Some(vaddr);
    }
    if mapped.mapping.kind.is_bss() {
        return None;
    }
    // Two segments may share a page of the file; the protection of the mapping decides between
    // them.
    let offset = mapped.file_offset(address);
    let wanted = |s: &&Segment| maps(s, offset) && (s.flags & PF_X != 0) == mapped.mapping.executable;
    let writable = |s: &&Segment| wanted(s) && (s.flags & PF_W != 0) == mapped.mapping.writable;
    let mut segments = elf.segments.iter();
    let found = segments.clone().find(writable).or_else(|| segments.clone().find(wanted));
    found.or_else(|| segments.find(|s| maps(s, offset))).map(|s| s.vaddr_of(offset))
}

/// Returns the virtual address computed from the image base, which is the only way for addresses
/// without a file offset.
fn vaddr_from_base(elf: &Headers, mapped: &Mapped, address: u64) -> Option<u64> {
    let base = mapped.image_base?;
    let first = elf.segments.iter().find(|s| s.offset & !(PAGE - 1) == 0)?;
    let vaddr = address.wrapping_sub(base).wrapping_add(first.vaddr & !(PAGE - 1));
    let inside = |s: &&Segment| {
        let page = s.vaddr & !(PAGE - 1);
        (page..s.vaddr.saturating_add(s.mem_size)).contains(&vaddr)
    };
    if mapped.mapping.kind.is_bss() {
        return elf.segments.iter().find(inside).map(|_| vaddr);
    }
    // A file that is mapped only to be read is not laid out as its segments say. And if only the
    // code of a process is known, a mapping that begins with the file need not be the base.
    let offset = mapped.file_offset(address);
    let mut segments = elf.segments.iter().filter(|s| maps(s, offset));
    let fits =
        |s: &Segment| (s.flags & PF_X != 0) == mapped.mapping.executable && s.vaddr_of(offset) == vaddr;
    segments.any(fits).then_some(vaddr)
}

/// Returns whether `offset` is in a page of the file that the kernel maps for this segment.
fn maps(segment: &Segment, offset: u64) -> bool {
    let begin = segment.offset & !(PAGE - 1);
    let end = segment.offset.saturating_add(segment.file_size).saturating_add(PAGE - 1) & !(PAGE - 1);
    (begin..end).contains(&offset)
}
