//! The .deb in Debian 11, the oldest that is supported: booted with its own systemd in a container
//! that shares this machine's kernel, so that the service samples what it would sample there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Packages;
use super::root::first_answer;
use crate::dist::deb;
use crate::dist::release::Release;
use crate::process;

const SUITE: &str = "bullseye";
/// What the container does once it is up.
const SCRIPT: &str = include_str!("debian.sh");
/// How long the container may run, in seconds.
const LONGEST: &str = "120";
/// What the container may do: what a machine's own systemd may, as far as the service needs it.
const RIGHTS: &str = "--capability=CAP_PERFMON,CAP_BPF,CAP_SYS_PTRACE,CAP_SYSLOG";
const CALLS: &str = "--system-call-filter=perf_event_open bpf syslog";

/// Runs the check.
pub fn check(packages: &Packages) -> Result<()> {
    let root = packages.folder.join("debian");
    let mut bootstrap = Command::new("mmdebstrap");
    bootstrap.args(["--quiet", "--mode=root", "--variant=essential", "--include=systemd-sysv"]);
    process::output(bootstrap.arg(SUITE).arg(&root))?;

    let here = root.join("packages");
    fs::create_dir_all(&here).with_context(|| format!("cannot create {}", here.display()))?;
    fs::copy(packages.file(".deb")?, here.join("first.deb")).context("cannot copy the package")?;
    fs::rename(newer(packages)?, here.join("second.deb")).context("cannot move the newer package")?;
    fs::write(here.join("commit"), &packages.release.commit)?;
    fs::write(here.join("first-answer"), first_answer()?)?;
    run_at_start(&root)?;

    let log = packages.folder.join("container.log");
    let mut boot = Command::new("timeout");
    boot.args([LONGEST, "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit"])
        .args(["--link-journal=no", "--resolv-conf=off", "--timezone=off", RIGHTS, CALLS, "--directory"])
        .arg(&root);
    let ended = process::output(&mut boot);
    let said = fs::read_to_string(here.join("log")).unwrap_or_default();
    if let Err(error) = ended {
        return Err(error)
            .with_context(|| format!("the container did not end by itself; its script said:\n{said}"));
    }
    fs::write(&log, &said)?;
    ensure!(said.lines().any(|line| line == "PASSED"), "the script in the container said:\n{said}");
    Ok(())
}

/// Makes the same package with a higher version.
fn newer(packages: &Packages) -> Result<PathBuf> {
    let release =
        Release { version: format!("{}+newer", packages.release.version), ..packages.release.clone() };
    let work = packages.folder.join("newer");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work.join(deb::make(&release, &packages.binary, &work, &work)?))
}

/// Makes the container run the script once it is up, and end.
fn run_at_start(root: &Path) -> Result<()> {
    const UNIT: &str = "\
[Unit]
Description=The test of the package
[Service]
Type=oneshot
ExecStart=/bin/bash /packages/script
StandardOutput=append:/packages/log
StandardError=inherit
ExecStopPost=/bin/systemctl --no-block poweroff
";
    let units = root.join("etc/systemd/system");
    let write = || {
        fs::write(root.join("packages/script"), SCRIPT)?;
        fs::create_dir_all(units.join("multi-user.target.wants"))?;
        fs::write(units.join("packages.service"), UNIT)?;
        std::os::unix::fs::symlink(
            "../packages.service",
            units.join("multi-user.target.wants/packages.service"),
        )
    };
    write().with_context(|| format!("cannot prepare {}", root.display()))
}
