//! `--call-graph` of commands that sample.

use clap::ValueEnum;
use precise::run::plan;

/// How call chains are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallGraph {
    /// By unwind tables, and where code has none, by frame pointers
    Auto,
    /// By unwind tables only
    Tables,
    /// By frame pointers, in the kernel
    Fp,
}

impl From<CallGraph> for plan::CallGraph {
    fn from(how: CallGraph) -> Self {
        match how {
            CallGraph::Auto => Self::Auto,
            CallGraph::Tables => Self::Tables,
            CallGraph::Fp => Self::FramePointers,
        }
    }
}
