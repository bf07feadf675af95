//! Reading and clearing the table makes no bpf(2) calls: each one would make the kernel skip
//! samples on its CPU.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

#[test]
fn draining_makes_no_bpf_call() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("calls");
    let output = Command::new("strace")
        .args(["-f", "-e", "trace=bpf,write", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_host-drain"))
        .output()
        .context("strace cannot be started: is it installed?")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let log = std::fs::read_to_string(log)?;
    let (before, rest) = log.split_once("\"drain begins\"").context("the first mark was not seen")?;
    let (between, after) = rest.split_once("\"drain ends\"").context("the second mark was not seen")?;
    // The tracer does see such calls: some of them loaded the program and created its maps.
    ensure!(before.matches("bpf(").count() >= 3, "{before}");
    ensure!(!between.contains("bpf("), "a bpf(2) call while draining: {between}");
    ensure!(!after.contains("bpf(BPF_MAP"), "a map is read after all: {after}");

    // No other calls either: besides the faulting program's own calls and marks, there is one to
    // wait for each flip.
    let counted = Command::new("strace")
        .args(["-f", "-c", "-e", "trace=bpf,membarrier,ioctl"])
        .arg(env!("CARGO_BIN_EXE_host-drain"))
        .output()?;
    let table = String::from_utf8_lossy(&counted.stderr);
    let calls = |name: &str| -> u64 {
        let line = table.lines().find(|line| line.split_whitespace().last() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(3)).and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    // Loading takes a number of calls that does not depend on the 50 drains.
    ensure!((3..50).contains(&calls("bpf")), "{table}");
    ensure!(calls("membarrier") == 50, "{table}");
    Ok(())
}
