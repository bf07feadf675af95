//! The programs that are compared.

use std::path::PathBuf;

use precise_tests::program;

/// The environment variable with the path of a perf that is newer than that of Debian 12.
const NEWER_PERF: &str = "PRECISE_BENCH_PERF";

/// A program that answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// No profiler.
    None,
    /// precise.
    Precise,
    /// perf.
    Perf,
    /// A perf that knows types.
    NewerPerf,
    /// bpftrace.
    Bpftrace,
    /// A monitor of processes and cgroups that records what the kernel counts.
    Below,
    /// An eBPF program that does nothing, which bpftrace attaches.
    EmptyProgram,
    /// addr2line of binutils.
    Addr2line,
    /// The command of the library that precise reads debug information with.
    Blazecli,
    /// DuckDB, from Python.
    DuckDb,
    /// A hash map of the kernel, read in batches.
    HashMap,
}

impl Tool {
    /// The name, as tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "no profiler",
            Self::Precise => "precise",
            Self::Perf => "perf",
            Self::NewerPerf => "newer perf",
            Self::Bpftrace => "bpftrace",
            Self::Below => "below",
            Self::EmptyProgram => "an empty program",
            Self::Addr2line => "addr2line",
            Self::Blazecli => "blazecli",
            Self::DuckDb => "DuckDB",
            Self::HashMap => "hash map",
        }
    }

    /// Whether it is bpftrace, which takes seconds to start.
    pub const fn is_bpftrace(self) -> bool {
        matches!(self, Self::Bpftrace | Self::EmptyProgram)
    }

    /// Whether it can be run here.
    pub fn is_installed(self) -> bool {
        match self {
            Self::None | Self::Precise | Self::HashMap => true,
            Self::Perf => program::exists("perf"),
            Self::NewerPerf => newer_perf().is_some(),
            Self::Bpftrace | Self::EmptyProgram => program::exists("bpftrace"),
            Self::Below => program::exists("below"),
            Self::Addr2line => program::exists("addr2line"),
            Self::Blazecli => program::exists("blazecli"),
            Self::DuckDb => program::python().is_ok(),
        }
    }
}

/// Returns the path of the newer perf; `None` if there is none.
pub fn newer_perf() -> Option<PathBuf> {
    std::env::var_os(NEWER_PERF).map(PathBuf::from).filter(|path| path.exists())
}
