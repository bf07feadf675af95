//! Process 1 of a lab guest: makes the host's files visible, loads the emulated PMU, runs the
//! tests, powers off.
//!
//! `cargo xtask lab` compiles this file alone with rustc, statically and with nothing but std,
//! because there are no libraries where it starts. Any failure ends it, and with it the guest: the
//! kernel panics when process 1 ends.

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{chroot, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

// SAFETY: functions of the C library, with the types that its manual gives for x86-64.
unsafe extern "C" {
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn reboot(command: c_int) -> c_int;
    fn sync();
    fn syscall(number: c_long, ...) -> c_long;
}

const SYS_FINIT_MODULE: c_long = 313;
const MS_RDONLY: c_ulong = 1;
const MS_MOVE: c_ulong = 8192;
const RB_POWER_OFF: c_int = 0x4321_fedc;

/// The mount point of the tests' root: the host's root with a writable layer over it.
const ROOT: &str = "/new";

fn main() {
    // Output goes to the console that the kernel opened for this process: the serial line.
    if let Err(error) = guest() {
        println!("LAB-INIT failed: {error}");
    }
    println!("LAB-END");
    // SAFETY: neither takes a pointer.
    unsafe {
        sync();
        reboot(RB_POWER_OFF);
    }
}

fn guest() -> io::Result<()> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(at)?;
        mount_at(kind, kind, at, 0, "")?;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("LAB-UP {}", release.trim());
    for line in fs::read_to_string("/modules.list")?.lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        load_module(name, parameters)?;
    }
    enter_host_root()?;

    let mut runner = Command::new("/bin/bash");
    runner.env_clear().env("HOME", "/root").env("LANG", "C.UTF-8").env("TERM", "dumb");
    runner.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let environment = ENVIRONMENT.with(std::cell::RefCell::take);
    let mut script = None;
    for (key, value) in environment.lines().filter_map(|line| line.split_once('=')) {
        runner.env(key, value);
        if key == "LAB_DIR" {
            script = Some(format!("{value}/guest/run.sh"));
        }
    }
    let status = runner.args(script).current_dir("/tmp").stdin(Stdio::null()).status()?;
    println!("LAB-RUNNER {status}");
    Ok(())
}

thread_local! {
    /// Read before the initramfs becomes inaccessible.
    static ENVIRONMENT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

fn enter_host_root() -> io::Result<()> {
    ENVIRONMENT.set(fs::read_to_string("/environment")?);
    for dir in ["/host", "/layer", ROOT] {
        fs::create_dir(dir)?;
    }
    mount_at("virtiofs", "root", "/host", MS_RDONLY, "")?;
    mount_at("tmpfs", "layer", "/layer", 0, "")?;
    fs::create_dir("/layer/upper")?;
    fs::create_dir("/layer/work")?;
    mount_at("overlay", "overlay", ROOT, 0, "lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work")?;
    for dir in ["/proc", "/sys", "/dev"] {
        mount_at("", dir, &format!("{ROOT}{dir}"), MS_MOVE, "")?;
    }
    chroot(ROOT)?;
    std::env::set_current_dir("/")?;

    // Links that udev would create, and that shells rely on.
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(format!("/proc/self/fd{to}"), format!("/dev/{name}"))?;
    }
    mount_at("tmpfs", "run", "/run", 0, "")?;
    for (kind, at) in [
        ("tmpfs", "/dev/shm"),
        ("devpts", "/dev/pts"),
        ("virtiofs", "/run/lab-out"),
        ("tracefs", "/sys/kernel/tracing"),
        ("debugfs", "/sys/kernel/debug"),
        ("bpf", "/sys/fs/bpf"),
        ("cgroup2", "/sys/fs/cgroup"),
    ] {
        // The mount points in sysfs exist already, and cannot be created.
        if !Path::new(at).exists() {
            fs::create_dir_all(at)?;
        }
        let source = if kind == "virtiofs" { "out" } else { kind };
        mount_at(kind, source, at, 0, "")?;
    }
    Ok(())
}

fn mount_at(kind: &str, source: &str, at: &str, flags: c_ulong, data: &str) -> io::Result<()> {
    let [kind_c, source_c, at_c, data_c] =
        [kind, source, at, data].map(|text| CString::new(text).unwrap_or_default());
    // SAFETY: four NUL-terminated strings that outlive the call.
    let result =
        unsafe { mount(source_c.as_ptr(), at_c.as_ptr(), kind_c.as_ptr(), flags, data_c.as_ptr().cast()) };
    check(result.into(), || format!("mounting {kind} {source} at {at}"))
}

fn load_module(name: &str, parameters: &str) -> io::Result<()> {
    let file = fs::File::open(format!("/modules/{name}.ko"))?;
    let parameters = CString::new(parameters).unwrap_or_default();
    // SAFETY: an open file, a NUL-terminated string, no flags.
    let result = unsafe { syscall(SYS_FINIT_MODULE, file.as_raw_fd(), parameters.as_ptr(), 0) };
    check(result, || format!("loading {name}"))
}

fn check(result: c_long, what: impl FnOnce() -> String) -> io::Result<()> {
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(io::Error::new(error.kind(), format!("{}: {error}", what())))
}
