//! The capture: what a run saw, in memory and as a file.

mod allocator;
pub mod assemble;
mod cost;
mod file;
mod file_output;
#[cfg(test)]
mod file_tests;
mod fold;
pub mod import;
mod keeping;
pub mod live;
mod model;
mod names;
pub mod naming;
mod origin;
mod outcome;
mod owner;
mod read;
mod read_error;
mod read_rows;
pub(crate) mod running;
pub(crate) mod stack;
mod stack_json;
mod temporary;
#[doc(hidden)]
pub mod testing;
mod write;
mod write_rows;

pub use cost::{Overhead, RateChange};
pub use file::{COLUMNS, Column, Kind, META_KEY, SCHEMA_KEY};
pub(crate) use file_output::folder_of;
pub use file_output::write_whole;
pub use model::*;
pub use names::{Name, NameId, Names, Reason};
pub use origin::Origin;
pub use outcome::Outcome;
pub use owner::Owner;
pub use read::{Limits, panics_are_answered};
pub use read_error::ReadError;
pub use stack::{Chain, Stack, StackId};
pub(crate) use temporary::free_name;
#[cfg(feature = "s3")]
pub(crate) use temporary::temporary;
pub use write::{CaptureWriter, WriteError};
pub use write_rows::batches;
pub(crate) mod verdict;
