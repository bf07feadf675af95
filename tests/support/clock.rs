//! Time on a machine that others use too.
//!
//! Some promises of precise are times: a run ends within 5 s, a kill switch works within a second.
//! They can be kept only by a process that gets a CPU. The kernel counts for how long anything on
//! this machine waited for a CPU (`/proc/pressure/cpu`), and for how long a hypervisor ran
//! something else (`/proc/stat`). A [`Clock`] leaves that time out. On a quiet machine it is an
//! ordinary clock; on a busy one it does not blame precise for the time that others took. Whatever
//! never ends is found on both.

use std::time::{Duration, Instant};

/// How much longer than on a quiet machine something may take on a busy one, as a factor. It ends
/// what would never end.
const LONGEST: u32 = 12;
/// Clock ticks per second in `/proc/stat` (`USER_HZ`).
const TICKS: u64 = 100;

/// A clock that stands still while something waits for a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begin: Instant,
    waited: Duration,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { begin: Instant::now(), waited: waited() }
    }

    /// Returns the time since the start in which nothing waited for a CPU; at least a twelfth of
    /// the time since the start.
    pub fn elapsed(&self) -> Duration {
        let (all, waited) = (self.begin.elapsed(), waited().saturating_sub(self.waited));
        all.saturating_sub(waited).max(all / LONGEST)
    }
}

/// Sleeps until a [`Clock`] shows this time, so that others can do what they would have done by
/// then on a quiet machine.
pub fn sleep(duration: Duration) {
    let clock = Clock::start();
    loop {
        let left = duration.saturating_sub(clock.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left);
    }
}

/// Returns for how long something has waited for a CPU since the machine started. 0 if the kernel
/// does not count it.
fn waited() -> Duration {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = pressure.lines().next().and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // Of all CPUs together. Time that was stolen from any of them counts.
    let stolen = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    Duration::from_micros(some.unwrap_or(0)) + Duration::from_millis(stolen.unwrap_or(0) * 1000 / TICKS)
}
