//! Import of a `perf.data`: the same cells, rows and names as a live run has, out of a file.
//!
//! The way of a sample: [`precise_records::perf_data`] hands out records, `events` says what an
//! event's samples hold, `sample` makes a key of one as the kernel's program does, `queue` puts
//! samples and sideband in the order of time, `cells` adds up, and the assembler of live runs joins
//! the cells with what processes did. An epoch is written when it is over.
//!
//! Memory is bounded, whatever the file: the queue holds 64 MiB, an epoch 131,072 cells and 64 MiB
//! of call chains, and names are forgotten when there are many. Nothing is lost to these bounds: an
//! epoch ends early, or samples are joined with processes a little out of order, and then the notes
//! say so.

mod account;
mod cells;
mod chains;
mod events;
mod queue;
mod run;
mod sample;
#[cfg(test)]
mod tests;
mod words;

use std::{path::PathBuf, time::Duration};

use crate::error::{ErrorClass, SamplingError};
use precise_model::{Dimension, Imported};

pub use run::{import, import_from};

/// What to import, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// The file; `-` is the standard input.
    pub input: PathBuf,
    /// The capture; `-` is the standard output.
    pub output: PathBuf,
    /// Names of the events to import; empty: all.
    pub events: Vec<String>,
    /// What to group by; `None`: what the file has. Data addresses and call chains exclude each
    /// other.
    pub dimensions: Option<Vec<Dimension>>,
    /// Data addresses are grouped by this many bytes, a power of two.
    pub address_granule: u64,
    /// Length of an epoch.
    pub epoch: Duration,
    /// Paths of the recorded machine are looked up below this directory, whose files are its own.
    pub symfs: Option<PathBuf>,
    /// Where files and debug information are kept by build id.
    pub debug_dirs: Vec<PathBuf>,
    /// A copy of the recorded machine's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The command line, for the capture.
    pub command_line: Vec<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            input: "perf.data".into(),
            output: "precise.parquet".into(),
            events: Vec::new(),
            dimensions: None,
            address_granule: 64,
            epoch: Duration::from_secs(1),
            symfs: None,
            debug_dirs: Vec::new(),
            kallsyms: None,
            command_line: Vec::new(),
        }
    }
}

fn bad_file(options: &ImportOptions, why: impl std::fmt::Display) -> SamplingError {
    SamplingError::new(ErrorClass::BadFile, format!("cannot import {}: {why}", options.input.display()))
}
