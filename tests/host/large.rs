//! Runs with more threads, and CPUs that come and go, than a small quiet machine has.

use std::{
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    clock,
    run::{EVERYWHERE, Ended, FAULTS, Live, binary, precise},
    say,
};

/// Runs `precise` in a shell with limits of open files.
fn limited(limits: &str, arguments: &[&str]) -> Result<Ended> {
    let script = format!("ulimit {limits} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(binary()?).args(arguments).current_dir("/").stdin(Stdio::null());
    Ok(shell.output()?.into())
}

/// Returns the memory of the rings, as a run prints it when it starts.
fn rings(ended: &Ended) -> Result<String> {
    let (_, after) = ended.stderr.split_once("rings ").context(ended.stderr.clone())?;
    Ok(after.split(' ').next().unwrap_or_default().to_owned())
}

#[test]
fn hundreds_of_threads_need_one_file_each_on_a_cpu_and_no_rings_of_their_own() -> Result<()> {
    const THREADS: usize = 150;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("threads.parquet").display().to_string();
    let run = [FAULTS, &["--duration", "200ms", "-o", &file]].concat();
    let alone = precise([&run[..], &["-a"]].concat())?.expect(0)?;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let (end, ended) = mpsc::channel::<()>();
        // Returns when the sender is dropped.
        threads.push((end, std::thread::spawn(move || ended.recv().is_err())));
    }
    let pid = std::process::id().to_string();
    let processes = [&run[..], &["-p", &pid]].concat();
    // The threads sleep, so there may be no sample, which has an exit code of its own.
    let many = limited("-Sn 64", &processes)?;
    ensure!(many.stderr.contains("wrote the capture"), "{many:#?}");
    assert_eq!(rings(&many)?, rings(&alone)?);
    let refused = limited("-n 250", &processes)?.expect(1)?;
    ensure!(
        refused.stderr.contains("the events need ") && refused.stderr.contains("may have 250"),
        "{refused:#?}"
    );
    ensure!(refused.stderr.contains("ulimit -Hn"), "{refused:#?}");
    for (end, thread) in threads {
        drop(end);
        ensure!(thread.join().unwrap_or(false), "a thread of the test died");
    }
    Ok(())
}

#[test]
fn a_command_keeps_the_limit_of_open_files_that_the_caller_had() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let said = folder.path().join("limit");
    let file = folder.path().join("command.parquet").display().to_string();
    let script = format!("ulimit -Sn >{}", said.display());
    let arguments = [FAULTS, &["-o", &file, "--", "sh", "-c", &script]].concat();
    limited("-Sn 321", &arguments)?.expect(0)?;
    assert_eq!(std::fs::read_to_string(said)?.trim(), "321");
    Ok(())
}

/// The file that takes CPU 1 offline and brings it back.
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// CPU 1 while it is offline; dropped, it is online.
struct Offline;

impl Offline {
    fn take() -> Result<Self> {
        // Restored even if the write fails halfway.
        let offline = Self;
        std::fs::write(ONLINE, "0")?;
        Ok(offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(ONLINE, "1") {
            say(&format!("CPU 1 cannot be brought back: {error}"));
        }
    }
}

#[test]
fn a_cpu_that_goes_offline_is_said() -> Result<()> {
    if !std::path::Path::new(ONLINE).exists() {
        say("skipped: this machine cannot take CPU 1 offline");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE].concat())?;
    clock::sleep(Duration::from_millis(300));
    drop(Offline::take()?);
    clock::sleep(Duration::from_millis(500));
    let recorded = live.interrupt()?;
    let findings = &recorded.capture.meta.events[0].verdict.findings;
    let said = |cpu: &str| findings.iter().any(|finding| finding.starts_with(cpu));
    ensure!(said("CPU 1 was sampled for ") && !said("CPU 0 "), "{findings:?}");

    let whole = Live::start(folder.path(), &[FAULTS, EVERYWHERE].concat())?;
    clock::sleep(Duration::from_millis(300));
    let recorded = whole.interrupt()?;
    let findings = &recorded.capture.meta.events[0].verdict.findings;
    ensure!(findings.iter().all(|finding| !finding.starts_with("CPU ")), "{findings:?}");
    Ok(())
}
