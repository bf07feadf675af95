//! Imports a `perf.data` file: produces the same cells, rows and names as a live run.
//!
//! The path of a sample: [`precise_records::perf_data`] reads the records, `events` describes the
//! fields of each event's samples, `sample` builds the map key like the eBPF program, `queue` sorts
//! samples and sideband by time, `callers` unwinds, `cells` aggregates them, and the assembler of
//! live runs joins the cells with the process events. Each epoch is written when it ends.
//!
//! Memory is bounded for any file: the queue holds 64 MiB, an epoch holds 131,072 cells and 64 MiB
//! of call chains, and names are forgotten when there are too many. These limits lose no samples.
//! Instead an epoch ends early, or samples are joined with processes slightly out of order, and the
//! notes report it.

mod account;
mod branches;
mod callers;
mod cells;
mod chains;
mod events;
mod exits;
mod group;
mod length;
#[cfg(test)]
mod made_tests;
mod queue;
mod run;
mod sample;
#[cfg(test)]
mod tests;
mod words;

use std::{path::PathBuf, time::Duration};

use crate::error::{ErrorClass, SamplingError};
use precise_model::{Dimension, Imported};

pub use run::{ImportProgress, import, import_from, import_watched};

/// Options of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// The `perf.data` file to import; `-` is the standard input.
    pub input: PathBuf,
    /// The capture to write; `-` is the standard output.
    pub output: PathBuf,
    /// Names of the events to import; empty means all.
    pub events: Vec<String>,
    /// The dimensions to group by; `None` means all that the file has.
    pub dimensions: Option<Vec<Dimension>>,
    /// The granularity of data addresses in bytes, a power of two.
    pub address_granule: u64,
    /// The length of an epoch; `None` means a sixtieth of the recording, from 1 ms to 1 s, or 1 s
    /// if the file does not say how long it is.
    pub epoch: Option<Duration>,
    /// The directory in which paths of the recorded machine are looked up; its files are assumed to
    /// be that machine's.
    pub symfs: Option<PathBuf>,
    /// Directories with files and debug information by build id.
    pub debug_dirs: Vec<PathBuf>,
    /// A copy of the recorded machine's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The command line to store in the capture.
    pub command_line: Vec<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            input: "perf.data".into(),
            output: "precise.parquet".into(),
            events: Vec::new(),
            dimensions: None,
            address_granule: 1,
            epoch: None,
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
