//! `cargo xtask trace`: runs precise with an eBPF program that logs what it does with samples.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::{build_ebpf, checkout, process};

/// Run precise with an eBPF program that logs why each sample was kept, rejected or dropped
///
/// The log goes to standard error, at most 200 lines per second and CPU; the log says how many
/// lines are missing. It is for debugging the program: no release can load this program.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// The command line of precise: `cargo xtask trace -- record -a --duration 1s`
    #[arg(last = true, required = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Runs the task.
pub fn run(args: &TraceArgs) -> Result<()> {
    let object = build_ebpf::traced()?;
    process::run(&mut process::build_for_tests(&["precise", "host-trace"]))?;
    // Only builds with debug assertions read the variable.
    let mut trace = Command::new(checkout::target().join("debug/host-trace"));
    trace.env(build_ebpf::OBJECT_VARIABLE, &object).args(&args.arguments);
    println!("$ {}", process::show(&trace));
    let status = trace.stdin(Stdio::inherit()).status().context("host-trace cannot be started")?;
    if !status.success() {
        bail!("precise ended with {status}");
    }
    Ok(())
}
