//! What a command costs.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

/// What a command has used when it has ended, with the children that it waited for.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// Seconds of CPU time.
    pub cpu_seconds: f64,
    /// The largest memory of a process of it, in bytes.
    pub peak_bytes: u64,
}

impl Usage {
    /// Runs a command to its end, without input, and without output unless the command names a file
    /// for it.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started, or if it does not end with 0.
    pub fn of(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begin = Instant::now();
        let child = command.spawn().with_context(|| format!("{command:?} cannot be started"))?;
        let mut status = 0;
        // SAFETY: an all-zero rusage is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let id = child.id().cast_signed();
        // SAFETY: waits for our own child, with two pointers that outlive the call.
        let waited = unsafe { libc::wait4(id, &mut status, 0, &mut usage) };
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(waited == id && status == 0, "{command:?} ended with {status:#x}");
        let cpu = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Ok(Self {
            seconds,
            cpu_seconds: cpu(usage.ru_utime) + cpu(usage.ru_stime),
            peak_bytes: usage.ru_maxrss.unsigned_abs() << 10,
        })
    }
}
