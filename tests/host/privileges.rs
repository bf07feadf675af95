//! An ordinary user with a binary that has capabilities, as in docs/privileges.md: what works,
//! which missing capability is named, what a run drops, and what the user cannot reach through the
//! binary.

use precise::capture::CaptureFile as _;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::error::Class;
use precise::model::{Capture, CodeLocation, Name, Reason};
use precise_tests::{
    program::{self, FUNCTION, LINE, faults},
    resident,
    rows::rows,
    run::{Ended, FAULTS, Live, Recorded, binary, command, precise, record_faults, subcommands, undisturbed},
    skip,
};
use tempfile::TempDir;

/// The user id of nobody.
const USER: u32 = 65534;
const PAGES: u64 = 1009;
/// The thread that opens events on CPUs that come online.
const OPENER: &str = "opener";
/// What it keeps: `CAP_PERFMON` and `CAP_IPC_LOCK`.
const OPENING: u64 = 1 << 38 | 1 << 14;
/// `CAP_PERFMON`, `CAP_BPF` and `CAP_SYS_ADMIN` (include/uapi/linux/capability.h).
const GIVEN_UP: u64 = 1 << 38 | 1 << 39 | 1 << 21;
/// `CAP_DAC_READ_SEARCH`: reads every file.
const READS_ALL: u64 = 1 << 2;
/// The recipe of docs/privileges.md for the names of all processes.
const ALL_NAMES: &str =
    "cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog,cap_dac_read_search,cap_checkpoint_restore";

/// A folder that belongs to the user, with a copy of the binary.
struct User {
    folder: TempDir,
    binary: PathBuf,
}

impl User {
    fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir()?;
        chown(folder.path(), Some(USER), Some(USER))?;
        let copy = folder.path().join("precise");
        fs::copy(binary()?, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder, binary: copy })
    }

    /// Applies the recipe. `None` if this machine has no setcap, or does not keep the capabilities.
    fn setcap(&self, capabilities: &str) -> Result<Option<()>> {
        let what = if capabilities.is_empty() { "=".to_owned() } else { format!("{capabilities}=ep") };
        match Command::new("setcap").arg(what).arg(&self.binary).status() {
            Ok(status) if status.success() => Ok(Some(())),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"])
            .arg(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn precise(&self, arguments: &[&str]) -> Result<Ended> {
        Ok(self.command(&self.binary, arguments).output()?.into())
    }
}

/// Returns whether the kernel refuses to users what this test expects.
fn usual() -> Result<bool> {
    let paranoid: i64 = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")?.trim().parse()?;
    if paranoid < 2 {
        skip("kernel.perf_event_paranoid is below 2 here: users may sample without capabilities");
    }
    Ok(paranoid >= 2)
}

#[test]
fn two_capabilities_are_enough() -> Result<()> {
    undisturbed(|| {
        let user = User::new()?;
        let Some(()) = user.setcap("cap_perfmon,cap_bpf")? else {
            skip("setcap does not work here");
            return Ok(());
        };
        let program = faults(user.folder.path(), "faulting")?;
        let pages = PAGES.to_string();
        let program = program.to_str().context("a path")?;

        // The user's own command: counted, named, readable by its owner only.
        let file = user.folder.path().join("own.parquet");
        let own = [FAULTS, &["-o", "own.parquet", "--", program, &pages]].concat();
        let recorded = Recorded::of(user.precise(&own)?.expect(0)?, &file)?;
        ensure!(recorded.rows().of(FUNCTION).count() == PAGES, "{recorded:#?}");
        let mode = fs::metadata(&file)?.permissions().mode();
        ensure!(mode & 0o777 == 0o600, "{mode:o}");

        // The whole machine, including the programs of root.
        let filter = "addr in 0x500000000000..0x500100000000";
        let all = ["-a", "--duration", "300s", "--filter", filter, "-o", "all.parquet"];
        let file = user.folder.path().join("all.parquet");
        let live = Live::spawn(user.command(&user.binary, &[FAULTS, &all].concat()), file)?;
        ensure!(Command::new(program).arg(&pages).status()?.success(), "the workload failed");
        let recorded = live.interrupt()?;
        let counted: u64 = recorded.rows().only(|row| row.process == "faulting").count();
        ensure!(counted == PAGES, "{counted} of {PAGES}: {recorded:#?}");
        // What a program of root had mapped before the run says why it has no names.
        let mut before = Command::new("sh").args(["-c", "while :; do (:); sleep 0.01; done"]).spawn()?;
        let file = user.folder.path().join("before.parquet");
        let older = ["-a", "--comm", "sh", "--duration", "500ms", "-o", "before.parquet"];
        let older = user.precise(&[FAULTS, &older].concat());
        before.kill()?;
        before.wait()?;
        let older = Recorded::of(older?.expect(0)?, &file)?;
        let hidden = |code: &CodeLocation| code.module == Name::Unknown(Reason::MapsHidden);
        ensure!(older.capture.code.iter().any(hidden), "{older:#?}");
        // The note states whose names are missing, and why.
        ensure!(
            recorded.capture.meta.notes.iter().any(|note| note.starts_with("CAP_SYS_PTRACE is missing")),
            "{:?}",
            recorded.capture.meta.notes
        );
        Ok(())
    })
}

#[test]
fn what_is_missing_is_named() -> Result<()> {
    if !usual()? {
        return Ok(());
    }
    let user = User::new()?;
    for (has, missing) in [
        ("", "CAP_PERFMON and CAP_BPF are missing"),
        ("cap_perfmon", "CAP_BPF is missing"),
        ("cap_bpf", "CAP_PERFMON is missing"),
    ] {
        let Some(()) = user.setcap(has)? else {
            skip("setcap does not work here");
            return Ok(());
        };
        for whom in [&["-a", "--duration", "1s"][..], &["--", "true"]] {
            let arguments = [&["record", "-e", "page-faults", "-o", "/dev/null"], whom].concat();
            let said = user.precise(&arguments)?.expect(Class::Permission.code().into())?.stderr;
            ensure!(said.contains(missing), "with '{has}': {said}");
            ensure!(said.contains("setcap cap_perfmon,cap_bpf=ep"), "no way out: {said}");
        }
        let doctor = user.precise(&["doctor"])?;
        ensure!(
            doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(missing),
            "{doctor:?}"
        );
    }
    Ok(())
}

/// The capabilities of a thread, from its /proc/PID/task/TID/status.
#[derive(Debug)]
struct Thread {
    name: String,
    permitted: u64,
    effective: u64,
    inheritable: u64,
    no_new_privs: bool,
}

fn threads(pid: u32) -> Result<Vec<Thread>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // A thread that has just ended has no status.
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let field = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name));
            found.map(str::trim).with_context(|| format!("{name} is missing in {status}"))
        };
        let set = |name: &str| anyhow::Ok(u64::from_str_radix(field(name)?, 16)?);
        found.push(Thread {
            name: field("Name:")?.to_owned(),
            permitted: set("CapPrm:")?,
            effective: set("CapEff:")?,
            inheritable: set("CapInh:")?,
            no_new_privs: field("NoNewPrivs:")? == "1",
        });
    }
    Ok(found)
}

/// Returns the threads of a process, once they are as `expected`.
fn wait_for(child: &Child, expected: impl Fn(&[Thread]) -> bool) -> Result<Vec<Thread>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = threads(child.id())?;
        if expected(&found) {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "it stays like this: {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the threads of a run, once they are as `expected`, and ends the run.
fn of_a_run(mut live: Command, expected: impl Fn(&[Thread]) -> bool) -> Result<Vec<Thread>> {
    let mut live = live.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let found = wait_for(&live, expected);
    // SAFETY: a child that has not been waited for, so the id still belongs to it.
    unsafe { libc::kill(live.id() as i32, libc::SIGINT) };
    let ended = live.wait()?;
    let found = found?;
    // A quiet machine may have no page fault in that moment: then the exit code is 69.
    ensure!(matches!(ended.code(), Some(0 | 69)), "{ended}");
    Ok(found)
}

/// A run that is long enough to inspect.
const LONG: [&str; 8] = ["record", "-a", "-e", "page-faults", "--duration", "60s", "-o", "/dev/null"];

#[test]
fn a_run_gives_up_what_it_needs_no_more() -> Result<()> {
    let named = |found: &[Thread]| found.iter().any(|thread| thread.name == "naming");
    let found = of_a_run(command(LONG)?, named)?;
    ensure!(found.iter().filter(|thread| thread.name == OPENER).count() == 1, "{found:?}");
    for thread in found {
        if thread.name == OPENER {
            ensure!(thread.permitted & !OPENING == 0, "{thread:?} could do more than open events");
        } else {
            ensure!(thread.permitted & GIVEN_UP == 0, "{thread:?} could still sample");
        }
        ensure!(thread.no_new_privs, "{thread:?} could gain rights");
    }
    Ok(())
}

/// The processes that read the files of others: the one that starts them, and the one that reads.
#[test]
fn readers_have_no_rights_at_all() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let live = Live::start(folder.path(), &LONG[..LONG.len() - 2])?;
    let nurseries = resident::children(live.pid());
    let workers: Vec<u32> = nurseries.iter().flat_map(|pid| resident::children(*pid)).collect();
    ensure!(!nurseries.is_empty() && !workers.is_empty(), "no reader: {nurseries:?} {workers:?}");
    for (pid, filtered) in
        nurseries.iter().map(|pid| (pid, false)).chain(workers.iter().map(|pid| (pid, true)))
    {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).with_context(|| format!("{name} is missing in {status}"))
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            ensure!(u64::from_str_radix(field(set)?, 16)? == 0, "{set} {status}");
        }
        ensure!(field("NoNewPrivs:")? == "1" && !field("Uid:")?.starts_with("0\t"), "{status}");
        // SECCOMP_MODE_FILTER.
        ensure!(!filtered || field("Seccomp:")? == "2", "{status}");
    }
    live.kill()
}

/// The run loop opens the files that the user names; the other two threads open files that
/// processes have mapped.
#[test]
fn only_threads_that_look_names_up_read_files_of_others() -> Result<()> {
    let user = User::new()?;
    let Some(()) = user.setcap(ALL_NAMES)? else {
        skip("setcap does not work here");
        return Ok(());
    };
    let is_naming = |thread: &Thread| ["naming", "symbols"].contains(&thread.name.as_str());
    let reads_all = |thread: &Thread| thread.effective & READS_ALL != 0;
    let found = of_a_run(user.command(&user.binary, &LONG), |found| {
        found.iter().filter(|thread| is_naming(thread) && reads_all(thread)).count() == 2
    })?;
    for thread in &found {
        ensure!(reads_all(thread) == is_naming(thread), "{thread:?} of {found:?}");
        let needless = if thread.name == OPENER { !OPENING } else { GIVEN_UP };
        ensure!(thread.permitted & needless == 0, "{thread:?} could still sample");
    }
    Ok(())
}

/// The recipe gives names in programs of other users, even if only they may read the files.
#[test]
fn programs_of_root_have_names() -> Result<()> {
    let user = User::new()?;
    let Some(()) = user.setcap(ALL_NAMES)? else {
        skip("setcap does not work here");
        return Ok(());
    };
    let (folder, _) = secret()?;
    let program = faults(folder.path(), "faulting")?;
    let filter = "addr in 0x500000000000..0x500100000000";
    let all = ["-a", "--duration", "300s", "--filter", filter, "-o", "all.parquet"];
    let file = user.folder.path().join("all.parquet");
    let live = Live::spawn(user.command(&user.binary, &[FAULTS, &all].concat()), file)?;
    ensure!(Command::new(&program).arg(PAGES.to_string()).status()?.success(), "the workload failed");
    let rows = live.interrupt()?.rows();
    let named = rows.of(FUNCTION).count();
    ensure!(named > 0, "{FUNCTION} has no name in {rows:?}");
    Ok(())
}

/// Creates a folder of root that nobody else may read, with a file whose lines tell where they come
/// from.
fn secret() -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
    let file = folder.path().join("secret");
    let lines: Vec<String> = (1..=50).map(|line| format!("secret line {line}")).collect();
    fs::write(&file, lines.join("\n"))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    Ok((folder, file))
}

#[test]
fn a_user_reads_no_file_of_roots() -> Result<()> {
    let user = User::new()?;
    let Some(()) = user.setcap(ALL_NAMES)? else {
        skip("setcap does not work here");
        return Ok(());
    };
    // A program whose line table names a file of root as its source.
    let (folder, secret) = secret()?;
    let source = format!("#line 1 \"{}\"\n{}", secret.display(), program::FAULTS);
    let program = program::c(user.folder.path(), "faulting", &source)?;
    let program = program.to_str().context("a path")?;
    record_faults(user.folder.path(), &[], &[program, &PAGES.to_string()])?;
    let capture = user.folder.path().join("faults.parquet");
    chown(&capture, Some(USER), Some(USER))?;
    let capture = capture.to_str().context("a path")?;

    // The user asks for the folder, so that only the permissions of the file protect it.
    let sources = folder.path().to_str().context("a path")?;
    let annotate = ["annotate", "-i", capture, "--source", sources, FUNCTION];
    let line = format!("secret line {LINE}");
    // Root has its own rights, whatever capabilities the file has: it reads this user's capture,
    // and its own file.
    let output = Command::new(&user.binary).args(annotate).output()?;
    let ended = Ended::from(output).expect(0)?;
    ensure!(ended.stdout.contains(&line), "the capture does not name the file: {ended:#?}");

    let ended = user.precise(&annotate)?.expect(0)?;
    ensure!(ended.stdout.contains(FUNCTION) && !ended.stdout.contains("secret line"), "{ended:#?}");
    user.precise(&["report", "-i", capture, "--source", sources, "--html", "page.html"])?.expect(0)?;
    let page = fs::read_to_string(user.folder.path().join("page.html"))?;
    ensure!(page.contains(FUNCTION) && !page.contains("secret line"), "the page has the file's lines");

    // A run does not reveal either whether such a file exists.
    let stop = ["record", "--stop-file", secret.to_str().context("a path")?];
    let ended = user.precise(&stop)?.expect(Class::Stopped.code().into())?;
    ensure!(ended.stderr.contains("cannot be checked"), "{ended:#?}");
    // It does not execute a file that the user cannot find either.
    let hidden = secret.with_file_name("hidden");
    fs::copy("/bin/true", &hidden)?;
    let command =
        ["record", "-e", "page-faults", "-o", "/dev/null", "--", hidden.to_str().context("a path")?];
    let ended = user.precise(&command)?.expect(Class::Failed.code().into())?;
    let why = format!("cannot run {}: Permission denied", hidden.display());
    ensure!(ended.stderr.contains(&why), "{ended:#?}");
    Ok(())
}

/// A command that reads a capture has only the rights of the user before it reads the first byte.
#[test]
fn what_does_not_sample_has_no_capabilities() -> Result<()> {
    let user = User::new()?;
    let Some(()) = user.setcap(ALL_NAMES)? else {
        skip("setcap does not work here");
        return Ok(());
    };
    let mut readers = 0;
    for name in subcommands()? {
        let help = precise([&name, "--help"])?.expect(0)?.stdout;
        let takes_input = help.contains("--input <FILE>") && help.contains("`-` is the standard input");
        if !takes_input {
            continue;
        }
        readers += 1;
        let mut arguments = vec![name.as_str(), "-i", "-"];
        if help.contains("--format <FORMAT>") {
            arguments.extend(["--format", "folded"]);
        }
        // The command waits for its capture.
        let mut reading = user
            .command(&user.binary, &arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let dropped = wait_for(&reading, |found| {
            let none = |thread: &Thread| thread.permitted | thread.effective | thread.inheritable == 0;
            found.iter().all(|thread| thread.name == "precise" && none(thread) && thread.no_new_privs)
        });
        reading.kill()?;
        reading.wait()?;
        dropped.with_context(|| format!("precise {name}"))?;
    }
    ensure!(readers >= 12, "only {readers} commands read a capture");
    Ok(())
}

#[test]
fn the_environment_chooses_no_program() -> Result<()> {
    const OBJECT: (&str, &str) = ("PRECISE_BPF_OBJECT", "/no/such/object");
    let user = User::new()?;
    let Some(()) = user.setcap("cap_perfmon,cap_bpf")? else {
        skip("setcap does not work here");
        return Ok(());
    };
    // The command inherits the environment of the user.
    let script = "echo $PRECISE_BPF_OBJECT >seen";
    let arguments = ["record", "-e", "page-faults", "-c", "1", "-o", "x.parquet", "--", "sh", "-c", script];
    let run = |mut command: Command| -> Result<Ended> {
        Ok(command.env(OBJECT.0, OBJECT.1).current_dir(user.folder.path()).output()?.into())
    };
    run(user.command(&user.binary, &arguments))?.expect(0)?;
    ensure!(fs::read_to_string(user.folder.path().join("seen"))?.trim() == OBJECT.1);
    ensure!(!rows(&Capture::read(&user.folder.path().join("x.parquet"))?).0.is_empty());

    // Root may load any program anyway, so it can test the one that was just built. A release build
    // ignores the variable.
    let ended = run(command(arguments)?)?;
    if cfg!(debug_assertions) {
        let ended = ended.expect(Class::Failed.code().into())?;
        ensure!(ended.stderr.contains("PRECISE_BPF_OBJECT names /no/such/object"), "{ended:#?}");
    } else {
        ended.expect(0)?;
    }
    Ok(())
}

#[test]
fn it_does_not_run_as_somebody_else() -> Result<()> {
    let user = User::new()?;
    let options =
        Command::new("findmnt").args(["-no", "OPTIONS", "--target"]).arg(user.folder.path()).output()?;
    if String::from_utf8_lossy(&options.stdout).contains("nosuid") {
        skip("the folder for temporary files is mounted nosuid");
        return Ok(());
    }
    for (mode, what) in [(0o4755, "set-user-ID"), (0o2755, "set-group-ID")] {
        chown(&user.binary, Some(0), Some(0))?;
        fs::set_permissions(&user.binary, fs::Permissions::from_mode(mode))?;
        let said = user.precise(&["list"])?.expect(Class::Permission.code().into())?.stderr;
        ensure!(said.contains(what) && said.contains("chmod u-s,g-s"), "{said}");
    }
    Ok(())
}

#[test]
fn the_command_keeps_its_rights() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.parquet");
    let seen = folder.path().join("status");
    let arguments = ["record", "-q", "-e", "page-faults", "-o"].map(str::to_owned).into_iter();
    let copy = ["--", "cp", "/proc/self/status"].map(str::to_owned);
    let arguments =
        arguments.chain([file.display().to_string()]).chain(copy).chain([seen.display().to_string()]);
    Ended::from(command(arguments)?.output()?).expect(0)?;
    let (theirs, ours) = (fs::read_to_string(&seen)?, fs::read_to_string("/proc/self/status")?);
    for field in ["CapEff:", "CapPrm:", "NoNewPrivs:"] {
        let line = |status: &str| status.lines().find(|line| line.starts_with(field)).map(str::to_owned);
        ensure!(line(&theirs) == line(&ours), "{theirs}");
    }
    // The command was sampled.
    ensure!(!rows(&Capture::read(&file)?).0.is_empty());
    Ok(())
}
