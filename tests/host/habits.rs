//! Habits from perf: what runs without `--`, what ends a run, and where output goes.

use std::{
    os::unix::fs::MetadataExt as _,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::{Capture, Name, Row};
use precise_tests::run::{Ended, binary, command, precise};

const FAULTS: [&str; 5] = ["record", "-e", "page-faults", "-c", "1"];

/// Returns the processes of a capture.
fn processes(capture: &Capture) -> Vec<&str> {
    let name = |row: &Row| match row.process {
        Name::Known(id) => Some(capture.names.get(id)),
        Name::Unknown(_) => None,
    };
    let mut names: Vec<&str> = capture.rows.iter().filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_command_needs_no_dashes_and_can_end_a_run_of_the_machine() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.parquet");
    let path = file.display().to_string();
    // The flags of the command are not those of precise, and its output is not in the JSON.
    let options = ["--json", "-o", &path];
    let ended = precise([&FAULTS[..], &options, &["sh", "-c", "echo to-the-reader; exit 3"]].concat())?;
    let ended = ended.expect(3)?;
    serde_json::from_str::<serde_json::Value>(&ended.stdout).context(ended.stdout.clone())?;
    ensure!(ended.stderr.lines().any(|line| line == "to-the-reader"), "{}", ended.stderr);

    // Another process runs while the command waits.
    let begin = Instant::now();
    let mut other = Command::new("sh").args(["-c", "while sleep 0.05; do :; done"]).spawn()?;
    let all = [&FAULTS[..], &["-q", "-a", "-o", &path, "--", "sh", "-c", "sleep 1; exit 4"]].concat();
    let ended = precise(all);
    other.kill()?;
    other.wait()?;
    ended?.expect(4)?;
    ensure!(begin.elapsed() < Duration::from_secs(8), "the end of the command does not end the run");
    let capture = Capture::read(&file)?;
    ensure!(capture.meta.target == "all processes during `sh -c sleep 1; exit 4`", "{}", capture.meta.target);
    let pids = capture.rows.iter().map(|row| row.pid);
    let pids: std::collections::BTreeSet<u32> = pids.collect();
    ensure!(pids.len() > 5, "more than the command: {pids:?}");

    // A capture on the standard output has nothing else in it.
    let command = "echo to-the-reader; exit 5";
    let output =
        Command::new(binary()?).args(FAULTS).args(["-q", "-o", "-", "sh", "-c", command]).output()?;
    ensure!(output.status.code() == Some(5), "{output:?}");
    ensure!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"), "not a capture alone");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("to-the-reader"));
    Ok(())
}

/// As perf.data.old: the run before is there until the next one but one.
#[test]
fn the_capture_before_is_kept_and_sudos_user_owns_the_files() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let file = path("x.parquet").display().to_string();
    // A folder of the user, in a folder of root.
    let nobody = 65534;
    std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody))?;
    let record = |file: &str, exit: &str| -> Result<Ended> {
        let arguments = [&FAULTS[..], &["-o", file, "sh", "-c", exit]].concat();
        let mut command = command(arguments)?;
        command.env("SUDO_UID", nobody.to_string()).env("SUDO_GID", nobody.to_string());
        Ok(command.output()?.into())
    };
    let target = |name: &str| -> Result<String> { Ok(Capture::read(&path(name))?.meta.target) };
    for (exit, before) in [("exit 1", None), ("exit 2", Some("exit 1")), ("exit 3", Some("exit 2"))] {
        let code = exit.trim_start_matches("exit ").parse()?;
        let said = record(&file, exit)?.expect(code)?.stderr;
        ensure!(said.contains("x.parquet.old") == before.is_some(), "{said}");
        ensure!(target("x.parquet")?.contains(exit));
        if let Some(before) = before {
            ensure!(target("x.parquet.old")?.contains(before));
        }
    }
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    ensure!(names == ["x.parquet", "x.parquet.old"], "{names:?}");
    for name in names {
        let data = std::fs::metadata(folder.path().join(name))?;
        ensure!((data.uid(), data.gid(), data.mode() & 0o777) == (nobody, nobody, 0o600));
    }
    let picture = path("x.png");
    let mut draw = command(["heatmap".as_ref(), file.as_ref(), "-o".as_ref(), picture.as_os_str()])?;
    draw.env("SUDO_UID", nobody.to_string()).env("SUDO_GID", nobody.to_string());
    Ended::from(draw.output()?).expect(0)?;
    let data = std::fs::metadata(picture)?;
    ensure!((data.uid(), data.mode() & 0o777) == (nobody, 0o600));
    // Numbers alone do not say that they are few.
    let capture = Capture::read(&path("x.parquet"))?;
    let samples: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    let said = precise(["report", "-x,", &file])?.expect(0)?.stderr;
    ensure!(said.contains(&format!("only {samples} samples")) == (samples < 100), "{samples}: {said}");
    // In a folder of root, the file is root's.
    let others = tempfile::tempdir()?;
    let file = others.path().join("x.parquet");
    record(&file.display().to_string(), "exit 1")?.expect(1)?;
    ensure!(std::fs::metadata(file)?.uid() == 0);
    // What cannot be kept is found before the run.
    std::fs::remove_file(path("x.parquet.old"))?;
    std::fs::create_dir(path("x.parquet.old"))?;
    let refused = record(&path("x.parquet").display().to_string(), "exit 9")?.expect(1)?;
    ensure!(refused.stderr.contains("x.parquet.old is a folder"), "{refused:?}");
    ensure!(target("x.parquet")?.contains("exit 3"));
    Ok(())
}

#[test]
fn a_run_of_processes_ends_with_them_and_what_they_started() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.parquet");
    let path = file.display().to_string();
    // The shell ends before the child that it leaves behind.
    let script = "sleep 1; (sleep 1; ls / >/dev/null) & exit";
    let mut sampled = Command::new("sh").args(["-c", script]).spawn()?;
    let pid = sampled.id().to_string();
    // Otherwise it remains as a zombie, which is not an end for its parent, but is one for the
    // kernel.
    let waiting = std::thread::spawn(move || sampled.wait());
    let begin = Instant::now();
    precise([&FAULTS[..], &["-q", "-o", &path, "--duration", "60s", "-p", &pid]].concat())?.expect(0)?;
    let took = begin.elapsed();
    waiting.join().ok().context("a thread died")??;
    ensure!(took > Duration::from_millis(1500), "it ended with the first process: {took:?}");
    ensure!(took < Duration::from_secs(20), "it went on: {took:?}");
    let capture = Capture::read(&file)?;
    ensure!(processes(&capture).contains(&"ls"), "{:?}", processes(&capture));
    Ok(())
}
