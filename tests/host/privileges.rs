//! An ordinary user with a binary that has capabilities of its own, as docs/privileges.md says: what works, what is missing
//! by name, and what a run gives up.

use precise::capture::CaptureFile as _;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise::error::Class;
use precise::model::Capture;
use precise_tests::{
    program::{FUNCTION, faults},
    rows::rows,
    run::{Ended, FAULTS, Recorded, binary, command, undisturbed},
    skip,
};
use tempfile::TempDir;

/// Nobody.
const USER: u32 = 65534;
const PAGES: u64 = 1009;
/// `CAP_PERFMON`, `CAP_BPF` and `CAP_SYS_ADMIN` (include/uapi/linux/capability.h).
const GIVEN_UP: u64 = 1 << 38 | 1 << 39 | 1 << 21;

/// A folder of the user's with a copy of the binary.
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

    /// The recipe. `None` where this machine has no setcap, or does not keep what it sets.
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

/// Whether the kernel refuses users what this test says that it refuses.
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

        // A command of its own: counted, named, kept for its owner only.
        let file = user.folder.path().join("own.parquet");
        let own = [FAULTS, &["-o", "own.parquet", "--", program, &pages]].concat();
        let recorded = Recorded::of(user.precise(&own)?.expect(0)?, &file)?;
        ensure!(recorded.rows().of(FUNCTION).count() == PAGES, "{recorded:#?}");
        let mode = fs::metadata(&file)?.permissions().mode();
        ensure!(mode & 0o777 == 0o600, "{mode:o}");

        // Everything, also what root does.
        let filter = "addr in 0x500000000000..0x500100000000";
        let all = ["-a", "--duration", "4s", "--filter", filter, "-o", "all.parquet"];
        let live = user
            .command(&user.binary, &[FAULTS, &all].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        std::thread::sleep(Duration::from_secs(2));
        ensure!(Command::new(program).arg(&pages).status()?.success(), "the workload failed");
        let ended: Ended = live.wait_with_output()?.into();
        let file = user.folder.path().join("all.parquet");
        let recorded = Recorded::of(ended.expect(0)?, &file)?;
        let counted: u64 = recorded.rows().only(|row| row.process == "faulting").count();
        ensure!(counted == PAGES, "{counted} of {PAGES}: {recorded:#?}");
        // Whose names are missing, and why.
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

/// Threads of a process that has begun to name what it sees: capabilities and `no_new_privs` of each.
fn threads(pid: u32) -> Result<Vec<(String, u64, String)>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut found = Vec::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let field = |name: &str| {
                status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0").trim().to_owned()
            };
            found.push((field("Name:"), u64::from_str_radix(&field("CapPrm:"), 16)?, field("NoNewPrivs:")));
        }
        if found.iter().any(|(name, ..)| name == "naming") {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "it does not begin: {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_gives_up_what_it_needs_no_more() -> Result<()> {
    let arguments = ["record", "-a", "-e", "page-faults", "--duration", "60s", "-o", "/dev/null"];
    let mut live = command(arguments)?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let found = threads(live.id());
    // SAFETY: a child that was not waited for yet, so the id is its own.
    unsafe { libc::kill(live.id() as i32, libc::SIGINT) };
    let ended = live.wait()?;
    let found = found?;
    // A quiet machine may fault no page in that moment: 69 then says so.
    ensure!(matches!(ended.code(), Some(0 | 69)), "{ended}");
    for (name, permitted, no_new_privs) in &found {
        ensure!(permitted & GIVEN_UP == 0, "{name} still has {permitted:#x}");
        ensure!(no_new_privs == "1", "{name} could gain rights");
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
    // And it was sampled.
    ensure!(!rows(&Capture::read(&file)?).0.is_empty());
    Ok(())
}
