//! The end of a run, whatever is going on: signals and the kill switch while the naming thread is
//! stuck, a second signal, and SIGKILL in the middle of a long run.

use std::{
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::{Capture, Name, Reason};
use precise_common::ledger::Counter;
use precise_tests::{
    clock::{self, Clock},
    kill_on_drop::KillOnDrop,
    program,
    run::{EVERYWHERE, FAULTS, Live, command, precise},
    say,
};

/// A run must end within 5 s. The rest is for the test itself.
const LIMIT: Duration = Duration::from_secs(8);
/// The pages that a command touches before its run is stuck, and after that.
const PAGES: u64 = 1000;

fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !holds()? {
        ensure!(begin.elapsed() < limit, "{what}: not after {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Stops one thread of a process while it waits for another thread, until the process ends.
fn freeze(pid: u32, name: &str) -> Result<()> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let tid = tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name))
        .find_map(|task| task.file_name().to_str()?.parse::<i32>().ok())
        .with_context(|| format!("process {pid} has no thread {name}"))?;
    let waits = format!("{} ", libc::SYS_futex);
    let is_waiting = move || {
        fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))
            .is_ok_and(|call| call.starts_with(&waits))
    };
    let (tell, told) = std::sync::mpsc::channel();
    // The thread that traces must be the one that waits for the traced thread's end.
    std::thread::spawn(move || {
        let (no_address, mut status) = (std::ptr::null_mut::<libc::c_void>(), 0);
        // SAFETY: requests without memory of this process (ptrace(2)).
        let ask = |what| unsafe { libc::ptrace(what, tid, no_address, no_address) == 0 };
        let mut stopped = ask(libc::PTRACE_SEIZE);
        while stopped {
            // SAFETY: a live status (wait(2)).
            stopped = ask(libc::PTRACE_INTERRUPT)
                && unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) } == tid;
            // A thread that is stopped anywhere else may hold a lock of the allocator, which no
            // file that it reads can make it do.
            if stopped && is_waiting() {
                break;
            }
            stopped = stopped && ask(libc::PTRACE_CONT);
            std::thread::sleep(Duration::from_millis(3));
        }
        let _gone = tell.send(stopped);
        // SAFETY: as above.
        while unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) } == tid && libc::WIFSTOPPED(status)
        {
        }
    });
    ensure!(told.recv()?, "thread {tid} cannot be stopped");
    Ok(())
}

/// A run whose naming thread is stuck after the first [`PAGES`] samples, and has more to name.
struct Stuck {
    kind: &'static str,
    child: KillOnDrop,
    folder: PathBuf,
}

impl Stuck {
    fn start(folder: &Path, workload: &Path, kind: &'static str, arguments: &[&str]) -> Result<Self> {
        fs::create_dir(folder)?;
        let path = |name: &str| folder.join(name);
        let script = format!(
            "{w} {PAGES}; echo >{}; while [ ! -e {} ]; do sleep 0.05; done; {w} {PAGES}; echo >{}; exec sleep 30",
            path("begun").display(),
            path("go").display(),
            path("done").display(),
            w = workload.display(),
        );
        // The kill switch and a second signal leave the command running.
        let arguments = arguments.iter().map(|word| word.replace('@', &folder.display().to_string()));
        let child = command(arguments)?
            .args(["--", "sh", "-c", &script])
            // No pipes, because a process that is left behind would keep them open.
            .stdout(File::create(path("out"))?)
            .stderr(File::create(path("err"))?)
            .spawn()?;
        Ok(Self { kind, child: child.into(), folder: folder.to_owned() })
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child that has not been waited for, so the id still belongs to it.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// Waits for the end, which was asked for when the clock was started.
    fn ends(&mut self, since: Clock) -> Result<ExitStatus> {
        while since.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait()? {
                say(&format!("{}: {status} after {:?}", self.kind, since.elapsed()));
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.kill()?;
        self.child.wait()?;
        anyhow::bail!("{} had not ended after {LIMIT:?}: {}", self.kind, self.read("err"))
    }
}

/// Checks that a capture has every sample of the run, and the later ones without names.
fn check_capture(capture: &Capture) -> Result<()> {
    let count = |late: bool| -> u64 {
        let is_late = |row: &&precise::model::Row| {
            let code = row.code.and_then(|id| capture.code.get(id as usize));
            code.is_some_and(|code| code.function == Name::Unknown(Reason::NotInTime)) == late
        };
        capture.rows.iter().filter(is_late).map(|row| row.measures.count).sum()
    };
    let (named, late) = (count(false), count(true));
    let ledger = &capture.meta.events[0].ledger;
    ensure!(named >= PAGES && late >= PAGES, "{named} named, {late} not: {:?}", capture.meta.notes);
    ensure!(named + late == ledger.counter(Counter::Aggregated), "{named} + {late}: {ledger:?}");
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    let said = capture.meta.notes.iter().any(|note| note.contains("samples not named in time"));
    ensure!(said, "{:?}", capture.meta.notes);
    Ok(())
}

/// Each kind of run, with another reason for its end.
#[test]
fn a_run_ends_although_naming_is_stuck() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let workload = program::faults(folder.path(), "faults")?;
    let fast = ["--epoch", "100ms"];
    let streaming = ["script", "-e", "page-faults", "-c", "1", "--account", "@/account"];
    let serving = ["serve", "-e", "page-faults", "-c", "1", "--listen", "127.0.0.1:0"];
    let mut hangup =
        Stuck::start(&path("1"), &workload, "record", &[FAULTS, &fast, &["-o", "@/capture"]].concat())?;
    let mut killed = Stuck::start(
        &path("2"),
        &workload,
        "record to a pipe",
        &[FAULTS, &fast, &["-o", "-", "--stop-file", "@/stop"]].concat(),
    )?;
    let mut script = Stuck::start(&path("3"), &workload, "script", &streaming)?;
    let mut serve = Stuck::start(&path("4"), &workload, "serve", &[&serving[..], &fast].concat())?;
    let mut twice = Stuck::start(
        &path("5"),
        &workload,
        "record, two signals",
        &[FAULTS, &fast, &["-o", "@/capture"]].concat(),
    )?;
    let runs = [&hangup, &killed, &script, &serve, &twice];
    let all_have = |file: &str| {
        wait_until(file, Duration::from_secs(60), || {
            Ok(runs.iter().all(|run| run.folder.join(file).exists()))
        })
    };
    all_have("begun")?;
    // Long enough to name what there is.
    clock::sleep(Duration::from_secs(2));
    for run in runs {
        freeze(run.child.id(), "naming").with_context(|| run.read("err"))?;
        fs::write(run.folder.join("go"), "")?;
    }
    all_have("done")?;
    clock::sleep(Duration::from_millis(300));

    let since = Clock::start();
    hangup.signal(libc::SIGHUP);
    fs::write(killed.folder.join("stop"), "")?;
    script.signal(libc::SIGTERM);
    serve.signal(libc::SIGINT);
    twice.signal(libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(500));
    let second = Clock::start();
    twice.signal(libc::SIGINT);
    let status = twice.ends(second)?;
    ensure!(status.code() == Some(128 + libc::SIGINT), "{status}: {}", twice.read("err"));
    ensure!(second.elapsed() < Duration::from_secs(1), "{:?}", second.elapsed());
    let names: Vec<_> = fs::read_dir(&twice.folder)?.flatten().map(|entry| entry.file_name()).collect();
    // A run of more than 15 s has a partial capture, which stays.
    let left =
        |name: &&std::ffi::OsString| name.to_string_lossy().contains("capture") && *name != "capture.partial";
    ensure!(!names.iter().any(|name| left(&name)), "{names:?}");

    for (run, code) in [(&mut hangup, 0), (&mut killed, 70), (&mut script, 0), (&mut serve, 0)] {
        let status = run.ends(since)?;
        ensure!(status.code() == Some(code), "{}: {status}: {}", run.kind, run.read("err"));
    }
    check_capture(&Capture::read(&hangup.folder.join("capture"))?)?;
    check_capture(&Capture::read(&killed.folder.join("out"))?)?;
    ensure!(serve.read("err").contains("samples not named in time"), "{}", serve.read("err"));
    let account = script.read("account");
    let account: serde_json::Value = serde_json::from_str(&account).context(account)?;
    let rows = account["events"][0]["rows"].as_array().context("rows")?;
    let of = |what: &str| {
        let row = rows.iter().find(|row| row["what"] == what);
        row.and_then(|row| row["samples"].as_u64()).with_context(|| format!("{what}: {account}"))
    };
    ensure!(account["events"][0]["closes"] == true, "{account}");
    ensure!(of("cut off")? >= PAGES && of("written")? >= PAGES, "{account}");
    Ok(())
}

/// An import ends at once, and leaves nothing behind.
#[test]
fn an_import_ends_at_a_signal() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut child = command(["import", "-", "-o"])?
        .arg(folder.path().join("capture"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    clock::sleep(Duration::from_millis(500));
    ensure!(child.try_wait()?.is_none(), "it does not wait for its input");
    let since = Clock::start();
    // SAFETY: a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGHUP) };
    let status = child.wait()?;
    ensure!(status.signal() == Some(libc::SIGHUP) && since.elapsed() < Duration::from_secs(1), "{status}");
    ensure!(fs::read_dir(folder.path())?.next().is_none(), "a file is left");
    Ok(())
}

/// What a run of more than 15 s has written can be read after SIGKILL, with every view.
#[test]
fn a_capture_survives_the_end_of_its_run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workload = program::faults(folder.path(), "faults")?;
    let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "250ms"]].concat())?;
    let partial = folder.path().join("live.parquet.partial");
    let begin = Instant::now();
    wait_until("partial file", Duration::from_secs(40), || {
        let status = std::process::Command::new(&workload).arg("100").status()?;
        ensure!(status.success(), "{status}");
        std::thread::sleep(Duration::from_millis(200));
        Ok(partial.exists())
    })?;
    say(&format!("{} after {:?}", partial.display(), begin.elapsed()));
    live.kill()?;
    ensure!(!folder.path().join("live.parquet").exists());

    let capture = Capture::read(&partial)?;
    let last = capture.meta.epochs.last().context("no epochs")?;
    let kept: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    ensure!(kept >= 1000 && last.end_ns > 10_000_000_000, "{kept} samples, {last:?}");
    ensure!(capture.rows.iter().any(|row| row.epoch as usize + 8 > capture.meta.epochs.len()));
    let file = partial.to_str().context("a path")?;
    let report = precise(["report", "-i", file])?.expect(0)?;
    let text = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(text.contains("this recording was cut off") && text.contains(program::FUNCTION), "{text}");
    for view in ["explain", "heatmap", "flamegraph", "threads", "numa", "tlb", "latency", "mem", "annotate"] {
        let ended = precise([view, "-i", file])?;
        // A view may need what this run did not record (2, 69), but the file is not bad (67).
        ensure!([0, 2, 69].map(Some).contains(&ended.code), "{view}: {ended:#?}");
        ensure!(!ended.stderr.contains("panicked"), "{view}: {ended:#?}");
    }
    Ok(())
}
