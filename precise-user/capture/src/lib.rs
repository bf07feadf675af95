//! Captures as files: Parquet out, while a run goes on, and in again, within bounds.

mod file;
mod file_output;
#[cfg(test)]
mod file_tests;
pub mod fold;
mod read;
mod read_error;
mod read_rows;
mod stack_json;
mod temporary;
mod write;
mod write_rows;

pub use file::{Column, Kind, META_KEY, SCHEMA_KEY};
pub use file_output::{Output, folder_of, write_whole};
pub use read::{CaptureFile, Limits, panics_are_answered};
pub use read_error::ReadError;
pub use temporary::{free_name, temporary};
pub use write::{CaptureWriter, WriteError};
pub use write_rows::batches;
