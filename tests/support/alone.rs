//! Runs a test in its own process, for tests that measure their process, which other tests share
//! otherwise.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// The environment variable that tells the started process which test it is for.
const VARIABLE: &str = "PRECISE_ALONE";

/// Runs `body`, the whole of the test called `name` (as `--exact` takes it), in a new process: this
/// test program, started again for this test only. Memory, open files and the panic hook of that
/// process then belong to the test alone.
///
/// # Errors
///
/// Returns an error if the process cannot be started, if no test has that name, or if `body` fails;
/// the error then contains the output of the process.
pub fn alone(name: &str, body: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::env::var_os(VARIABLE).is_some_and(|only| only == *name) {
        return body();
    }
    let folder = tempfile::tempdir()?;
    let printed = folder.path().join("stdout");
    let status = Command::new(std::env::current_exe()?)
        .args(["--exact", name, "--nocapture"])
        .env(VARIABLE, name)
        .stdout(File::create(&printed)?)
        .status()
        .context("cannot start this test program once more")?;
    let printed: Vec<String> = BufReader::new(File::open(&printed)?).lines().collect::<Result<_, _>>()?;
    ensure!(status.success(), "{name} failed in a process of its own ({status}):\n{}", printed.join("\n"));
    ensure!(
        printed.iter().any(|line| line.contains("1 passed")),
        "this program has no test called {name}:\n{}",
        printed.join("\n")
    );
    Ok(())
}
