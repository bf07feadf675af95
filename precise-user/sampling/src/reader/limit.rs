//! How long the process that samples waits for an answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The most CPU time that an answer may take. Debug information of a gigabyte takes about a second.
const CPU_LIMIT: Duration = Duration::from_secs(10);
/// How long the nursery may take to start or to answer.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);
/// How often the CPU time of a worker is looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long to wait for an answer.
pub(super) struct Limit {
    clock: Option<libc::clockid_t>,
    cpu_at_start: Duration,
    begun: Instant,
    time: Duration,
}

impl Limit {
    pub fn start(clock: Option<libc::clockid_t>, time: Duration) -> Self {
        Self { clock, cpu_at_start: clock.map_or(Duration::ZERO, cpu_time), begun: Instant::now(), time }
    }

    /// Waits until there is something to read.
    pub fn wait(&self, socket: &UnixStream) -> io::Result<()> {
        loop {
            let mut waiting = [PollFd::new(socket, PollFlags::IN)];
            match poll(&mut waiting, Some(&LOOK)) {
                Err(rustix::io::Errno::INTR) | Ok(0) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
            let timed_out = |what: String| Err(io::Error::new(io::ErrorKind::TimedOut, what));
            if self.begun.elapsed() > self.time {
                return timed_out(format!("it took more than {} s", self.time.as_secs()));
            }
            let Some(clock) = self.clock else { continue };
            if cpu_time(clock).saturating_sub(self.cpu_at_start) > CPU_LIMIT {
                return timed_out(format!("it took more than {} s of CPU time", CPU_LIMIT.as_secs()));
            }
        }
    }
}

/// Returns the CPU time of another process; zero if it has ended.
pub(super) fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a time to `time`, which outlives it.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
