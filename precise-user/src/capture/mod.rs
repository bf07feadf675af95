//! The capture: what a run saw, in memory and as a file.

pub mod assemble;
pub mod child;
mod file;
mod file_output;
#[cfg(test)]
mod file_tests;
pub mod live;
mod model;
pub mod naming;
pub mod opening;
pub mod plan;
mod read;
mod read_error;
mod read_rows;
#[doc(hidden)]
pub mod testing;
mod write;
mod write_rows;

pub use file::{COLUMNS, Column, Kind, META_KEY, SCHEMA_KEY};
pub use file_output::write_whole;
pub use model::*;
pub use read::Limits;
pub use read_error::ReadError;
pub use write::{CaptureWriter, WriteError};
mod verdict;
