//! Runs the commands that build the lab.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command to its end; an error contains the command's output.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a command to its end and returns its standard output.
pub fn stdout(command: &mut Command) -> Result<Vec<u8>> {
    output(command).map(|out| out.stdout)
}

fn output(command: &mut Command) -> Result<Output> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !out.status.success() {
        bail!(
            "{command:?} failed ({})\n{}{}",
            out.status,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr),
        );
    }
    Ok(out)
}

/// Runs a shell pipeline, for data that is too large to pass through this process. `args` are `$1`,
/// `$2`, …
pub fn pipeline<S: AsRef<std::ffi::OsStr>>(script: &str, args: &[S]) -> Result<()> {
    run(Command::new("bash").args(["-euo", "pipefail", "-c", script, "bash"]).args(args))
}

/// Returns whether a command of that name exists in PATH.
pub fn has(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// Writes a file only if its content differs, so that its modification time tells when it changed.
pub fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
