//! `cargo xtask bench`: measurements that say what precise costs.

use anyhow::Result;
use clap::Subcommand;

use crate::{build_ebpf, checkout, process};

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
    /// Memory, files and ledger of a long run with short epochs, while processes and cgroups come
    /// and go
    Soak {
        /// How long; ten minutes have as many epochs as eight hours of a run
        #[arg(long, default_value_t = 600)]
        seconds: u64,

        /// Of `precise serve`, instead of a capture
        #[arg(long)]
        serve: bool,
    },
    /// Seconds and memory that `precise import` takes for a large perf.data, beside `perf script`
    Import {
        /// Bytes of the file that is made for it
        #[arg(long, default_value_t = 1 << 30)]
        size: u64,
    },
}

/// Runs the task.
pub fn run(args: &BenchArgs) -> Result<()> {
    match args.bench {
        Bench::Kernel => {
            let yardstick = build_ebpf::yardstick()?;
            // Not optimised: what is measured runs in the kernel.
            let mut bench = process::cargo();
            bench.args(["run", "--locked", "--package", "precise-tests", "--bin", "bench-kernel"]);
            process::run(bench.env(YARDSTICK_VARIABLE, yardstick))
        }
        Bench::Soak { seconds, serve } => {
            let mut soak = process::cargo();
            soak.args([
                "test",
                "--locked",
                "--package",
                "precise-tests",
                "--test",
                "host",
                "--",
                "--nocapture",
                if serve {
                    "soak::nothing_grows_that_is_served"
                } else {
                    "soak::nothing_grows_and_nothing_is_lost"
                },
            ]);
            process::run(soak.env("PRECISE_SOAK_SECONDS", seconds.to_string()))
        }
        Bench::Import { size } => {
            process::run(process::cargo().args([
                "build",
                "--locked",
                "--release",
                "--package",
                "precise-user",
            ]))?;
            let precise = checkout::target().join("release/precise");
            let mut bench = process::cargo();
            bench.args(["run", "--locked", "--package", "precise-tests", "--bin", "bench-import", "--"]);
            process::run(bench.arg(precise).arg(size.to_string()))
        }
    }
}
