//! Types of memory accesses: a forward data flow over the code of one function that finds which
//! object, and which byte of it, each instruction reads or writes.
//!
//! Debug information says which registers and stack slots hold which variables ([`FunctionFacts`]),
//! and how types are built ([`Types`]). The data flow carries these pointers through moves,
//! arithmetic, stack slots and loads of members to the instructions that debug information says
//! nothing about. Every value that cannot be followed has a reason ([`Untyped`]), so that nothing
//! is guessed.

mod access;
mod answer;
mod arithmetic;
mod described;
mod flow;
mod known;
mod later;
mod layout;
#[cfg(test)]
mod machine_tests;
mod residue;
mod step;
#[cfg(test)]
mod tests;
mod typing;
mod value;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Field, GlobalVariable, Kind, Object, TypeLayout, TypedAccess, TypedCode, TypedInstruction};
pub use described::{DescribedTypes, MAX_NAME, Member, MemberRole, TypeForm, TypeLabel, bounded_name};
pub use flow::accesses;
pub use typing::{typed, untyped};

/// A number for a type. Two types with the same number are the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// How a type is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeShape {
    /// A value without parts: an integer, a floating-point number, a pointer.
    Scalar,
    /// Elements of one type, one after the other.
    Array {
        /// The type of an element.
        element: TypeId,
    },
    /// A struct, class, union or enum with fields.
    Composite,
    /// A type without a size: `void`, a function, a struct that is only declared.
    Opaque,
}

/// The types of a program, as its debug information describes them.
pub trait Types {
    /// Returns how a type is built.
    fn shape(&mut self, ty: TypeId) -> TypeShape;
    /// Returns the size in bytes; `None` if it is not known. An array of unknown length has the
    /// size 0.
    fn size(&mut self, ty: TypeId) -> Option<u64>;
    /// Returns the type that a pointer or reference points to; `None` for other types.
    fn pointee(&mut self, ty: TypeId) -> Option<TypeId>;
    /// Returns the fields of a composite type that contain a byte, each with the distance from the
    /// start of the field. Members of a union, and of the variants of an enum, overlap.
    fn fields_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)>;
    /// Returns the type of the elements to which a container points by an erased pointer, such as
    /// the pointer to bytes of Rust's vectors; `None` for all other types.
    fn erased(&mut self, ty: TypeId) -> Option<TypeId>;
    /// Returns the global variable at a virtual address.
    fn global(&mut self, address: u64) -> Option<Global>;
    /// Returns whether the segment of `gs` has the variables of the CPU, as in the kernel. What a
    /// program keeps there is not known.
    fn has_per_cpu(&self) -> bool {
        false
    }
    /// Returns whether a global variable has, for each CPU, the number that leads from the address
    /// of a variable to the copy of that CPU (`__per_cpu_offset`).
    fn leads_to_cpu(&mut self, _global: Global) -> bool {
        false
    }
    /// Returns what is at an address relative to the segment of `gs`; `None` in programs.
    fn per_cpu(&mut self, _address: u64) -> Option<PerCpu> {
        None
    }
}

/// What the kernel keeps for each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerCpu {
    /// A variable. Its address is the one of which each CPU has a copy.
    Variable(Global),
    /// The variable with the number that leads from that address to the copy of this CPU
    /// (`this_cpu_off`).
    Offset(Global),
}

/// A global variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Global {
    /// The virtual address at which it begins.
    pub address: u64,
    /// Its type.
    pub ty: TypeId,
}

/// A general-purpose register, by its number in machine code: 0 is rax, 4 rsp, 5 rbp, 7 rdi.
pub type RegisterNumber = u8;

/// Where debug information finds a variable, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Its value is that of a register plus a constant.
    Value(RegisterNumber, i64),
    /// It is in memory, at a register plus a constant.
    At(RegisterNumber, i64),
    /// It is in memory, at this distance from the stack pointer before the call of the function
    /// (the canonical frame address of DWARF).
    Frame(i64),
}

/// A variable in a range of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The address of the first instruction at which it is there.
    pub start: u64,
    /// The address behind the last such instruction.
    pub end: u64,
    /// Where it is.
    pub home: Home,
    /// Its type.
    pub ty: TypeId,
    /// The piece of it that is there, as the distance from its start; `None` for all of it.
    pub piece: Option<u64>,
}

/// What debug information says about the code of one function.
#[derive(Clone, Debug, Default)]
pub struct FunctionFacts {
    /// Whether the code begins at the entry of the function. Otherwise, it is a part that the
    /// compiler moved elsewhere, and the depth of the stack at its start is unknown.
    pub from_entry: bool,
    /// Whether the function has variables, wherever they are.
    pub described: bool,
    /// Its variables that are in memory, or that are or contain a pointer.
    pub variables: Vec<Variable>,
    /// The types of the values that calls return, by the address to which the call returns.
    pub returns: FxHashMap<u64, TypeId>,
}

/// How the type of an access was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TypeOrigin {
    /// A variable holds the pointer at this instruction.
    Variable,
    /// The object is a variable on the stack.
    Stack,
    /// The object is a global variable.
    Global,
    /// The data flow led from a variable to this instruction.
    Flow,
}

/// The object that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessedObject {
    /// The type of the object. Never an array: for an array, the type of its elements.
    pub ty: TypeId,
    /// The distance of the first accessed byte from the start of the object; for an element of an
    /// array in the object, that of the array's first such element.
    pub offset: u64,
    /// Whether an array in the object was indexed, so that the exact byte is not known.
    pub indexed: bool,
    /// How the type was found.
    pub origin: TypeOrigin,
    /// The global variable that contains the object.
    pub global: Option<Global>,
}

/// The reason why an access has no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Untyped {
    /// The code has no debug information.
    NoDebugInfo,
    /// The function has no variables in the debug information: assembly, or a library that was
    /// built with line information only.
    NoVariables,
    /// Nothing is known about the register with the address.
    NoRegister,
    /// Two paths through the code disagree about the register.
    Conflict,
    /// The pointer points to `void`, or to a type that is only declared.
    NoType,
    /// The address is before or behind the object.
    Outside,
    /// An index that cannot be followed was added to the address.
    Index,
    /// A vector instruction accesses bytes of unknown type.
    Vector,
    /// A part of the stack that is no variable: saved registers and return addresses.
    Stack,
    /// No global variable is at the address.
    NoGlobal,
    /// A variable of the thread, or of the CPU in the kernel.
    Segment,
    /// The instruction accesses two objects, and the sample does not say which.
    Several,
    /// The bytes at the address are not an instruction of the function.
    NotDecoded,
    /// The function is too large for the data flow.
    TooLarge,
}

impl Untyped {
    /// Returns the reason in a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoDebugInfo => "no debug information",
            Self::NoVariables => "function without variables",
            Self::NoRegister => "register of unknown type",
            Self::Conflict => "conflicting types",
            Self::NoType => "pointer to void or to an incomplete type",
            Self::Outside => "address outside of the object",
            Self::Index => "index that cannot be followed",
            Self::Vector => "vector code",
            Self::Stack => "stack without a variable",
            Self::NoGlobal => "address without a variable",
            Self::Segment => "thread-local or per-CPU",
            Self::Several => "two objects in one instruction",
            Self::NotDecoded => "not decoded",
            Self::TooLarge => "function too large",
        }
    }
}

/// An access of an instruction to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of bytes; 0 if it is not known.
    pub width: u32,
    /// Whether the instruction reads the bytes.
    pub reads: bool,
    /// Whether the instruction writes the bytes.
    pub writes: bool,
    /// The object, or why it is not known.
    pub place: Result<AccessedObject, Untyped>,
}
