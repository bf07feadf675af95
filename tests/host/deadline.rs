//! Runs that end abnormally: a run whose user space is stopped or killed stops sampling and leaves
//! nothing behind, and a run whose command does not end kills it.

use precise::capture::CaptureFile as _;
use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use precise::model::Capture;
use precise_common::ledger::Counter;
use precise_tests::{
    clock::{self, Clock},
    program,
    run::{EVERYWHERE, FAULTS, Live, command, undisturbed},
    say,
};

/// `BPF_PROG_GET_FD_BY_ID` and `BPF_MAP_GET_FD_BY_ID`, with the name of the id in
/// `/proc/PID/fdinfo`.
const KINDS: [(&str, libc::c_long); 2] = [("prog_id", 13), ("map_id", 14)];

/// Returns the kernel objects that a process has open: the ids of programs and maps, and the number
/// of perf events.
fn held(pid: u32) -> Result<(BTreeMap<&'static str, Vec<u32>>, usize)> {
    let (mut ids, mut events) = (BTreeMap::<_, Vec<u32>>::new(), 0);
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        events += usize::from(target == Path::new("anon_inode:[perf_event]"));
        let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(entry.file_name());
        let info = std::fs::read_to_string(info).unwrap_or_default();
        for (kind, _) in KINDS {
            let id =
                info.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(':')?.trim().parse().ok());
            if let Some(id) = id {
                ids.entry(kind).or_default().push(id);
            }
        }
    }
    Ok((ids, events))
}

/// Returns whether the kernel still has the program or map with this id.
fn exists(command: libc::c_long, id: u32) -> Result<bool> {
    let attr = [id, 0, 0, 0];
    // SAFETY: an initialised attribute of the size that is passed.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), size_of_val(&attr)) };
    if fd >= 0 {
        // SAFETY: a descriptor that was just opened.
        unsafe { libc::close(fd as i32) };
        return Ok(true);
    }
    let error = std::io::Error::last_os_error();
    ensure!(error.raw_os_error() == Some(libc::ENOENT), "bpf({command}) of {id}: {error}");
    Ok(false)
}

#[test]
fn what_is_killed_leaves_nothing_behind() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // With a command that outlives it: its events are inherited by a process that is still alive.
    let begun = folder.path().join("begun");
    let script = format!("sleep 30 & echo $! >{}; wait", begun.display());
    for target in [vec!["-a", "--duration", "300s"], vec!["--", "sh", "-c", &script]] {
        let options: Vec<&str> = target.iter().take_while(|word| **word != "--").copied().collect();
        let command: Vec<&str> = target.iter().skip_while(|word| **word != "--").copied().collect();
        let live = Live::start_command(folder.path(), &[FAULTS, &options].concat(), &command)?;
        let (ids, events) = held(live.pid())?;
        say(&format!("held: {ids:?}, {events} perf events"));
        ensure!(events > 0 && KINDS.iter().all(|(kind, _)| ids.contains_key(kind)), "{ids:?} {events}");
        for (kind, command) in KINDS {
            for id in &ids[kind] {
                ensure!(exists(command, *id)?, "{kind} {id} is not there while the run goes on");
            }
        }
        live.kill()?;
        let dead = Clock::start();
        let mut left = ids.clone();
        // The kernel frees them after a grace period.
        while dead.elapsed() < Duration::from_secs(10) && left.values().any(|ids| !ids.is_empty()) {
            for (kind, command) in KINDS {
                let ids = left.remove(kind).unwrap_or_default();
                let mut there = Vec::new();
                for id in ids {
                    if exists(command, id)? {
                        there.push(id);
                    }
                }
                left.insert(kind, there);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        ensure!(left.values().all(Vec::is_empty), "{left:?} after {:?}", dead.elapsed());
        say(&format!("nothing of it is left {:?} after SIGKILL", dead.elapsed()));
        let files: Vec<_> =
            std::fs::read_dir(folder.path())?.flatten().map(|file| file.file_name()).collect();
        ensure!(files.iter().all(|name| !name.to_string_lossy().contains("precise-")), "{files:?}");
        if let Ok(pid) = std::fs::read_to_string(&begun) {
            let pid: i32 = pid.trim().parse().context("the id of `sleep`")?;
            // SAFETY: a process of this test, which is still asleep.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
    Ok(())
}

/// Samples of a stopped run are counted but not kept; when the run continues, so does the sampling.
#[test]
fn who_is_stopped_stops_paying() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let workload = program::faults(folder.path(), "faults")?;
        let faults = |pages: &str| -> Result<()> {
            let status = std::process::Command::new(&workload).arg(pages).status()?;
            ensure!(status.success(), "{status}");
            Ok(())
        };
        // The deadline is the end of the epoch plus one second.
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "100ms"]].concat())?;
        faults("1000")?;
        live.signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(1500));
        faults("700")?;
        live.signal(libc::SIGCONT);
        // A run that continues renews the deadline at the end of the epoch that is over.
        clock::sleep(Duration::from_millis(700));
        faults("300")?;
        let recorded = live.interrupt()?;
        let ledger = recorded.ledger();
        let (late, kept) = (ledger.counter(Counter::Late), recorded.rows().of(program::FUNCTION).count());
        ensure!((late, kept) == (700, 1300), "{late} late, {kept} kept: {ledger:?}");
        ensure!(ledger.unaccounted() == 0, "{ledger:?}");
        ensure!(
            recorded.ended.stdout.contains("came after the deadline of the run"),
            "{}",
            recorded.ended.stdout
        );
        Ok(())
    })
}

/// Waits for a process, and kills it if it has not ended `limit` after `begin`.
fn within(child: &mut Child, begin: Instant, limit: Duration) -> Result<ExitStatus> {
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    bail!("it had not ended after {limit:?}");
}

/// `--duration` ends the run even if the command and its child ignore SIGTERM.
#[test]
fn a_command_that_ignores_sigterm_is_killed() -> Result<()> {
    /// The duration of one second, the grace period, and the time for symbolization on a busy
    /// machine.
    const LIMIT: Duration = Duration::from_secs(60);
    const KILLED: &str = "after SIGTERM, and was killed (SIGKILL)";
    let folder = tempfile::tempdir()?;
    let path = |name: String| folder.path().join(name);
    let workload = program::faults(folder.path(), "faults")?;
    let capture = path("capture.parquet".to_owned());
    let capture = capture.to_str().context("a path")?;
    let kinds: [(&str, &[&str]); 3] =
        [("record", &["-o", capture]), ("script", &[]), ("serve", &["--listen", "127.0.0.1:0"])];
    // All at once, because each waits for its own command.
    let begin = Instant::now();
    let mut runs = Vec::new();
    for (kind, arguments) in kinds {
        let pid = path(format!("{kind}.pid"));
        let script = format!(
            "trap '' TERM; sleep 1000 & echo $$ $! >{}; {} 1000; wait",
            pid.display(),
            workload.display()
        );
        let child = command([kind, "-e", "page-faults", "-c", "1", "--duration", "1s"])?
            .args(arguments)
            .args(["--", "sh", "-c", &script])
            // No pipes, because a process that is left behind would keep them open.
            .stdout(File::create(path(format!("{kind}.out")))?)
            .stderr(File::create(path(format!("{kind}.err")))?)
            .spawn()?;
        runs.push((kind, child, pid));
    }
    let ended: Vec<_> = runs.iter_mut().map(|(_, child, _)| within(child, begin, LIMIT)).collect();
    for ((kind, _, pid), ended) in runs.iter().zip(ended) {
        let mut there = false;
        for pid in std::fs::read_to_string(pid)?.split_whitespace() {
            // A process that has ended may wait for init to collect it.
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if !stat.is_empty() && !stat.contains(") Z ") {
                there = true;
                // SAFETY: the id of the command or of its child. No other process got it within
                // this minute, because ids are assigned in turn.
                unsafe { libc::kill(pid.parse()?, libc::SIGKILL) };
            }
        }
        let status = ended.with_context(|| format!("precise {kind}"))?;
        let said = [path(format!("{kind}.out")), path(format!("{kind}.err"))].map(std::fs::read_to_string);
        let [printed, said] = said;
        let (printed, said) = (printed?, said?);
        ensure!(status.code() == Some(0), "{kind}: {status}: {said}");
        ensure!(!there, "the command of precise {kind}, or its child, is still there");
        let where_it_tells = if *kind == "record" { &printed } else { &said };
        let text = where_it_tells.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(text.contains(KILLED), "precise {kind} does not say it: {printed}\n{said}");
    }
    // The samples up to then are kept, with the reason for the end.
    let kept = Capture::read(Path::new(capture))?;
    let samples: u64 = kept.rows.iter().map(|row| row.measures.count).sum();
    ensure!(samples >= 1000, "{samples} samples in the capture");
    ensure!(kept.meta.notes.iter().any(|note| note.contains(KILLED)), "{:?}", kept.meta.notes);
    Ok(())
}
