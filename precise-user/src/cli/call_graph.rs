//! The flags of runs that record call chains.

use clap::{Args, ValueEnum};
use precise::run::plan::{self, PlanBuilder};

use super::{
    selection::{LIMITS, OUTPUT},
    values,
};

/// Whether call chains are recorded, and how.
#[derive(Debug, Args)]
pub struct ChainArguments {
    /// Record call chains
    ///
    /// Views then show the callers of the sampled functions. The stack is unwound for each sample,
    /// which adds to the overhead.
    #[arg(short = 'g', help_heading = OUTPUT)]
    chains: bool,
    /// Record call chains in this way: auto, tables or fp [default of -g: auto]
    ///
    /// `tables` unwinds by the unwind tables that compilers write for exceptions (.eh_frame), which
    /// nearly all programs have, also those without frame pointers. `auto` does the same, and
    /// follows frame pointers in code that has no table: of JIT compilers, and of Go. With `fp`
    /// the kernel follows frame pointers only.
    #[arg(
        long = "call-graph",
        value_name = "HOW",
        hide_possible_values = true,
        value_enum,
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    call_graph: Option<CallGraphMethod>,
}

impl ChainArguments {
    /// Returns whether call chains are recorded.
    pub fn are_wanted(&self) -> bool {
        self.chains || self.call_graph.is_some()
    }

    /// Adds how they are recorded.
    pub fn method(&self, builder: PlanBuilder) -> PlanBuilder {
        match self.call_graph {
            Some(how) => builder.call_graph(how.into()),
            None => builder,
        }
    }
}

/// Call chains of a run that aggregates in the kernel.
#[derive(Debug, Args)]
pub struct AggregatedChainArguments {
    #[command(flatten)]
    chains: ChainArguments,
    /// Keep at most N call chains per CPU (2,112 bytes each) [default: 64 MiB in total]
    ///
    /// The default is 256 to 8K chains per CPU.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    stacks: Option<u64>,
    /// Limit the memory of unwind tables [default: 32M]
    ///
    /// All of it is allocated when the run starts. A program or library takes about a twentieth of
    /// the size of its code.
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    unwind_memory: Option<u64>,
    /// Unwind at most N frames of user space [default: 127]
    #[arg(long, value_name = "N", help_heading = LIMITS, hide_short_help = true)]
    stack_depth: Option<u32>,
}

impl AggregatedChainArguments {
    /// Returns whether call chains are recorded.
    pub fn are_wanted(&self) -> bool {
        self.chains.are_wanted()
    }

    /// Adds whether call chains are recorded, how, and in how much memory.
    pub fn complete(&self, builder: PlanBuilder) -> PlanBuilder {
        let mut builder = self.chains.method(builder.call_chains(self.are_wanted()));
        if let Some(stacks) = self.stacks {
            builder = builder.stacks(stacks);
        }
        if let Some(bytes) = self.unwind_memory {
            builder = builder.unwind_memory(bytes);
        }
        if let Some(frames) = self.stack_depth {
            builder = builder.stack_depth(frames);
        }
        builder
    }
}

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
