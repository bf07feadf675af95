//! `--call-graph` of commands that sample.

use clap::ValueEnum;
use precise::run::plan;

/// How call chains are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallGraphMethod {
    /// By unwind tables, and where code has none, by frame pointers
    Auto,
    /// By unwind tables only
    Tables,
    /// By frame pointers, in the kernel
    Fp,
}

impl From<CallGraphMethod> for plan::CallGraph {
    fn from(how: CallGraphMethod) -> Self {
        match how {
            CallGraphMethod::Auto => Self::Auto,
            CallGraphMethod::Tables => Self::Tables,
            CallGraphMethod::Fp => Self::FramePointers,
        }
    }
}
