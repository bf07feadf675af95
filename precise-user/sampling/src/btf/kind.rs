//! What the types of BTF are made of.

use bytes::Buf;

use super::{
    Btf, Head, KIND_ARRAY, KIND_CONST, KIND_DATASEC, KIND_ENUM, KIND_ENUM64, KIND_FLOAT, KIND_FORWARD,
    KIND_FUNC, KIND_FUNC_PROTO, KIND_INT, KIND_POINTER, KIND_RESTRICT, KIND_STRUCT, KIND_TYPE_TAG,
    KIND_TYPEDEF, KIND_UNION, KIND_VAR, KIND_VOLATILE, words,
};

/// Maximum number of typedefs and qualifiers in front of a type. The kernel has fewer than ten.
const MAX_LINKS: usize = 32;

/// What a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtfKind {
    /// No type, or one that is only declared.
    Void,
    /// An integer or floating-point number, or an enum without fields, and its size in bytes.
    Number(u64),
    /// An enum, and its size in bytes.
    Enumeration(u64),
    /// A pointer to a type.
    Pointer(u32),
    /// The type of the elements of an array, and their number.
    Array(u32, u64),
    /// A struct, and its size in bytes.
    Struct(u64),
    /// A union, and its size in bytes.
    Union(u64),
    /// A typedef or qualifier of a type.
    Alias(u32),
    /// A function, and its prototype.
    Function(u32),
    /// A prototype, and the type of what it returns.
    Prototype(u32),
    /// A variable, and its type.
    Variable(u32),
    /// A section of variables.
    Section,
    /// Anything else.
    Other,
}

/// A member of a struct or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfMember<'a> {
    /// The name; empty if it has none.
    pub name: &'a str,
    /// The type.
    pub ty: u32,
    /// The distance from the start of the struct in bits.
    pub bit_offset: u32,
    /// The number of bits, for a bit field.
    pub bits: Option<u32>,
}

impl Btf {
    /// Returns the ids of all types. Id 0, `void`, is not among them.
    pub fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        1..=u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// Returns what a type is; [`BtfKind::Void`] for an unknown id.
    pub fn kind(&self, id: u32) -> BtfKind {
        let Some((head, mut tail)) = self.get(id) else { return BtfKind::Void };
        match head.kind() {
            KIND_INT | KIND_FLOAT => BtfKind::Number(u64::from(head.size)),
            KIND_ENUM | KIND_ENUM64 => BtfKind::Enumeration(u64::from(head.size)),
            KIND_POINTER => BtfKind::Pointer(head.size),
            KIND_ARRAY => {
                let element = tail.try_get_u32_le().unwrap_or(0);
                let _index = tail.try_get_u32_le();
                BtfKind::Array(element, u64::from(tail.try_get_u32_le().unwrap_or(0)))
            }
            KIND_STRUCT => BtfKind::Struct(u64::from(head.size)),
            KIND_UNION => BtfKind::Union(u64::from(head.size)),
            KIND_FORWARD => BtfKind::Void,
            KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_TYPE_TAG => {
                BtfKind::Alias(head.size)
            }
            KIND_FUNC => BtfKind::Function(head.size),
            KIND_FUNC_PROTO => BtfKind::Prototype(head.size),
            KIND_VAR => BtfKind::Variable(head.size),
            KIND_DATASEC => BtfKind::Section,
            _ => BtfKind::Other,
        }
    }

    /// Returns the name of a type; empty if it has none.
    pub fn name(&self, id: u32) -> &str {
        self.get(id).map_or("", |(head, _)| self.text(head.name))
    }

    /// Returns whether a type is a typedef, which gives a type another name.
    pub fn is_typedef(&self, id: u32) -> bool {
        self.get(id).is_some_and(|(head, _)| head.kind() == KIND_TYPEDEF)
    }

    /// Returns the type behind typedefs and qualifiers; 0 if there are too many.
    pub fn strip(&self, mut id: u32) -> u32 {
        for _ in 0..MAX_LINKS {
            let BtfKind::Alias(to) = self.kind(id) else { return id };
            id = to;
        }
        0
    }

    /// Returns the members of a struct or union; none for other types.
    pub fn members(&self, id: u32) -> impl Iterator<Item = BtfMember<'_>> {
        let found = self.get(id).filter(|(head, _)| matches!(head.kind(), KIND_STRUCT | KIND_UNION));
        let (head, rest) = found.unwrap_or((Head::default(), &[]));
        let (members, _) = rest.as_chunks();
        members.iter().map(words).map(move |[name, ty, at]| BtfMember {
            name: self.text(name),
            ty,
            bit_offset: head.bit_offset(at),
            bits: head.bits(at),
        })
    }

    /// Returns the types of the parameters of a prototype. A last one of id 0 stands for `...`.
    pub fn parameters(&self, id: u32) -> impl Iterator<Item = u32> {
        let found = self.get(id).filter(|(head, _)| head.kind() == KIND_FUNC_PROTO);
        let rest = found.map_or(&[][..], |(_, rest)| rest);
        rest.chunks_exact(8).filter_map(|parameter| parameter.get(4..)?.try_get_u32_le().ok())
    }

    /// Returns the variables of a section: their ids, their distances from the start of the
    /// section, and their sizes in bytes.
    pub fn variables(&self, id: u32) -> impl Iterator<Item = (u32, u32, u32)> {
        let found = self.get(id).filter(|(head, _)| head.kind() == KIND_DATASEC);
        let rest = found.map_or(&[][..], |(_, rest)| rest);
        rest.as_chunks().0.iter().map(words).map(|[id, offset, size]| (id, offset, size))
    }

    /// Returns the text at an offset of the strings; empty if there is none.
    fn text(&self, offset: u32) -> &str {
        let strings = self.bytes.get(self.strings.clone()).unwrap_or_default();
        let rest = strings.get(offset as usize..).unwrap_or_default();
        let end = memchr::memchr(0, rest).unwrap_or(0);
        rest.get(..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }
}
