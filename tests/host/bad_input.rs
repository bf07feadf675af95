//! Invalid input of every kind must give a sentence, a documented exit code, no partly written
//! file, and no panic.

use precise::capture::CaptureFile as _;
use std::{
    fs,
    io::pipe,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use precise::error::Class;
use precise_tests::{
    program::{FUNCTION, faults},
    run::{EVERYWHERE, Ended, FAULTS, Live, binary, command, precise, record_faults, undisturbed},
    small_disk::SmallDisk,
};

/// Checks the exit class of a failure, and that it is reported in a sentence.
fn refused(ended: Ended, class: Class) -> Result<String> {
    let ended = ended.expect(class.code().into())?;
    ensure!(ended.stderr.starts_with("precise: ") || class == Class::Usage, "no sentence: {ended:?}");
    ensure!(ended.stderr.trim().len() > 20, "too few words: {ended:?}");
    ensure!(ended.stdout.is_empty(), "a result, after all: {ended:?}");
    Ok(ended.stderr)
}

/// Records a small capture of a real run.
fn capture(folder: &Path) -> Result<PathBuf> {
    let program = faults(folder, "faulting")?.display().to_string();
    record_faults(folder, &[], &[&program, "101"])?;
    Ok(folder.join("faults.parquet"))
}

#[test]
fn garbage_in_filters() -> Result<()> {
    let long = "(".repeat(10_000);
    let many: Vec<String> = (1..3_000).map(|n| format!("ip == {}", n * n)).collect();
    let many = many.join(" || ");
    for filter in [
        "",
        " ",
        "latency >",
        "latency > 100",
        "nothing == 1",
        "addr in",
        "addr in 5..1",
        "addr in 0x1000-0x2000",
        "addr == 0xfffffffffffffffff",
        "addr == 99999999999999999999",
        "comm == thisnameistoolongforthekernel",
        "comm < nginx",
        "pid == -1",
        "pid == 4711 &&",
        "(pid == 1",
        "pid == 1)",
        "pid = 1 = 2",
        "user kernel",
        "mem_lvl == l9",
        "mem_lvl == l2",
        "cgroup == /no/such/cgroup",
        "cgroup == \"unclosed",
        "pid == 1 \u{0} pid == 2",
        "\u{1b}[31mred",
        "größe > 5",
        "🦀",
        "; rm -rf /",
        "' OR 1=1 --",
        &long,
        &many,
    ] {
        let shown: String = filter.chars().take(60).collect();
        let said = precise([
            "record",
            "-e",
            "page-faults",
            "--filter",
            &filter.replace('\0', "\u{1}"),
            "--",
            "true",
        ])?;
        let said = refused(said, Class::Usage).map_err(|error| error.context(shown.clone()))?;
        ensure!(!said.contains('\u{1b}'), "{shown}: control characters come through: {said:?}");
        ensure!(said.len() < 20_000, "{shown}: {} bytes of message", said.len());
    }
    Ok(())
}

#[test]
fn flags_that_make_no_sense() -> Result<()> {
    for arguments in [
        &["record", "-e", "no-such-event"][..],
        &["record", "-e", ""],
        &["record", "-e", "cpu/event=/"],
        &["record", "-e", "no_such_pmu/event=1/"],
        &["record", "-e", "cpu-clock", "-F", "100000000"],
        &["record", "-e", "cpu-clock", "-F", "0"],
        &["record", "-e", "cpu-clock", "-c", "0"],
        &["record", "-e", "cpu-clock", "-c", "many"],
        &["record", "-e", "cpu-clock", "-c", "1", "-F", "1"],
        &["record", "-e", "cpu-clock", "-C", "100000"],
        &["record", "-e", "cpu-clock", "-C", "3-1"],
        &["record", "-e", "cpu-clock", "-C", "x"],
        &["record", "-e", "cpu-clock", "--by", "weather"],
        &["record", "-e", "cpu-clock", "--granule", "3"],
        &["record", "-e", "cpu-clock", "--epoch", "1ms"],
        &["record", "-e", "cpu-clock", "--duration", "soon"],
        &["record", "-e", "cpu-clock", "--table-cells", "100000000000"],
        &["record", "-e", "cpu-clock", "--addr", "0x2000..0x1000"],
        &["record", "-e", "cpu-clock", "--code", "main"],
        &["record", "-e", "cpu-clock", "-G", "/no/such/cgroup"],
        &["record", "-e", "cpu-clock", "--comm", "a name of far too many bytes"],
        &["record", "-e", "cpu-clock", "-p", "1", "-a"],
        &["record", "-e", "cpu-clock", "-s", "taste"],
        &["record", "-e", "cpu-clock", "--plot", "picture.gif"],
        &["record", "-e", "cpu-clock", "-p", "nobody"],
        &["nonsense"],
        &[],
    ] {
        refused(precise(arguments)?, Class::Usage)
            .map_err(|error| error.context(format!("{arguments:?}")))?;
    }
    let said = refused(precise(["record", "-e", "cpu-clock", "-F", "100000000"])?, Class::Usage)?;
    ensure!(said.contains("samples per second exceed the current limit"), "{said}");
    let said = refused(precise(["record", "-e", "page-fautls"])?, Class::Usage)?;
    ensure!(said.contains("page-faults"), "no suggestion: {said}");
    Ok(())
}

#[test]
fn processes_and_commands_that_are_not_there() -> Result<()> {
    // Larger than any id that the kernel assigns (PID_MAX_LIMIT is 4 Mi).
    for target in ["-p", "-t"] {
        let said = refused(precise(["record", "-e", "page-faults", target, "9999999"])?, Class::Failed)?;
        ensure!(said.contains("does not exist") || said.contains("have ended"), "{said}");
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("nothing.parquet");
    let output = file.display().to_string();
    for program in ["/no/such/program", "no-such-program", "/etc/passwd", "/"] {
        let said =
            refused(precise(["record", "-e", "page-faults", "-o", &output, "--", program])?, Class::Failed)?;
        ensure!(said.contains(program) && said.contains("cannot run"), "{said}");
    }
    ensure!(fs::read_dir(folder.path())?.next().is_none(), "something was written");
    Ok(())
}

#[test]
fn files_that_are_no_captures() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let good = fs::read(capture(folder.path())?)?;
    let file = folder.path().join("bad.parquet");
    let name = file.display().to_string();
    let check = |what: &str| -> Result<()> {
        for command in ["report", "heatmap"] {
            let said = refused(precise([command, "-i", &name])?, Class::BadFile)
                .map_err(|error| error.context(format!("{command} {what}")))?;
            ensure!(said.contains("bad.parquet"), "{what}: which file? {said}");
        }
        Ok(())
    };
    check("missing")?;
    fs::create_dir(&file)?;
    check("folder")?;
    fs::remove_dir(&file)?;
    let mut changed = good.clone();
    let middle = changed.len() / 2;
    changed[middle..middle + 64].fill(0xff);
    let cases: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("text", b"this is not a capture\n"),
        ("perf", b"PERFILE2\x68\0\0\0\0\0\0\0"),
        ("magic only", b"PAR1PAR1"),
        ("first half", &good[..good.len() / 2]),
        ("all but the last byte", &good[..good.len() - 1]),
        ("the first byte is missing", &good[1..]),
    ];
    for (what, bytes) in cases {
        fs::write(&file, bytes)?;
        check(what)?;
    }
    fs::copy("/bin/true", &file)?;
    check("a program")?;
    // The format may or may not detect changed bytes in its middle, but they never cause a panic.
    fs::write(&file, &changed)?;
    let ended = precise(["report", "-i", &name])?;
    ensure!(matches!(ended.code, Some(0 | 67)) && !ended.stderr.contains("panicked"), "{ended:?}");
    Ok(())
}

#[test]
fn a_full_disk() -> Result<()> {
    let work = tempfile::tempdir()?;
    let program = faults(work.path(), "faulting")?.display().to_string();
    let disk = SmallDisk::new("256k")?;
    let folder = disk.path();
    let file = folder.join("old.parquet");
    fs::write(&file, b"what was here before")?;
    fs::write(folder.join("filler"), vec![1; 248 * 1024])?;
    let output = file.display().to_string();
    let arguments = [FAULTS, &["-o", &output, "--", &program, "1009"]].concat();
    let said = precise(&arguments)?.expect(Class::Failed.code().into())?.stderr;
    ensure!(said.contains("old.parquet") && said.contains("No space left"), "{said}");
    ensure!(fs::read(&file)? == b"what was here before", "the old file was damaged");
    let mut left: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    ensure!(left == ["filler", "old.parquet"], "something half-written was left: {left:?}");
    // With enough space it replaces the old file.
    fs::remove_file(folder.join("filler"))?;
    precise(&arguments)?.expect(0)?;
    precise::model::Capture::read(&file)?;
    Ok(())
}

#[test]
fn a_folder_that_is_not_there() -> Result<()> {
    let ended = precise(["record", "-e", "page-faults", "-o", "/no/such/folder/x.parquet", "--", "true"])?;
    let said = ended.expect(Class::Failed.code().into())?.stderr;
    ensure!(said.contains("/no/such/folder"), "{said}");
    Ok(())
}

#[test]
fn an_ordinary_user() -> Result<()> {
    // A folder that everybody may read.
    let folder = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir()?;
    let copy = folder.path().join("precise");
    fs::copy(binary()?, &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    for event in ["page-faults", "cpu-clock"] {
        let ended: Ended = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"])
            .arg(&copy)
            .args(["record", "-a", "-e", event, "--duration", "1s", "-o", "/dev/null"])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()?
            .into();
        let said = refused(ended, Class::Permission)?;
        ensure!(said.contains("CAP_PERFMON") || said.contains("root"), "no way out: {said}");
    }
    Ok(())
}

#[test]
fn a_kernel_without_btf() -> Result<()> {
    let ended: Ended = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"", "sh"])
        .arg(binary()?)
        .args(["record", "-e", "page-faults", "-o", "/dev/null", "--", "true"])
        .current_dir("/")
        .output()?
        .into();
    let said = refused(ended, Class::Unsupported)?;
    ensure!(said.contains("BTF") && said.contains("CONFIG_DEBUG_INFO_BTF"), "{said}");
    Ok(())
}

#[test]
fn a_reader_may_have_seen_enough() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path())?.display().to_string();
    for arguments in [
        &["report", "-i", &file][..],
        &["report", "-i", &file, "--json"],
        &["heatmap", "-i", &file],
        &["heatmap", "-i", &file, "--json"],
        &["list"],
        &["list", "--json"],
        &["exit-codes"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
        &["record", "--help"],
    ] {
        let (reader, writer) = pipe()?;
        drop(reader);
        let ended: Ended =
            command(arguments)?.stdout(writer).stderr(Stdio::piped()).spawn()?.wait_with_output()?.into();
        let ended = ended.expect(0).map_err(|error| error.context(format!("{arguments:?}")))?;
        ensure!(ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
    let line = format!("'{}' report -i '{file}' | head -1; exit ${{PIPESTATUS[0]}}", binary()?.display());
    let ended: Ended = Command::new("bash").args(["-c", &line]).output()?.into();
    ensure!(ended.expect(0)?.stdout.starts_with("page-faults"), "{line}");
    Ok(())
}

#[test]
fn ctrl_c_keeps_what_was_seen() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE].concat())?;
        ensure!(Command::new(&program).arg("1009").status()?.success());
        let begin = Instant::now();
        let recorded = live.interrupt()?;
        ensure!(begin.elapsed() < Duration::from_secs(30), "it took {:?} to end", begin.elapsed());
        ensure!(recorded.rows().of(FUNCTION).count() == 1009);
        ensure!(recorded.ended.stdout.contains(FUNCTION), "no report: {:?}", recorded.ended);
        Ok(())
    })
}

#[test]
fn the_commands_own_exit_code() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("c.parquet").display().to_string();
    for (script, code) in
        [("exit 0", 0), ("exit 23", 23), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -SEGV $$", 139)]
    {
        precise(["record", "-e", "page-faults", "-c", "1", "-o", &file, "--", "sh", "-c", script])?
            .expect(code)?;
        precise::model::Capture::read(Path::new(&file))?;
    }
    Ok(())
}

#[test]
fn not_one_sample() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("c.parquet").display().to_string();
    // A period that no program reaches.
    let ended = precise(["record", "-e", "page-faults", "-c", "1000000000000", "-o", &file, "--", "true"])?;
    let said = ended.expect(Class::NoSamples.code().into())?.stderr;
    ensure!(said.contains("no samples arrived"), "{said}");
    precise::model::Capture::read(Path::new(&file))?;
    Ok(())
}
