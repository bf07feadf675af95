//! `cargo xtask bench`: measurements that say what precise costs.

use anyhow::Result;
use clap::Subcommand;

use crate::{build_ebpf, process};

/// Names the object that the program is measured against.
const YARDSTICK_VARIABLE: &str = "PRECISE_BENCH_OBJECT";

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
        Bench::Kernel => {
            let yardstick = build_ebpf::yardstick()?;
            // Unoptimised: what is measured runs in the kernel.
            let mut bench = process::cargo();
            bench.args([
                "run",
                "--locked",
                "--release",
                "--package",
                "precise-tests",
                "--bin",
                "bench-kernel",
            ]);
            process::run(bench.env(YARDSTICK_VARIABLE, yardstick))
        }
    }
}
