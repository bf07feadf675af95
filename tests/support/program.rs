//! Programs with known results, compiled on demand.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::kill_on_drop::KillOnDrop;

/// The address at which [`FAULTS`] maps its pages.
pub const BASE: u64 = 0x5000_0000_0000;
/// The size of a page in bytes.
pub const PAGE: u64 = 4096;
/// The function of [`FAULTS`] that writes to the pages.
pub const FUNCTION: &str = "touch_pages";
/// The line of [`FAULTS`] that writes to the pages.
pub const LINE: u32 = 10;

/// The source of `faults PAGES [hold]`, which maps `PAGES` pages at [`BASE`] and writes to each of
/// them once. With `hold`, it waits for a byte on its standard input first.
///
/// There are no huge pages and no file behind the mapping, so the kernel takes exactly one fault
/// per page.
pub const FAULTS: &str = r#"#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) void touch_pages(volatile char *p, long pages)
{
    long i;
    for (i = 0; i < pages; i++)
        p[i * 4096] = 1;
}

int main(int argc, char **argv)
{
    long pages = atol(argv[1]);
    char byte;
    char *p = mmap((void *)0x500000000000, pages * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != (char *)0x500000000000)
        return 3;
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    if (argc > 2 && read(0, &byte, 1) != 1)
        return 4;
    touch_pages(p, pages);
    return 0;
}
"#;

/// A [`FAULTS`] that waits for [`Held::go`], so that a run can be attached to it first.
#[derive(Debug)]
pub struct Held(KillOnDrop);

impl Held {
    /// Starts a compiled [`FAULTS`].
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn start(program: &Path, pages: u64) -> Result<Self> {
        let arguments = [&pages.to_string(), "hold"];
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn()?;
        Ok(Self(child.into()))
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Lets it touch its pages, and waits for its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it fails.
    pub fn go(mut self) -> Result<()> {
        self.0.stdin.take().context("its standard input is not a pipe")?.write_all(b"x")?;
        let status = self.0.wait()?;
        ensure!(status.success(), "the workload failed: {status}");
        Ok(())
    }
}

/// Compiles C. The program is `folder/name`, with its source next to it.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn c(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    built("gcc", &["-O2", "-g"], folder, name, "c", source)
}

/// Compiles C with further options of the compiler.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn c_with(options: &[&str], folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    built("gcc", &[&["-O2", "-g"], options].concat(), folder, name, "c", source)
}

/// Compiles C++.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn cpp(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    built("g++", &["-O2", "-g"], folder, name, "cc", source)
}

/// Compiles Rust.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn rust(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    built("rustc", &["-O", "-g", "--edition=2024"], folder, name, "rs", source)
}

/// Compiles [`FAULTS`] as `folder/name`, so that the kernel's name of its process is `name`.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn faults(folder: &Path, name: &str) -> Result<PathBuf> {
    c(folder, name, FAULTS)
}

/// Returns whether a command exists.
pub fn exists(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok()
}

/// Compiles with a compiler and its options. The program is `folder/name`, with its source next to
/// it; `ending` is that of the source.
///
/// # Errors
///
/// Returns the compiler's errors.
pub fn built(
    compiler: &str,
    options: &[&str],
    folder: &Path,
    name: &str,
    ending: &str,
    source: &str,
) -> Result<PathBuf> {
    let source_file = folder.join(format!("{name}.{ending}"));
    std::fs::write(&source_file, source)?;
    let program = folder.join(name);
    let output = Command::new(compiler)
        .arg("-o")
        .arg(&program)
        .arg(&source_file)
        .args(options)
        // Where split debug information goes.
        .current_dir(folder)
        .output()
        .with_context(|| format!("{compiler} cannot be started: is it installed?"))?;
    ensure!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// Returns the path of the Python that has the packages that tests need.
///
/// # Errors
///
/// Returns an error if `cargo xtask setup` did not install it.
pub fn python() -> Result<PathBuf> {
    of_setup("venv/bin/python3")
}

/// Returns the path of Prometheus.
///
/// # Errors
///
/// Returns an error if `cargo xtask setup` did not install it.
pub fn prometheus() -> Result<PathBuf> {
    of_setup("unpacked/prometheus/usr/bin/prometheus")
}

/// Returns promtool, which comes with Prometheus.
///
/// # Errors
///
/// Returns an error if it is missing.
pub fn promtool() -> Result<PathBuf> {
    of_setup("unpacked/prometheus/usr/bin/promtool")
}

fn of_setup(file: &str) -> Result<PathBuf> {
    // A test lies in target/PROFILE/deps, and a measurement in target/PROFILE.
    let program = std::env::current_exe()?;
    let profile = program.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    let target = profile.and_then(Path::parent).context("a program lies in target/PROFILE")?;
    let file = target.join(file);
    ensure!(file.exists(), "{} is missing: `cargo xtask setup` makes it", file.display());
    Ok(file)
}
