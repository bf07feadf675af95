//! The summary of an import.

use std::path::PathBuf;

use super::Meta;

/// The summary of an import. The capture itself is in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The metadata of the capture: everything that is not a row.
    pub meta: Meta,
    /// The number of samples in the rows, per event.
    pub kept: Vec<u64>,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes of the file that were read.
    pub bytes: u64,
    /// The name that the capture has now which this one has replaced; `None` if there was none.
    pub old: Option<PathBuf>,
}
