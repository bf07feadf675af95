//! What people call types and their members.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::{TypeId, TypeLayout, TypeShape, Types};

/// Maximum number of bytes of a name.
pub const MAX_NAME: usize = 1024;

/// Types with their names, as debug information describes them.
pub trait DescribedTypes: Types {
    /// Returns how a type is called; `None` for an unknown number.
    fn label(&self, ty: TypeId) -> Option<TypeLabel<'_>>;
    /// Returns the members of a composite type; none for other types.
    fn members(&mut self, ty: TypeId) -> Rc<Vec<Member>>;
    /// Returns the name of the global variable at an address; empty if it has none.
    fn global_name(&mut self, address: u64) -> String;
    /// Returns where layouts are kept that were read before, if the types stay the same for many
    /// functions.
    fn layouts(&mut self) -> Option<&mut FxHashMap<TypeId, TypeLayout>> {
        None
    }
    /// Returns the size of a type in bytes; 0 if it is not known.
    fn size_of(&mut self, ty: TypeId) -> u64 {
        self.size(ty).unwrap_or(0)
    }
    /// Returns the members that contain a byte, as [`Types::fields_at`] does.
    fn members_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        let members = self.members(ty);
        let mut found = Vec::new();
        for member in members.iter() {
            let Some(rest) = offset.checked_sub(member.offset) else { continue };
            let size = self.size_of(member.ty);
            // An array at the end of a struct may have no length.
            let endless = size == 0 && matches!(self.shape(member.ty), TypeShape::Array { .. });
            if rest < size || endless {
                found.push((member.ty, rest));
            }
        }
        found
    }
}

/// How a type is called.
#[derive(Clone, Copy, Debug)]
pub struct TypeLabel<'a> {
    /// The name with its namespace; empty if it has none.
    pub name: &'a str,
    /// What it is, for a type without a name, and for how C declares it.
    pub form: TypeForm,
    /// The alignment that the source asks for.
    pub alignment: Option<u64>,
}

/// What a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeForm {
    /// A struct or class.
    Struct,
    /// A union.
    Union,
    /// An enum without fields, as C has them.
    Enumeration,
    /// A pointer.
    Pointer,
    /// A reference of C++.
    Reference,
    /// A function.
    Function,
    /// Anything else.
    Other,
}

/// A member of a composite type, or a base class.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name; empty if it has none.
    pub name: String,
    /// The distance from the start of the type in bytes.
    pub offset: u64,
    /// The type of the member.
    pub ty: TypeId,
    /// The number of bits, for a bit field.
    pub bits: Option<u64>,
    /// The part that the member plays in its type.
    pub role: MemberRole,
}

/// What a member is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRole {
    /// A struct, class or union.
    Field,
    /// A base class.
    Base,
    /// What says which variant an enum has.
    Discriminant,
    /// The fields of a variant of an enum.
    Variant,
}

/// Returns a text cut to [`MAX_NAME`].
pub fn bounded_name(mut text: String) -> String {
    let mut end = text.len().min(MAX_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
