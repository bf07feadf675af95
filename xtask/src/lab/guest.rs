//! Boots a guest: QEMU without KVM, with the host's root shared read-only, and all output on the
//! serial console.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::sh;

/// The path of virtiofsd in Debian 12's qemu-system-common.
pub const VIRTIOFSD: &str = "/usr/lib/qemu/virtiofsd";

/// The first line that the guest's init prints. A failure after it is caused by the test or the
/// kernel, not by the emulator.
pub const UP: &str = "LAB-UP";
/// The last line that the guest's init prints.
pub const END: &str = "LAB-END";

/// The prefix of a line, followed by a number of seconds, with which a test asks to be paused.
const PAUSE: &str = "LAB-PAUSE ";

/// The configuration of a guest.
pub struct Guest<'a> {
    /// The argument of QEMU's -cpu.
    pub cpu: &'a str,
    /// The number of CPUs.
    pub cpus: u8,
    /// The kernel.
    pub vmlinux: &'a Path,
    /// The packed initramfs.
    pub initramfs: &'a [u8],
    /// The folder for this run: the log, the sockets, and `out`, which the guest can write to.
    pub dir: &'a Path,
    /// The time limit, after which the guest is killed.
    pub limit: Duration,
}

/// The result of a boot.
pub struct Boot {
    /// All lines of the console.
    pub lines: Vec<String>,
    /// Whether the guest reached its end by itself.
    pub ended: bool,
    /// The time from QEMU's start to its end.
    pub took: Duration,
}

impl Boot {
    /// Returns whether init started.
    pub fn came_up(&self) -> bool {
        self.lines.iter().any(|line| line.starts_with(UP))
    }
}

impl Guest<'_> {
    /// Boots the guest and waits for its end, passing each line of the console to `follow`.
    pub fn boot(&self, mut follow: impl FnMut(&str)) -> Result<Boot> {
        let out = self.dir.join("out");
        fs::create_dir_all(&out)?;
        let initramfs = self.dir.join("initramfs");
        fs::write(&initramfs, self.initramfs)?;
        // A socket's path is limited to 107 bytes, and the checkout's path may be long.
        let sockets = ShortDir::new()?;
        let _root = Share::start(Path::new("/"), &sockets.0.join("root"), "always", self.dir)?;
        let _out = Share::start(&out, &sockets.0.join("out"), "none", self.dir)?;

        let started = Instant::now();
        let mut qemu = Command::new("qemu-system-x86_64");
        // One thread for all CPUs: with one thread per CPU, QEMU 7.2 executes a stale translation
        // in one of a hundred boots.
        qemu.args([
            "-accel",
            "tcg,thread=single",
            "-cpu",
            self.cpu,
            "-M",
            "q35",
            "-smp",
            &self.cpus.to_string(),
            "-m",
            "2048",
        ])
        .args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"])
        .arg("-kernel")
        .arg(self.vmlinux)
        .arg("-initrd")
        .arg(&initramfs)
        .args(["-append", &kernel_command_line()])
        .args([
            "-object",
            "memory-backend-memfd,id=mem,size=2048M,share=on",
            "-numa",
            "node,memdev=mem",
        ]);
        for tag in ["root", "out"] {
            let socket = sockets.0.join(tag);
            qemu.arg("-chardev").arg(format!("socket,id={tag},path={}", socket.display()));
            qemu.arg("-device").arg(format!("vhost-user-fs-pci,chardev={tag},tag={tag}"));
        }
        let stderr = fs::File::create(self.dir.join("qemu.log"))?;
        let mut qemu = Killed(
            qemu.stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(stderr)
                .spawn()
                .context("cannot start qemu-system-x86_64")?,
        );

        let console = qemu.0.stdout.take().context("QEMU has no console")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut console = BufReader::new(console);
            let mut line = Vec::new();
            while console.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });

        let mut log = fs::File::create(self.dir.join("console.log"))?;
        let mut lines = Vec::new();
        // The channel closes when QEMU ends.
        while let Ok(line) = receiver.recv_timeout(self.limit.saturating_sub(started.elapsed())) {
            writeln!(log, "{line}")?;
            follow(&line);
            if let Some(time) = pause_wished(&line) {
                pause(&qemu.0, time)?;
            }
            lines.push(line);
        }
        drop(qemu);
        let ended = lines.iter().any(|line| line.starts_with(END));
        Ok(Boot { lines, ended, took: started.elapsed() })
    }
}

fn pause_wished(line: &str) -> Option<Duration> {
    let seconds = line.strip_prefix(PAUSE)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Stops all CPUs of the guest. Its clocks continue, as when a host does not schedule a guest, so
/// the guest sees them jump.
fn pause(qemu: &Child, time: Duration) -> Result<()> {
    let pid = qemu.id().to_string();
    sh::run(Command::new("kill").args(["-STOP", &pid]))?;
    thread::sleep(time);
    sh::run(Command::new("kill").args(["-CONT", &pid]))
}

/// Returns the command line of the guest's kernel.
///
/// - Only an oops is printed on the console by itself: a warning in the middle of a test's line
///   would break its marker.
/// - `norandmaps`: QEMU uses a translation again only for the same code at the same address, so
///   with random addresses it translates each new process anew, and a process takes twice the time.
/// - `tsc_early_khz`: the guest's TSC is the machine's own. A guest that measures it itself against
///   an emulated timer, while the machine is busy, can be wrong: one had a clock that ran twelve
///   times too fast, and every test that waits failed in it.
fn kernel_command_line() -> String {
    format!(
        "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off tsc=reliable norandmaps tsc_early_khz={}",
        tsc_khz()
    )
}

/// Measures how fast this machine's TSC counts.
fn tsc_khz() -> u128 {
    static MEASURED: OnceLock<u128> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let (start, first) = clocks();
        thread::sleep(Duration::from_millis(100));
        let (end, last) = clocks();
        u128::from(last - first) * 1_000_000 / (end - start).as_nanos()
    })
}

/// Reads the machine's clock and its TSC at the same time, as nearly as it can.
fn clocks() -> (Instant, u64) {
    // Of several pairs, the one that took the least time was not interrupted in between.
    let pair = || {
        let before = Instant::now();
        // SAFETY: the instruction only reads a counter, and every x86-64 has it.
        let tsc = unsafe { std::arch::x86_64::_rdtsc() };
        (before.elapsed(), before, tsc)
    };
    let (_, at, tsc) =
        (0..10).map(|_| pair()).fold(pair(), |least, next| if next.0 < least.0 { next } else { least });
    (at, tsc)
}

/// A child process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of the host that the guest can mount.
struct Share {
    _daemon: Killed,
}

impl Share {
    fn start(folder: &Path, socket: &Path, cache: &str, logs: &Path) -> Result<Self> {
        let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = logs.join(format!("virtiofsd-{name}.log"));
        let daemon = Command::new(VIRTIOFSD)
            .arg(format!("--socket-path={}", socket.display()))
            .arg("-o")
            .arg(format!("source={},cache={cache},sandbox=chroot", folder.display()))
            .arg("-f")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("cannot start virtiofsd")?;
        let share = Self { _daemon: Killed(daemon) };
        let started = Instant::now();
        while !socket.exists() {
            if started.elapsed() > Duration::from_secs(10) {
                bail!("virtiofsd made no socket (it needs root):\n{}", fs::read_to_string(log)?);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(share)
    }
}

/// A temporary folder with a short name.
struct ShortDir(PathBuf);

impl ShortDir {
    fn new() -> Result<Self> {
        // Several guests of one run are up at the same time.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/tmp/precise-lab-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for ShortDir {
    fn drop(&mut self) {
        // These are only sockets, so leaving them behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_may_ask_for_a_pause() {
        assert_eq!(pause_wished("LAB-PAUSE 2.5"), Some(Duration::from_millis(2500)));
        for other in ["LAB-PAUSE", "LAB-PAUSE -1", "LAB-PAUSED 2", "LAB-TEST LAB-PAUSE 2"] {
            assert_eq!(pause_wished(other), None);
        }
    }
}
