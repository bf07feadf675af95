//! `cargo xtask bench`: measures the overhead of precise.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Subcommand;

use crate::lab::apt::Apt;
use crate::lab::described::described_kernel;
use crate::lab::newer_perf::newer_perf;
use crate::{build_ebpf, checkout, dist, process};

/// The environment variable with the path of the baseline object.
const YARDSTICK_VARIABLE: &str = "PRECISE_BENCH_OBJECT";
/// The environment variable with the path of a perf that knows types.
const PERF_VARIABLE: &str = "PRECISE_BENCH_PERF";

/// Measure the overhead of precise
#[derive(clap::Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Measure the nanoseconds per sample of the eBPF program on this machine
    Kernel {
        /// Only what unwinding costs by frame
        #[arg(long)]
        frames: bool,
    },
    /// Measure memory, files and ledger of a long run with short epochs, while processes and
    /// cgroups come and go
    Soak {
        /// Duration in seconds; ten minutes have as many epochs as an ordinary run of eight hours
        #[arg(long, default_value_t = 600)]
        seconds: u64,

        /// Measure `precise serve` instead of a capture
        #[arg(long)]
        serve: bool,
    },
    /// Inject random faults while a record and a serve run, and judge every run
    Chaos {
        /// Number of faults
        #[arg(long, default_value_t = 1000)]
        faults: u64,

        /// The seed: the same seed injects the same faults
        #[arg(long, default_value_t = 2026)]
        seed: u64,
    },
    /// Measure the memory of a record and a serve while processes, containers, programs and
    /// libraries come and go
    Churn {
        /// Duration in seconds; memory is judged from the eleventh minute on
        #[arg(long, default_value_t = 3600)]
        seconds: u64,
    },
    /// Measure cost, epochs and memory of a serve while many clients scrape and browse it
    Serve {
        /// Number of clients, each of which asks ten times per second
        #[arg(long, default_value_t = 100)]
        clients: usize,

        /// Duration in seconds; memory is judged from the sixth minute on
        #[arg(long, default_value_t = 900)]
        seconds: u64,
    },
    /// Compare precise with perf, bpftrace and others, as far as they are installed, and show how
    /// its cost grows
    All {
        /// How often each contender is measured
        #[arg(long, default_value_t = 6)]
        rounds: usize,

        /// Only these chapters: slowdown, timers, program, profiler, growth, symbols, imports,
        /// views, pictures, table, paper
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,

        /// Write the tables to this page, and leave its other chapters as they are
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Fail if precise costs more, next to perf, than it may; continuous integration runs this
    Quick {
        /// How often each contender is measured
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// Compare call chains with those of perf, sample by sample, and what they cost
    Callers {
        /// Only whether they are the same, or only what they cost
        #[arg(long, value_parser = ["same", "cost", "all"], default_value = "all")]
        only: String,

        /// Write the tables to this page
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Time of the README's two commands in a clean clone of the last commit, which shares nothing
    /// with this checkout but downloaded sources
    Build {
        /// Only the first command
        #[arg(long)]
        first: bool,
    },
    /// Measure the rows per second, the bytes per row and the memory of `precise fleet compact` on
    /// a generated fleet, and the time of questions to the tables of a large one
    Fleet {
        /// Number of nodes
        #[arg(long, default_value_t = 20)]
        nodes: u32,
        /// Number of hours
        #[arg(long, default_value_t = 24)]
        hours: u32,
        /// Number of captures of a node in an hour, which divides 60
        #[arg(long, default_value_t = 6)]
        captures: u32,
        /// Number of rows of a capture
        #[arg(long, default_value_t = 5000)]
        rows: u32,
        /// Number of nodes of the large fleet, each with 26 rows of each of 200 services in a day:
        /// 10,000 for 48 million rows
        #[arg(long, default_value_t = 1000)]
        large: u32,
        /// Only let pairs of compactors be killed fifty times over a day of 1,000 nodes, and
        /// compare the tables with those of one compactor
        #[arg(long)]
        race: bool,
    },
    /// Measure how much of zstd, SQLite, PostgreSQL and a server in Rust has types, and compare
    /// these with the types of perf; sources and perf come from Debian
    Types {
        /// Write the table to its place on this page
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Measure how much of the code of a kernel of Debian has types, by its debug information and
    /// by BTF alone
    KernelTypes {
        /// Take every Nth function
        #[arg(long, value_name = "N", default_value_t = 1)]
        every: u32,
    },
}

/// Runs the task.
pub fn run(args: &BenchArgs) -> Result<()> {
    match args.bench {
        Bench::Kernel { frames } => {
            let yardstick = build_ebpf::yardstick()?;
            // Not optimised, because the measured code runs in the kernel.
            let mut bench = process::cargo();
            bench.args(["run", "--locked", "--package", "precise-tests", "--bin", "bench-kernel"]);
            bench.env(YARDSTICK_VARIABLE, yardstick);
            process::run(if frames { bench.args(["--", "frames"]) } else { &mut bench })
        }
        Bench::Soak { seconds, serve } => {
            let test = if serve {
                "soak::nothing_grows_that_is_served"
            } else {
                "soak::nothing_grows_and_nothing_is_lost"
            };
            process::run(host_test(test).env("PRECISE_SOAK_SECONDS", seconds.to_string()))
        }
        Bench::Chaos { faults, seed } => {
            let mut chaos = host_test("chaos::no_fault_ends_a_run_without_a_word");
            chaos.env("PRECISE_CHAOS_FAULTS", faults.to_string());
            process::run(chaos.env("PRECISE_CHAOS_SEED", seed.to_string()))
        }
        Bench::Churn { seconds } => {
            let precise = dist::shipped()?;
            let mut bench = program("bench-churn");
            process::run(bench.arg(precise).arg(seconds.to_string()))
        }
        Bench::Serve { clients, seconds } => {
            let precise = dist::shipped()?;
            let mut bench = program("bench-serve");
            process::run(bench.arg(precise).args([clients.to_string(), seconds.to_string()]))
        }
        Bench::All { rounds, ref only, ref page } => {
            let chapters = if only.is_empty() { "all".to_owned() } else { only.join(",") };
            let precise = dist::shipped()?;
            let mut bench = compare(&["--release"], &precise, &chapters, rounds);
            bench.env(PERF_VARIABLE, knows_types()?).env("PATH", with_blazecli()?);
            process::run(bench.args(page))
        }
        Bench::Quick { rounds } => quick(&release()?, rounds),
        Bench::Callers { ref only, ref page } => {
            let precise = dist::shipped()?;
            let mut bench = program("bench-callers");
            process::run(bench.arg(precise).arg(only).args(page))
        }
        Bench::Build { first } => build(first),
        Bench::Fleet { race: true, .. } => {
            let precise = dist::shipped()?;
            let mut bench = program("bench-fleet-race");
            process::run(bench.arg(precise).args(["1000", "24", "200", "50"]))
        }
        Bench::Fleet { nodes, hours, captures, rows, large, race: false } => {
            let precise = dist::shipped()?;
            let mut bench = program("bench-fleet");
            bench.arg(&precise).args([nodes, hours, captures, rows].map(|number| number.to_string()));
            process::run(&mut bench)?;
            let mut ask = program("bench-fleet-ask");
            process::run(ask.arg(precise).args([large.to_string().as_str(), "26"]))
        }
        Bench::Types { ref page } => {
            let precise = dist::shipped()?;
            let (sources, server) = (sources_of_programs()?, described_server()?);
            let mut bench = process::cargo();
            bench.args([
                "run",
                "--locked",
                "--release",
                "--package",
                "precise-tests",
                "--bin",
                "bench-types",
            ]);
            bench.arg("--").arg(precise).arg(sources).arg(server).arg(knows_types()?);
            process::run(bench.args(page))
        }
        Bench::KernelTypes { every } => kernel_types(&["--release"], every),
    }
}

/// Fails if this binary costs more, next to perf, than it may.
pub fn quick(precise: &Path, rounds: usize) -> Result<()> {
    process::run(&mut compare(&[], precise, "quick", rounds))
}

/// Fails if fewer accesses of a kernel's code have types than should: 90 % of those in code with
/// variables by debug information, 45 % of all by BTF alone.
pub fn kernel_types(build: &[&str], every: u32) -> Result<()> {
    let described = described_kernel(&checkout::target().join("lab"))?;
    for (by, wanted) in [("debug-information", "90"), ("btf", "45")] {
        let mut bench = process::cargo();
        bench.args(["run", "--locked", "--package", "precise-tests", "--bin", "bench-kernel-types"]);
        bench.args(build).arg("--").arg(&described).args([&every.to_string(), by, wanted]);
        process::run(&mut bench)?;
    }
    Ok(())
}

/// Returns the command that asks the questions of these chapters.
fn compare(build: &[&str], precise: &Path, chapters: &str, rounds: usize) -> Command {
    let mut bench = process::cargo();
    bench.args(["run", "--locked", "--package", "precise-tests", "--bin", "bench-compare"]).args(build);
    bench.arg("--").arg(precise).arg(chapters).arg(rounds.to_string());
    bench
}

/// Returns the command that runs one test of this machine's kernel.
fn host_test(name: &str) -> Command {
    let mut test = process::cargo();
    test.args([
        "test",
        "--locked",
        "--package",
        "precise-tests",
        "--test",
        "host",
        "--",
        "--nocapture",
        name,
    ]);
    test
}

/// Builds the binary as those have it who build it themselves, and returns its path. It takes less
/// time to build than the one that is shipped.
fn release() -> Result<PathBuf> {
    process::run(&mut process::build_release())?;
    Ok(checkout::target().join("release/precise"))
}

/// Returns a perf that knows types.
fn knows_types() -> Result<PathBuf> {
    newer_perf(&checkout::target().join("bench-types/perf"))
}

/// Returns where to look for programs, the command of blazesym among them.
fn with_blazecli() -> Result<OsString> {
    const VERSION: &str = "0.1.14";
    let root = checkout::target().join("bench-tools");
    if !root.join("bin/blazecli").exists() {
        let mut install = process::cargo();
        install.args(["install", "--locked", "--version", VERSION, "--root"]).arg(&root).arg("blazecli");
        process::run(&mut install)?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(root.join("bin")).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}

/// Returns the folder with the sources of the programs whose types are measured.
fn sources_of_programs() -> Result<PathBuf> {
    const SOURCES: [(&str, &str); 3] =
        [("zstd", "libzstd"), ("sqlite", "sqlite3"), ("postgres", "postgresql-15")];
    let folder = checkout::target().join("bench-types");
    if SOURCES.iter().any(|(name, _)| !folder.join(name).exists()) {
        let apt = Apt::of_sources(folder.join("apt"))?;
        for (name, package) in SOURCES.iter().filter(|(name, _)| !folder.join(name).exists()) {
            apt.source(&folder, package, name)?;
        }
    }
    Ok(folder)
}

/// Builds the server whose types are measured, with all of its debug information, and returns its
/// path.
fn described_server() -> Result<PathBuf> {
    let target = checkout::target().join("bench-types/target");
    let mut build = process::cargo();
    build.args([
        "build",
        "--locked",
        "--release",
        "--package",
        "precise-tests",
        "--bin",
        "bench-types-server",
    ]);
    build.env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_RELEASE_DEBUG", "2");
    process::run(build.env("CARGO_PROFILE_RELEASE_STRIP", "none"))?;
    Ok(target.join("release/bench-types-server"))
}

/// Returns the command that builds and runs a program of the tests; its arguments follow.
fn program(name: &str) -> Command {
    let mut bench = process::cargo();
    bench.args(["run", "--locked", "--package", "precise-tests", "--bin", name, "--"]);
    bench
}

fn build(first: bool) -> Result<()> {
    let clone = checkout::target().join("bench-build");
    remove(&clone)?;
    process::run(Command::new("git").args(["clone", "--quiet"]).arg(checkout::root()).arg(&clone))?;
    let clean = |arguments: &[&str]| {
        let mut cargo = process::cargo();
        // The clone has a target folder of its own, below it.
        cargo.args(arguments).current_dir(&clone).env_remove("CARGO_TARGET_DIR");
        cargo
    };
    time("cargo build --release", &mut clean(&["build", "--locked", "--release"]))?;
    if !first {
        time("cargo xtask test", &mut clean(&["xtask", "test"]))?;
    }
    remove(&clone)
}

/// Removes what an earlier measurement left.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| format!("cannot remove {}", folder.display())),
    }
}

fn time(name: &str, command: &mut Command) -> Result<()> {
    let start = Instant::now();
    process::run(command)?;
    let seconds = start.elapsed().as_secs();
    println!("{name}: {} min {:02} s", seconds / 60, seconds % 60);
    Ok(())
}
