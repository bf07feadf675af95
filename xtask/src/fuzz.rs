//! `cargo xtask fuzz`: searches for bytes that a reader of untrusted bytes does not survive.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{checkout, process};

/// Run the fuzz targets of tests/fuzz, one after the other, under AddressSanitizer
///
/// Needs cargo-fuzz (`cargo install cargo-fuzz`) and a nightly compiler; the first build takes some
/// ten minutes. Inputs that reach new code are kept below target/fuzz. A crash ends the task, and
/// cargo-fuzz prints how to repeat it.
#[derive(Args)]
pub struct FuzzArgs {
    /// Targets to run; all of them without this
    targets: Vec<String>,
    /// Search for this time with each target
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,
}

/// Maximum memory of a target in MiB, most of it AddressSanitizer's, and maximum time for one input
/// in seconds.
const LIMITS: [&str; 2] = ["-rss_limit_mb=1024", "-timeout=10"];

/// Runs the targets.
pub fn run(args: &FuzzArgs) -> Result<()> {
    let known = targets()?;
    if let Some(unknown) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no fuzz target {unknown}; there are {}", known.join(", "));
    }
    if process::find("cargo-fuzz").is_none() {
        bail!("cargo-fuzz is not installed: `cargo install cargo-fuzz` installs it");
    }
    for target in if args.targets.is_empty() { &known } else { &args.targets } {
        let found = checkout::target().join("fuzz").join(target);
        fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
        let kept = checkout::root().join("tests/corpus").join(target);
        let mut fuzz = Command::new("cargo");
        fuzz.current_dir(checkout::root());
        // This task's own compiler is the stable one, and would be inherited.
        fuzz.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir", "tests/fuzz", target]).arg(&found);
        if kept.is_dir() {
            fuzz.arg(&kept);
        }
        fuzz.arg("--").arg(format!("-max_total_time={}", args.seconds)).args(LIMITS);
        process::run(&mut fuzz)?;
    }
    Ok(())
}

/// Returns the names of the targets.
fn targets() -> Result<Vec<String>> {
    let path = checkout::root().join("tests/fuzz/Cargo.toml");
    let manifest = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (_, bins) = manifest.split_once("[[bin]]").context("tests/fuzz/Cargo.toml has no [[bin]]")?;
    let name = |line: &str| Some(line.strip_prefix("name = \"")?.strip_suffix('"')?.to_owned());
    Ok(bins.lines().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_its_file_and_its_test() {
        let targets = targets().unwrap();
        assert!(targets.len() >= 4, "{targets:?}");
        let tests = fs::read_to_string(checkout::root().join("tests/untrusted.rs")).unwrap();
        for target in targets {
            assert!(checkout::root().join(format!("tests/fuzz/{target}.rs")).is_file(), "{target}");
            assert!(tests.contains(&format!("untrusted::{target})")), "{target} is not run on stable");
        }
    }
}
