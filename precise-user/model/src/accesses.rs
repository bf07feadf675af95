//! The types of the sampled accesses to memory, once a view has looked them up in the binaries.
//! They are a function of the code, so that no file stores them.

use rustc_hash::FxHashMap;

use crate::names::{NameId, Names};

/// The types of the objects that sampled instructions access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTypes {
    /// The accesses of each instruction, by its location. A location without an entry was not
    /// looked up, for the reason `not_known`.
    pub(crate) at: FxHashMap<u32, Vec<TypedPlace>>,
    pub(crate) not_known: NameId,
    pub(crate) no_access: NameId,
    pub(crate) several: NameId,
}

/// An access of an instruction to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedPlace {
    /// Whether the instruction reads the bytes.
    pub reads: bool,
    /// Whether the instruction writes the bytes.
    pub writes: bool,
    /// The type and the field, or the reason why they are not known, in a few words.
    pub found: Result<TypedField, NameId>,
}

/// A field of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypedField {
    /// The name of the type.
    pub ty: NameId,
    /// The name of the field; empty for a value without fields.
    pub field: NameId,
}

/// The words for a sample at an instruction that accesses no memory.
pub const NO_ACCESS: &str = "instruction without an access to memory";
/// The words for a sample that is about one of two objects.
pub const SEVERAL: &str = "two objects in one instruction";

/// The words for code that is not available.
pub const NO_CODE: &str = "code not available";
/// The words for samples in no function with a name.
pub const NO_FUNCTION: &str = "code of no known function";
/// The words for functions that are not looked at because of [`MAX_FUNCTIONS`].
pub const NOT_LOOKED_AT: &str = "function with fewer samples";
/// Maximum number of functions whose code is read: those with the most samples.
pub const MAX_FUNCTIONS: usize = 10_000;

impl AccessTypes {
    /// Makes an empty table. `not_known` are the words for instructions without an entry.
    pub fn new(names: &mut Names, not_known: &str) -> Self {
        Self {
            at: FxHashMap::default(),
            not_known: names.intern(not_known),
            no_access: names.intern(NO_ACCESS),
            several: names.intern(SEVERAL),
        }
    }

    /// Adds the accesses of the instruction at a location of the capture's code.
    pub fn insert(&mut self, location: u32, places: Vec<TypedPlace>) {
        self.at.insert(location, places);
    }
}
