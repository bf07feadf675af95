//! `cargo xtask bench`: measurements that say what precise costs.

use anyhow::{Result, bail};
use clap::Subcommand;

/// Measure what precise costs
#[derive(clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Nanoseconds per sample of the eBPF program on this machine
    Kernel,
}

/// Runs the task.
pub fn run(args: &BenchArgs) -> Result<()> {
    match args.bench {
        Bench::Kernel => bail!(
            "the kernel benchmark is not written yet, so there is nothing to measure; \
             fill in `Bench::Kernel` in xtask/src/bench.rs"
        ),
    }
}
