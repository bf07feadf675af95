//! Programs with known answers, compiled when they are needed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// Where [`FAULTS`] maps its pages.
pub const BASE: u64 = 0x5000_0000_0000;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The function of [`FAULTS`] that touches the pages.
pub const FUNCTION: &str = "touch_pages";
/// The line of [`FAULTS`] that touches them.
pub const LINE: u32 = 10;

/// `faults PAGES [hold]`: maps so many pages at [`BASE`] and writes to each of them once. With
/// `hold`, it waits for a byte on its standard input first.
///
/// No huge pages, no file behind: the kernel takes exactly one fault for each page.
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

/// Compiles C. The program is `folder/name`, its source beside it.
///
/// # Errors
///
/// What the compiler says.
pub fn c(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    compile("gcc", &["-O2", "-g"], folder, name, "c", source)
}

/// Compiles C++.
///
/// # Errors
///
/// What the compiler says.
pub fn cpp(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    compile("g++", &["-O2", "-g"], folder, name, "cc", source)
}

/// Compiles Rust.
///
/// # Errors
///
/// What the compiler says.
pub fn rust(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    compile("rustc", &["-O", "-g", "--edition=2024"], folder, name, "rs", source)
}

/// [`FAULTS`], compiled as `folder/name`: the kernel's name of its process is then `name`.
///
/// # Errors
///
/// What the compiler says.
pub fn faults(folder: &Path, name: &str) -> Result<PathBuf> {
    c(folder, name, FAULTS)
}

/// Whether there is such a command.
pub fn exists(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok()
}

fn compile(
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
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&source_file)
        .output()
        .with_context(|| format!("{compiler} cannot be started: is it installed?"))?;
    ensure!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// The Python that has the packages which tests need.
///
/// # Errors
///
/// When `cargo xtask setup` did not make it.
pub fn python() -> Result<PathBuf> {
    of_setup("venv/bin/python3")
}

/// Prometheus.
///
/// # Errors
///
/// As above.
pub fn prometheus() -> Result<PathBuf> {
    of_setup("unpacked/prometheus/usr/bin/prometheus")
}

fn of_setup(file: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).context("a test lies in target/PROFILE/deps")?;
    let file = target.join(file);
    ensure!(file.exists(), "{} is missing: `cargo xtask setup` makes it", file.display());
    Ok(file)
}
