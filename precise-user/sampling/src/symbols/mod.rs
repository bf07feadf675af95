//! Symbolization: names for addresses (functions, lines and variables of processes and of the
//! kernel), and paths for cgroup ids.
//!
//! An address is named in three steps:
//!
//! 1. [`Processes`] learns from the sideband which processes ran when, and what they had mapped.
//! 2. A [`CodeQuery`] or [`DataQuery`] combines an address with the mapping that held it in a
//!    window of time.
//! 3. [`Symbolizer`] answers batches of queries. It opens each file when it first sees it and keeps
//!    it open, so that samples can be named after their process has ended or the file was replaced.
//!
//! An address without a name carries a [`precise_model::Reason`]. A missing name is never an error.
//!
//! Files of others are opened here and read by [`crate::reader`], a process without rights.
//!
//! Debug information that is not installed is fetched from a [`DebugServer`] for [`listing`] only,
//! never while samples are taken.
//!
//! Not supported: variables in registers or on stacks, thread-local variables, and symbols of a
//! file that was gone before it was first seen, even if its debug information is installed.

mod ahead;
pub mod cgroup;
mod charge;
pub mod code_file;
pub mod container;
mod debug_server;
mod files;
mod jit;
mod kallsyms;
mod kernel;
pub mod kernel_images;
pub mod listing;
pub mod mapping;
mod notes;
mod opening;
pub mod process;
pub(crate) mod procfs;
mod query;
mod recent;
mod resolve;
mod return_sites;
mod shared_maps;
pub mod table_cache;
mod vaddr;
mod vmlinux;
mod worker;

use std::path::{Path, PathBuf};

pub use debug_server::DebugServer;
pub use kernel::{KERNEL, KernelSymbols, addresses_visible};
pub use process::Processes;
pub(crate) use procfs::pids;
pub use query::{CodeQuery, DataQuery};
pub use worker::{CodeFiles, SentCode, SentData, Symbolizer, Wait};

#[cfg(test)]
#[path = "../../../capture/src/allocated.rs"]
#[allow(dead_code, reason = "the tests of captures use what these do not")]
pub(crate) mod allocated;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
pub(crate) mod made_tests;
#[cfg(test)]
mod sideband_tests;

/// Reads a list of kernel symbols, of the format of `/proc/kallsyms`, and looks addresses up in it.
/// Returns how many have a name. For fuzzing: a recording may bring such a list along.
///
/// # Errors
///
/// Returns the error of opening or reading the file.
pub fn names_in_kallsyms(list: &Path, addresses: &[u64]) -> std::io::Result<usize> {
    let mut known = 0;
    for running in [true, false] {
        let mut list = kallsyms::Kallsyms::open(list, running)?;
        for address in addresses {
            for kind in [kallsyms::SymbolKind::Code, kallsyms::SymbolKind::Data] {
                known += usize::from(list.find(*address, kind)?.is_some());
            }
            list.size_at(*address)?;
        }
    }
    Ok(known)
}

/// Where to find the files of a recording: by build id below [`SymbolOptions::debug_dirs`], and by
/// path.
///
/// A file without a build id is accepted only if `symfs` or `this_host` vouches for it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Directory below which paths are looked up and whose files are the recorded ones (perf's
    /// `--symfs`); `None`: the file system of this machine.
    pub symfs: Option<PathBuf>,
    /// Whether the recording was made on this host, so that device and inode of a mapped file can
    /// be compared.
    pub this_host: bool,
    /// Whether the recorded kernel is the one that is running, so that its vDSO is that of here.
    pub this_boot: bool,
    /// A copy of the recorded machine's `/proc/kallsyms`; `None`: kernel addresses have no names.
    pub kallsyms: Option<PathBuf>,
}

/// Options of the symbolizer: where it looks for files, and how many it may hold open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOptions {
    /// Prefix of `/proc`, `/sys` and `/boot`: `/`, except in tests.
    pub root: PathBuf,
    /// Directories with separate debug information.
    pub debug_dirs: Vec<PathBuf>,
    /// The files of a recording that was made elsewhere or earlier, whose samples do not belong to
    /// this machine's current processes and kernel. `None`: the samples are from this machine, now.
    pub recorded: Option<Recorded>,
    /// Maximum number of files that are held open. Each needs two descriptors, or four with
    /// separate debug information. The least recently used file is closed to make room.
    pub max_files: usize,
    /// Folder for what later runs use again ([`table_cache::folder`]); `None`: nothing is kept.
    pub caches: Option<PathBuf>,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self {
            root: "/".into(),
            debug_dirs: vec!["/usr/lib/debug".into(), "/lib/debug".into()],
            recorded: None,
            max_files: 256,
            caches: None,
        }
    }
}
