//! The types of a function's accesses, as a view gets them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TypeOrigin, Untyped};

/// The types of accesses of one function.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TypedCode {
    /// The instructions that were asked for, each once.
    pub instructions: Vec<TypedInstruction>,
    /// The types of the objects.
    pub layouts: Vec<TypeLayout>,
    /// The global variables that contain objects.
    pub globals: Vec<GlobalVariable>,
}

/// The accesses of one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedInstruction {
    /// Distance from the start of the function, in bytes.
    pub offset: u64,
    /// The accesses. Empty if the instruction accesses no memory.
    pub accesses: Vec<TypedAccess>,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedAccess {
    /// Number of bytes; 0 if it is not known.
    pub width: u32,
    /// Whether the instruction reads the bytes.
    pub reads: bool,
    /// Whether the instruction writes the bytes.
    pub writes: bool,
    /// The object, or why it is not known.
    pub object: Result<Object, Untyped>,
}

/// An object that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The type, as an index into [`TypedCode::layouts`].
    pub layout: u32,
    /// The distance of the first accessed byte from the start of the object; for an element of an
    /// array in the object, that of the array's first such element.
    pub offset: u64,
    /// Whether an array in the object was indexed, so that the exact byte is not known.
    pub indexed: bool,
    /// How the type was found.
    pub origin: TypeOrigin,
    /// The global variable, as an index into [`TypedCode::globals`].
    pub global: Option<u32>,
}

/// A global variable with objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlobalVariable {
    /// The name, without its namespace.
    pub name: String,
    /// The virtual address at which it begins.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
}

/// How a type is built, in the words of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A struct or class.
    Struct,
    /// A union.
    Union,
    /// An enum whose variants have fields.
    Enum,
    /// A value without fields.
    Scalar,
}

/// The layout of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TypeLayout {
    /// The name, with its namespace.
    pub name: String,
    /// How it is built.
    pub kind: Kind,
    /// The size in bytes.
    pub size: u64,
    /// The alignment of every object in bytes. 1 if it is not known.
    pub alignment: u64,
    /// The fields, by their offset. Fields of structs in the struct are listed one by one; a union
    /// or an enum in it is one field. Empty for a scalar.
    pub fields: Vec<Field>,
    /// The members as the type declares them, by their offset. Empty unless they could be declared
    /// in another order: not for types with base classes, virtual functions, bit fields or unnamed
    /// members.
    pub members: Vec<Field>,
    /// Whether there are more fields than were read.
    pub cut: bool,
}

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Field {
    /// The name, after the names of the fields that contain it: `head.next`.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// The distance from the start of the object in bytes.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
}

impl TypedCode {
    /// Returns the answer for instructions of which nothing is known, for one reason.
    pub fn without(wanted: &[u64], why: Untyped) -> Self {
        let access = TypedAccess { width: 0, reads: false, writes: false, object: Err(why) };
        let of = |offset: &u64| TypedInstruction { offset: *offset, accesses: vec![access] };
        Self { instructions: wanted.iter().map(of).collect(), ..Self::default() }
    }

    /// Adds the types of other instructions of the function.
    pub fn append(&mut self, other: Self) {
        let layouts = u32::try_from(self.layouts.len()).unwrap_or(u32::MAX);
        let globals = u32::try_from(self.globals.len()).unwrap_or(u32::MAX);
        let moved = other.instructions.into_iter().map(|mut instruction| {
            for access in &mut instruction.accesses {
                if let Ok(object) = &mut access.object {
                    object.layout = object.layout.saturating_add(layouts);
                    object.global = object.global.map(|global| global.saturating_add(globals));
                }
            }
            instruction
        });
        self.instructions.extend(moved);
        self.layouts.extend(other.layouts);
        self.globals.extend(other.globals);
    }
}

impl TypeLayout {
    /// Returns the field that contains a byte of the object; `None` for padding and for scalars.
    pub fn field_at(&self, offset: u64) -> Option<&Field> {
        self.fields.iter().find(|field| {
            offset >= field.offset && (offset - field.offset < field.size || offset == field.offset)
        })
    }
}
