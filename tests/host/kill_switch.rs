//! The kill switch: one file ends every run, and prevents new ones.

use precise::capture::CaptureFile as _;
use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::model::Capture;
use precise_tests::{
    clock::{self, Clock},
    program,
    run::{Ended, FAULTS, binary, command, precise},
    say,
};

/// The exit code of a run that the kill switch has ended.
const STOPPED: i32 = 70;

/// Waits until `file` is not empty, which shows that the run has started.
fn wait_for(file: &Path) -> Result<()> {
    let begin = Instant::now();
    while std::fs::metadata(file).map_or(0, |data| data.len()) == 0 {
        ensure!(begin.elapsed() < Duration::from_secs(60), "{} stays empty", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn a_file_ends_every_run_and_refuses_new_ones() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let (stop, capture) = (path("stop"), path("killed.parquet"));
    let also = ["--duration", "300s", "--stop-file"];

    // One run that aggregates, with a command, and one that streams. They have started when the
    // command or a sample appears.
    let workload = program::faults(folder.path(), "faults")?;
    let begun = path("begun");
    let script = format!(
        "{} 1000; echo >{}; while [ ! -e {} ]; do sleep 0.1; done; sleep 2; echo >{}",
        workload.display(),
        begun.display(),
        stop.display(),
        path("went-on").display()
    );
    let recording = command(FAULTS)?
        .args(also)
        .args([&stop, Path::new("-o"), &capture, Path::new("--"), Path::new("sh"), Path::new("-c")])
        .arg(script)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let samples = path("samples");
    let streaming = command(["script", "-e", "page-faults", "-c", "1"])?
        .args(also)
        .arg(&stop)
        .stdout(std::fs::File::create(&samples)?)
        .stderr(Stdio::piped())
        .spawn()?;
    wait_for(&begun)?;
    wait_for(&samples)?;

    std::fs::write(&stop, "")?;
    let thrown = Clock::start();
    // One second later nothing is sampled any more, even if symbolization and writing are still in
    // progress.
    clock::sleep(Duration::from_secs(1));
    let late = program::faults(folder.path(), "too-late")?;
    ensure!(Command::new(late).arg("1000").status()?.success());
    let recorded = Ended::from(recording.wait_with_output()?).expect(STOPPED)?;
    let streamed = Ended::from(streaming.wait_with_output()?).expect(STOPPED)?;
    say(&format!("both runs ended {:?} after the file was there", thrown.elapsed()));
    let why = format!("the kill switch {} exists", stop.display());
    for ended in [&recorded, &streamed] {
        ensure!(ended.stderr.contains(&why), "it does not say why: {ended:#?}");
    }

    let samples = std::fs::read_to_string(&samples)?;
    ensure!(!samples.contains("too-late"), "samples of more than a second after the file was there");

    // The capture is complete, and contains the reason for its early end.
    let kept = Capture::read(&capture)?;
    ensure!(kept.meta.notes.iter().any(|note| note.contains(&why)), "{:?}", kept.meta.notes);
    let samples: u64 = kept.rows.iter().map(|row| row.measures.count).sum();
    ensure!(samples >= 1000, "{samples} samples in the capture");
    let report = precise(["report".as_ref(), "-i".as_ref(), capture.as_os_str()])?.expect(0)?;
    ensure!(report.stdout.contains("stopped early"), "{}", report.stdout);
    // The kill switch affects only precise: the command continues.
    wait_for(&path("went-on"))?;

    for arguments in [vec!["record"], vec!["script"]] {
        let refused =
            command(arguments)?.arg("--stop-file").arg(&stop).output().map(Ended::from)?.expect(STOPPED)?;
        ensure!(refused.stderr.contains("sampling is switched off on this machine"), "{refused:#?}");
    }
    Ok(())
}

/// The node's own file, in a mount namespace of this test, also applies to a user who may not read
/// its folder.
#[test]
fn the_nodes_own_file_holds_for_everybody() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let precise = folder.path().join("precise");
    std::fs::copy(binary()?, &precise)?;
    std::fs::set_permissions(&precise, std::fs::Permissions::from_mode(0o755))?;
    let other = "--stop-file /no/such/file";
    let inside = format!(
        "mount -t tmpfs none /run && mkdir /run/precise && touch /run/precise/stop
         {p} record {other}; echo $?
         {p} doctor --self-test; echo $?
         rm /run/precise/stop; chmod 0700 /run/precise
         setpriv --reuid 65534 --clear-groups {p} record; echo $?",
        p = precise.display()
    );
    let output =
        Command::new("unshare").args(["--mount", "sh", "-c", &inside]).output().context("unshare")?;
    let ended = Ended::from(output);
    ensure!(ended.stdout == "70\n70\n70\n", "{ended:#?}");
    ensure!(ended.stderr.contains("the kill switch /run/precise/stop exists"), "{ended:#?}");
    ensure!(ended.stderr.contains("the kill switch /run/precise/stop cannot be checked"), "{ended:#?}");
    Ok(())
}
