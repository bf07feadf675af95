//! Addresses to names: functions, lines and variables of processes and of the kernel; cgroup ids to
//! paths.
//!
//! The way of a name:
//!
//! 1. [`Processes`] learns from the sideband who was where, and when.
//! 2. A [`CodeQuery`] or [`DataQuery`] joins an address with what was mapped there in a window of
//!    time.
//! 3. [`Symbolizer`] answers batches of them. It opens each file when it first meets it and keeps
//!    it open, so that a process may end, and a file be replaced, before its samples are named.
//!
//! What has no name has a [`precise_model::Reason`]. Nothing here fails because an address has no
//! name.
//!
//! Not found: debug information on a debuginfod server, variables in registers or on stacks,
//! thread-local variables, and symbols of a file that was gone before it was first met, even where
//! its debug information is installed. A file that is overwritten in place (and not replaced) while
//! it is read may end the program, as it ends the processes that run it.

pub mod cgroup;
pub mod container;
mod elf;
mod files;
mod jit;
mod kernel;
pub mod kernel_images;
pub mod listing;
pub mod mapping;
pub mod pattern;
pub mod process;
mod procfs;
mod query;
mod resolve;
mod worker;

use std::path::PathBuf;

pub use kernel::addresses_visible;
pub use process::Processes;
pub use query::{CodeQuery, DataQuery};
pub use worker::Symbolizer;

#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod sideband_tests;

/// Where files of a recording may be: by build id below [`SymbolOptions::debug_dirs`], and by their
/// paths.
///
/// A file without a build id is the one that was mapped only where somebody says so.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Paths are looked up below this directory, whose files are the recorded ones (perf's
    /// `--symfs`).
    pub symfs: Option<PathBuf>,
    /// It was recorded on this host: device and inode of a mapped file mean something.
    pub this_host: bool,
    /// A copy of the recorded machine's `/proc/kallsyms`; `None`: the kernel's addresses have no
    /// names.
    pub kallsyms: Option<PathBuf>,
}

/// Where the symbolizer looks, and how much it may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOptions {
    /// Prefix of `/proc`, `/sys` and `/boot`; `/` but for tests.
    pub root: PathBuf,
    /// Where separate debug information is installed.
    pub debug_dirs: Vec<PathBuf>,
    /// The samples were taken elsewhere, or at another time: nothing of this machine's processes
    /// and kernel is theirs.
    pub recorded: Option<Recorded>,
    /// Files that are held open. Each costs two descriptors, twice that with separate debug
    /// information. The one that was not used for longest makes room.
    pub max_files: usize,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self {
            root: "/".into(),
            debug_dirs: vec!["/usr/lib/debug".into(), "/lib/debug".into()],
            recorded: None,
            max_files: 256,
        }
    }
}
