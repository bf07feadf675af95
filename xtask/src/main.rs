//! The build and check tasks of precise: `cargo xtask --help`.

#[cfg(test)]
mod architecture;
mod bench;
mod build_ebpf;
mod checkout;
mod ci;
#[cfg(test)]
mod columns;
mod dist;
mod format;
mod fuzz;
mod lab;
#[cfg(test)]
mod module_arrows;
mod process;
mod remap;
mod rustc_wrapper;
mod setup;
mod sha256;
mod test;
mod trace;
#[cfg(test)]
mod type_names;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use rustc_wrapper::RustcWrapper;

/// Build and check precise. Everything that is built or checked goes through these tasks.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Setup(setup::SetupArgs),
    BuildEbpf(build_ebpf::BuildEbpfArgs),
    Test(test::TestArgs),
    Ci(ci::CiArgs),
    Bench(bench::BenchArgs),
    Dist(dist::DistArgs),
    /// Format the source. `cargo fmt` leaves out the folders of views, which a macro declares
    Fmt,
    Fuzz(fuzz::FuzzArgs),
    Lab(lab::LabArgs),
    Trace(trace::TraceArgs),
}

fn main() -> ExitCode {
    let wrappers = [build_ebpf::wrapper::WRAPPER, dist::wrapper::WRAPPER];
    if let Some(failed) = wrappers.iter().find_map(RustcWrapper::stand_in) {
        return exit(failed.map(|()| true));
    }
    exit(match Cli::parse().task {
        Task::Setup(args) => setup::run(&args).map(|()| true),
        Task::BuildEbpf(args) => build_ebpf::run(&args).map(|()| true),
        Task::Test(args) => test::run(&args),
        Task::Ci(args) => ci::run(&args),
        Task::Bench(args) => bench::run(&args).map(|()| true),
        Task::Dist(args) => dist::run(&args).map(|()| true),
        Task::Fmt => format::run(false).map(|()| true),
        Task::Fuzz(args) => fuzz::run(&args).map(|()| true),
        Task::Lab(args) => lab::run(args).map(|()| true),
        Task::Trace(args) => trace::run(&args).map(|()| true),
    })
}

/// Returns the exit code of a task. `Ok(false)` is a failure that was already reported, because
/// nothing may follow the last line of `test`.
fn exit(result: Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
