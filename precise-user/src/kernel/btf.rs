//! The running kernel's types: offsets of structure members and ids of functions, from `/sys/kernel/btf/vmlinux`.
//!
//! Only what the loader needs of the format (kernel documentation, `Documentation/bpf/btf.rst`): names, structs, unions,
//! functions. Every read is bounds-checked; any bytes give a result or a sentence.

use std::collections::HashMap;

use bytes::Buf;

const MAGIC: u16 = 0xeb9f;
const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// Why type information could not be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BtfError {
    /// The bytes are no BTF.
    #[error("the kernel's type information (BTF) is malformed: {0}")]
    Malformed(&'static str),
}

/// A member of a struct or union.
#[derive(Clone, Copy, Debug)]
struct Member {
    name: u32,
    type_id: u32,
    bit_offset: u32,
}

/// A parsed BTF blob.
#[derive(Debug)]
pub struct Btf {
    strings: Vec<u8>,
    structs: HashMap<u32, Vec<Member>>,
    struct_ids: HashMap<String, u32>,
    function_ids: HashMap<String, u32>,
}

impl Btf {
    /// Parses a little-endian blob.
    pub fn parse(bytes: &[u8]) -> Result<Self, BtfError> {
        let truncated = BtfError::Malformed("it ends too early");
        let mut header = bytes;
        if header.remaining() < 24 {
            return Err(truncated);
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
            bytes.get(start..start.checked_add(len)?)
        };
        let (Some(types), Some(strings)) = (section(type_off, type_len), section(str_off, str_len)) else {
            return Err(truncated);
        };
        let mut btf = Self {
            strings: strings.to_vec(),
            structs: HashMap::new(),
            struct_ids: HashMap::new(),
            function_ids: HashMap::new(),
        };
        btf.read_types(types).ok_or(truncated)?;
        Ok(btf)
    }

    fn read_types(&mut self, mut types: &[u8]) -> Option<()> {
        // Id 0 is `void` and not stored.
        let mut id = 0;
        while types.has_remaining() {
            id += 1;
            let name = types.try_get_u32_le().ok()?;
            let info = types.try_get_u32_le().ok()?;
            types.try_get_u32_le().ok()?;
            let count = info & 0xffff;
            let kind = (info >> 24) & 0x1f;
            // With kind_flag, the upper 8 bits of a member's offset are a bitfield's width.
            let kind_flag = info >> 31 != 0;
            let skip = match kind {
                KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
                KIND_ARRAY => 12,
                KIND_ENUM | KIND_FUNC_PROTO => 8 * count as usize,
                KIND_DATASEC | KIND_ENUM64 => 12 * count as usize,
                _ => 0,
            };
            match kind {
                KIND_STRUCT | KIND_UNION => {
                    let mut members = Vec::with_capacity(count as usize);
                    for _ in 0..count {
                        let name = types.try_get_u32_le().ok()?;
                        let type_id = types.try_get_u32_le().ok()?;
                        let offset = types.try_get_u32_le().ok()?;
                        let bit_offset = if kind_flag { offset & 0xff_ffff } else { offset };
                        members.push(Member { name, type_id, bit_offset });
                    }
                    let name = self.string(name).to_owned();
                    if !name.is_empty() {
                        // The first definition wins; vmlinux has one of each that is asked for.
                        self.struct_ids.entry(name).or_insert(id);
                    }
                    self.structs.insert(id, members);
                }
                KIND_FUNC => {
                    let name = self.string(name).to_owned();
                    self.function_ids.entry(name).or_insert(id);
                }
                _ => {
                    if types.remaining() < skip {
                        return None;
                    }
                    types.advance(skip);
                }
            }
        }
        Some(())
    }

    fn string(&self, offset: u32) -> &str {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    /// Byte offset of a member, looked for also in anonymous structs and unions. `None` where this kernel has no such
    /// struct or member, or the member is a bitfield inside of a byte.
    pub fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let id = *self.struct_ids.get(structure)?;
        let bits = self.bit_offset(id, member, 0)?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    fn bit_offset(&self, id: u32, wanted: &str, depth: u32) -> Option<u32> {
        // Deeper nesting than any kernel has means a cycle in malformed input.
        if depth > 16 {
            return None;
        }
        for member in self.structs.get(&id)? {
            if self.string(member.name) == wanted {
                return Some(member.bit_offset);
            }
            if member.name == 0
                && let Some(inner) = self.bit_offset(member.type_id, wanted, depth + 1)
            {
                return Some(member.bit_offset + inner);
            }
        }
        None
    }

    /// Id of a function.
    pub fn function_id(&self, name: &str) -> Option<u32> {
        self.function_ids.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A blob with one struct `s { int a; union { int b; int c; }; }` and one function `f`.
    fn blob() -> Vec<u8> {
        let strings = b"\0s\0a\0b\0c\0f\0";
        let mut types = Vec::new();
        let mut word = |words: &[u32]| words.iter().for_each(|w| types.extend_from_slice(&w.to_le_bytes()));
        word(&[0, KIND_INT << 24, 4, 32]);
        word(&[0, KIND_UNION << 24 | 2, 4, 5, 1, 0, 7, 1, 0]);
        word(&[1, KIND_STRUCT << 24 | 2, 8, 3, 1, 0, 0, 2, 32]);
        word(&[9, KIND_FUNC << 24, 0]);
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[1, 0]);
        for w in [24u32, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            out.extend_from_slice(&w.to_le_bytes());
        }
        out.extend_from_slice(&types);
        out.extend_from_slice(strings);
        out
    }

    #[test]
    fn finds_members_also_of_anonymous_unions() {
        let btf = Btf::parse(&blob()).unwrap();
        assert_eq!(btf.offset("s", "a"), Some(0));
        assert_eq!(btf.offset("s", "c"), Some(4));
        assert_eq!(btf.offset("s", "d"), None);
        assert_eq!(btf.offset("t", "a"), None);
        assert_eq!(btf.function_id("f"), Some(4));
    }

    #[test]
    fn every_truncation_is_an_error_or_a_result() {
        let whole = blob();
        for len in 0..whole.len() {
            let _ = Btf::parse(&whole[..len]);
        }
    }

    #[test]
    fn the_running_kernel_has_what_the_program_needs() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(&bytes).unwrap();
        assert!(btf.offset("perf_sample_data", "period").is_some());
        assert!(btf.offset("pt_regs", "ip").is_some());
    }
}
