//! When the loop of a run wakes up.
//!
//! A timer of tokio lies in a wheel whose slots are 1, 64, 4,096 … milliseconds wide, and a thread
//! that waits for it wakes up where each wider slot begins, too. Of times that are 50 ms apart,
//! three of four lie behind the beginning of a slot of 64 ms, so nearly half of the loop's wake-ups
//! did nothing, and on an idle CPU each takes 80 µs. A timer of the kernel wakes it once.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::kernel::readable::readable;

/// Wakes up a loop at one time after the other.
#[derive(Debug)]
pub(crate) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    ///
    /// Returns the error of timerfd_create(2) or epoll_ctl(2).
    pub fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self(readable(timer)?))
    }

    /// Returns at `time`, or soon if that is over. If it is dropped before, the next call replaces
    /// the time.
    ///
    /// # Errors
    ///
    /// Returns the error of timerfd_settime(2) or read(2).
    pub async fn at(&self, time: Instant) -> io::Result<()> {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // A loop that is always late would else never hear of a signal.
            tokio::task::yield_now().await;
            return Ok(());
        }
        let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
        // Once.
        let times = Itimerspec { it_interval: Timespec::default(), it_value };
        // An earlier time that has come meanwhile is forgotten: reading then finds nothing.
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &times)?;
        let mut times_that_came = [0; size_of::<u64>()];
        loop {
            let mut ready = self.0.readable().await?;
            let read = |timer: &AsyncFd<OwnedFd>| Ok(rustix::io::read(timer, &mut times_that_came)?);
            match ready.try_io(read) {
                Ok(read) => return read.map(drop),
                Err(_not_yet) => {}
            }
        }
    }
}

/// Returns when to do again what is done `every` so often and was due at `due`: as long after that,
/// or after now if that is over, too.
pub(crate) fn following(due: Instant, every: Duration) -> Instant {
    let (next, now) = (after(due, every), Instant::now());
    if next > now { next } else { after(now, every) }
}

/// Returns the time that is as long after another one; a hundred years if that is too long for the
/// clock.
pub(crate) fn after(time: Instant, long: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    time.checked_add(long).unwrap_or_else(|| time + CENTURY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn an_alarm_rings_when_its_time_has_come_and_not_before() {
        let alarm = Alarm::new().unwrap();
        let begin = Instant::now();
        for time in [3, 2, 9, 20] {
            let time = begin + time * MS;
            alarm.at(time).await.unwrap();
            assert!(Instant::now() >= time);
        }
        assert!(begin.elapsed() >= 20 * MS);
    }

    #[tokio::test]
    async fn a_time_that_was_not_waited_for_is_forgotten() {
        let alarm = Alarm::new().unwrap();
        let begin = Instant::now();
        tokio::select! {
            biased;
            rung = alarm.at(begin + 5 * MS) => panic!("it waited: {rung:?}"),
            () = async {} => {}
        }
        std::thread::sleep(10 * MS);
        alarm.at(begin + 30 * MS).await.unwrap();
        assert!(begin.elapsed() >= 30 * MS);
    }

    #[tokio::test]
    async fn whoever_is_always_late_lets_others_go_on() {
        let alarm = Alarm::new().unwrap();
        let begin = Instant::now();
        let other = tokio::spawn(async {});
        for _ in 0..3 {
            alarm.at(begin).await.unwrap();
        }
        assert!(other.is_finished());
    }

    #[test]
    fn what_is_late_is_done_once_and_keeps_its_distance() {
        let due = Instant::now();
        assert_eq!(following(due, 1000 * MS), due + 1000 * MS);
        assert!(following(due, Duration::MAX) > due);
        let late = due.checked_sub(70 * MS).unwrap();
        let next = following(late, 50 * MS);
        assert!(next >= due + 50 * MS && next <= Instant::now() + 50 * MS);
    }
}
