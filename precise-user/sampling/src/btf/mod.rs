//! The running kernel's type information (BTF): offsets of structure members, ids of functions, and
//! what types are made of, from `/sys/kernel/btf/vmlinux`.
//!
//! The parser covers what the loader and the types of kernel code need (kernel documentation,
//! `Documentation/bpf/btf.rst`). Every read is bounds-checked, so arbitrary input gives a result or
//! an error.

mod kind;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::PathBuf;

use bytes::Buf;

pub use kind::{BtfKind, BtfMember};

use crate::machine::Root;

const MAGIC: u16 = 0xeb9f;
const KIND_INT: u32 = 1;
const KIND_POINTER: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FORWARD: u32 = 7;
const KIND_TYPEDEF: u32 = 8;
const KIND_VOLATILE: u32 = 9;
const KIND_CONST: u32 = 10;
const KIND_RESTRICT: u32 = 11;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_FLOAT: u32 = 16;
const KIND_DECL_TAG: u32 = 17;
const KIND_TYPE_TAG: u32 = 18;
const KIND_ENUM64: u32 = 19;

/// Why the type information cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The bytes are not valid BTF.
    #[error("the kernel's type information (BTF) is malformed: {0}")]
    Malformed(&'static str),
    /// The file cannot be read.
    #[error("cannot read the kernel's type information (BTF) from {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// A parsed BTF blob.
///
/// A kernel has about 150,000 types, and the loader looks up about a dozen of them. So only the
/// start of each type is stored, and names are compared at lookup.
#[derive(Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    strings: Range<usize>,
    types: Range<usize>,
    /// The start of each type, as a byte offset into `types`. The index is the type's id minus 1,
    /// because id 0 is `void` and is not stored.
    starts: Vec<u32>,
    /// Ids of structs and unions.
    structures: Vec<u32>,
    /// Ids of functions.
    functions: Vec<u32>,
}

/// The words at the start of each type.
#[derive(Clone, Copy, Default)]
struct Head {
    name: u32,
    info: u32,
    /// The size in bytes, or the id of another type.
    size: u32,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [name, info, size] = words(bytes.first_chunk::<HEAD>()?);
        Some(Self { name, info, size })
    }

    fn kind(self) -> u32 {
        (self.info >> 24) & 0x1f
    }

    /// Returns the number of bytes that follow the head.
    fn tail(self) -> usize {
        let count = (self.info & 0xffff) as usize;
        match self.kind() {
            KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
            KIND_ARRAY => 12,
            KIND_ENUM | KIND_FUNC_PROTO => 8 * count,
            KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * count,
            _ => 0,
        }
    }

    /// Returns the bit offset of a member. With kind_flag set, the upper 8 bits are a bitfield's
    /// width.
    fn bit_offset(self, offset: u32) -> u32 {
        if self.info >> 31 != 0 { offset & 0xff_ffff } else { offset }
    }

    /// Returns the width of a bitfield; `None` for other members.
    fn bits(self, offset: u32) -> Option<u32> {
        (self.info >> 31 != 0 && offset >> 24 != 0).then_some(offset >> 24)
    }
}

/// The size of [`Head`] in the blob, in bytes.
const HEAD: usize = 12;
/// Returns the three words of a head, of a member or of a variable.
#[inline]
const fn words(bytes: &[u8; HEAD]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([i, j, k, l])]
}

/// The error for bytes that are cut.
const TRUNCATED: BtfError = BtfError::Malformed("it ends too early");

impl Btf {
    /// Reads the type information of the kernel that runs below `root`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has none, if it may not be read, or if it is malformed.
    pub fn read(root: &Root) -> Result<Self, BtfError> {
        let path = root.path("/sys/kernel/btf/vmlinux");
        let bytes = std::fs::read(&path).map_err(|error| BtfError::Unreadable { path, error })?;
        Self::parse(bytes)
    }

    /// Parses a little-endian BTF blob.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        let mut header = &bytes[..];
        if header.remaining() < 24 {
            return Err(TRUNCATED);
        }
        if header.get_u16_le() != MAGIC {
            return Err(BtfError::Malformed("it has no BTF magic number"));
        }
        header.advance(2);
        let header_len = header.get_u32_le() as usize;
        let (type_off, type_len) = (header.get_u32_le() as usize, header.get_u32_le() as usize);
        let (str_off, str_len) = (header.get_u32_le() as usize, header.get_u32_le() as usize);
        let section = |off: usize, len: usize| {
            let start = header_len.checked_add(off)?;
            let section = start..start.checked_add(len)?;
            bytes.get(section.clone()).map(|_| section)
        };
        let (Some(types), Some(strings)) = (section(type_off, type_len), section(str_off, str_len)) else {
            return Err(TRUNCATED);
        };
        let (mut starts, mut structures, mut functions) =
            (Vec::with_capacity(types.len() / 20), Vec::new(), Vec::new());
        let (all, mut start) = (&bytes[types.clone()], 0);
        while start < all.len() {
            let head = all.get(start..).and_then(Head::read).ok_or(TRUNCATED)?;
            starts.push(u32::try_from(start).map_err(|_| BtfError::Malformed("it is too large"))?);
            match head.kind() {
                KIND_STRUCT | KIND_UNION => structures.push(starts.len() as u32),
                KIND_FUNC => functions.push(starts.len() as u32),
                _ => {}
            }
            start += HEAD + head.tail();
        }
        if start != all.len() {
            return Err(TRUNCATED);
        }
        Ok(Self { bytes, strings, types, starts, structures, functions })
    }

    fn named(&self, offset: u32, name: &str) -> bool {
        let strings = self.bytes.get(self.strings.clone()).unwrap_or_default();
        let rest = strings.get(offset as usize..).unwrap_or_default();
        rest.get(name.len()) == Some(&0) && rest.starts_with(name.as_bytes())
    }

    /// Returns the head of a type and the bytes that follow it.
    fn get(&self, id: u32) -> Option<(Head, &[u8])> {
        let start = *self.starts.get(id.checked_sub(1)? as usize)? as usize;
        let types = self.bytes.get(self.types.clone())?;
        let head = Head::read(types.get(start..)?)?;
        Some((head, types.get(start + HEAD..start + HEAD + head.tail())?))
    }

    /// Returns the first of these types with the given name. In vmlinux, each name that the loader
    /// looks up is unique.
    fn id(&self, ids: &[u32], name: &str) -> Option<u32> {
        ids.iter().copied().find(|id| self.get(*id).is_some_and(|(head, _)| self.named(head.name, name)))
    }

    /// Returns the byte offset of a member, searching anonymous structs and unions too.
    ///
    /// `None` if this kernel has no such struct or member, or if the member is a bitfield that does
    /// not start at a byte boundary.
    pub fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let id = self.id(&self.structures, structure)?;
        let bits = self.bit_offset(id, member, 0)?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    fn bit_offset(&self, id: u32, wanted: &str, depth: u32) -> Option<u32> {
        // No kernel nests types this deeply, so malformed input has a cycle.
        if depth > 16 {
            return None;
        }
        let (head, mut members) = self.get(id)?;
        if !matches!(head.kind(), KIND_STRUCT | KIND_UNION) {
            return None;
        }
        while members.has_remaining() {
            let name = members.try_get_u32_le().ok()?;
            let type_id = members.try_get_u32_le().ok()?;
            let at = head.bit_offset(members.try_get_u32_le().ok()?);
            if self.named(name, wanted) {
                return Some(at);
            }
            if name == 0
                && let Some(inner) = self.bit_offset(type_id, wanted, depth + 1)
            {
                return at.checked_add(inner);
            }
        }
        None
    }

    /// Returns the BTF id of a struct or union, or `None` if the kernel has none with this name.
    pub fn structure_id(&self, name: &str) -> Option<u32> {
        self.id(&self.structures, name)
    }

    /// Returns the BTF ids of functions; `None` for each name that no function of the kernel has.
    /// One pass over 60,000 functions, however many names there are.
    pub fn function_ids<const N: usize>(&self, names: [&str; N]) -> [Option<u32>; N] {
        let mut found = [None; N];
        for id in &self.functions {
            let Some((head, _)) = self.get(*id) else { continue };
            for (found, name) in found.iter_mut().zip(names) {
                if found.is_none() && self.named(head.name, name) {
                    *found = Some(*id);
                }
            }
        }
        found
    }
}
