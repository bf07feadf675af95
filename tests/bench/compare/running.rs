//! A profiler that runs beside a load, and what it takes meanwhile.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use precise::error::ExitClass;
use precise_tests::kill_on_drop::KillOnDrop;
use precise_tests::resident;

use super::setting::Setting;
use super::tool::Tool;

/// How long a profiler may take to end after SIGINT.
const END: Duration = Duration::from_secs(120);
/// After which time it is interrupted once more: bpftrace 0.17 has missed a signal.
const AGAIN: Duration = Duration::from_secs(30);

/// A profiler that samples.
pub struct Running(KillOnDrop);

impl Running {
    /// Starts a profiler by the first of these commands, and waits until it samples.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started, or ends at once.
    pub fn start(tool: Tool, commands: &[Vec<String>], setting: &Setting) -> Result<Self> {
        let command = commands.first().context("no command")?;
        let mut started = setting.command_of(command)?;
        let child = started.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = KillOnDrop::from(child.with_context(|| command.join(" "))?);
        // Nothing that all of them print says that they sample.
        std::thread::sleep(Duration::from_secs(if tool.is_bpftrace() { 3 } else { 1 }));
        if let Some(status) = running.try_wait()? {
            bail!("`{}` ended at once: {status}", command.join(" "));
        }
        Ok(Self(running))
    }

    /// Returns the CPU time of the profiler so far, and of the processes that it started.
    fn cpu_time(&self) -> Duration {
        cpu_time(self.0.id())
    }

    /// Interrupts the profiler after it has run for `settled` and then for `measured`. Returns the
    /// CPU time that it took in the second part, in milliseconds per second.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not end.
    pub fn cpu_time_after(self, settled: Duration, measured: Duration) -> Result<f64> {
        std::thread::sleep(settled);
        let before = self.cpu_time();
        std::thread::sleep(measured);
        let spent = self.cpu_time().saturating_sub(before);
        self.interrupt()?;
        Ok(spent.as_secs_f64() * 1e3 / measured.as_secs_f64())
    }

    /// Returns the sum of the largest memory of each of its processes that still run, in bytes.
    pub fn peak(&self) -> u64 {
        peak(self.0.id())
    }

    /// Interrupts the profiler. Returns the time until its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not end.
    pub fn interrupt(mut self) -> Result<Duration> {
        let begin = Instant::now();
        let mut asked = None;
        while begin.elapsed() < END {
            if asked.is_none_or(|at: Instant| at.elapsed() >= AGAIN) {
                asked = Some(Instant::now());
                // SAFETY: the child has not been waited for, so the process id is its own.
                unsafe { libc::kill(self.0.id().cast_signed(), libc::SIGINT) };
            }
            if let Some(status) = self.0.try_wait()? {
                let took = begin.elapsed();
                // A filter that rejects every sample is what some questions are about.
                let no_samples = i32::from(ExitClass::NoSamples.code());
                let in_order = status.success()
                    || status.signal() == Some(libc::SIGINT)
                    || status.code() == Some(no_samples);
                ensure!(in_order, "the profiler ended with {status}");
                return Ok(took);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("it did not end within {} s of SIGINT", END.as_secs())
    }
}

fn peak(pid: u32) -> u64 {
    resident::peak(pid).unwrap_or(0) + resident::children(pid).into_iter().map(peak).sum::<u64>()
}

fn cpu_time(pid: u32) -> Duration {
    own_cpu_time(pid).unwrap_or_default()
        + resident::children(pid).into_iter().map(cpu_time).sum::<Duration>()
}

/// Returns the CPU time of a process and of those of its children that have ended.
fn own_cpu_time(pid: u32) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: the pointer is to a clock id, which the call writes.
    let known = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a time, which the call writes.
    if known != 0 || unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let own = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 16 and 17, in ticks; the name before them may have spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(13).take(2).map_while(|field| field.parse::<u64>().ok()).sum::<u64>();
    // SAFETY: no pointers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs();
    Some(own + Duration::from_secs_f64(ticks as f64 / per_second as f64))
}
