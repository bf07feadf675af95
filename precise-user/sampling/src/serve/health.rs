//! Whether the run goes on: `/healthz` and `/readyz`, for the service manager that starts it again,
//! and for the load balancer that sends clients to it.

use std::time::{Duration, Instant};

use super::status::{EventStatus, ServeStatus};

/// How long an epoch may be late on a machine at its limit.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns why the run must be started again; `None` if it goes on.
pub(super) fn unhealthy(status: &ServeStatus, now: Instant) -> Option<String> {
    let age = now.saturating_duration_since(status.updated?);
    let late = age > PATIENCE.max(status.epoch.saturating_mul(5));
    late.then(|| format!("the last epoch ended {} s ago", age.as_secs()))
}

/// Returns why the numbers are not to be relied on now; `None` if they are.
pub(super) fn unready(status: &ServeStatus, now: Instant) -> Option<String> {
    let stopped = |event: &EventStatus| event.ledger.runaway.is_some();
    if status.epochs == 0 {
        return Some("the first epoch has not ended yet".to_owned());
    }
    if status.events.iter().all(stopped) {
        return Some(
            "all events were stopped, because they took far more samples than were asked for".to_owned(),
        );
    }
    unhealthy(status, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(epochs: usize, epoch: u64, updated: Instant) -> ServeStatus {
        let epoch = Duration::from_secs(epoch);
        let events = vec![EventStatus::default()];
        ServeStatus { epochs, epoch, updated: Some(updated), events, ..ServeStatus::default() }
    }

    #[test]
    fn a_run_is_ready_after_an_epoch_and_healthy_while_they_end() {
        let now = Instant::now();
        let later = |seconds: u64| now + Duration::from_secs(seconds);
        assert!(unhealthy(&status(0, 1, now), later(1)).is_none());
        assert_eq!(unready(&status(0, 1, now), now).unwrap(), "the first epoch has not ended yet");
        assert!(unready(&status(1, 1, now), later(10)).is_none());
        assert_eq!(unready(&status(1, 1, now), later(11)).unwrap(), "the last epoch ended 11 s ago");
        assert_eq!(unhealthy(&status(1, 1, now), later(11)).unwrap(), "the last epoch ended 11 s ago");
        // Long epochs are not late.
        assert!(unhealthy(&status(1, 60, now), later(299)).is_none());
        let mut stopped = status(1, 1, now);
        stopped.events[0].ledger.runaway = Some(Default::default());
        assert!(unready(&stopped, now).unwrap().starts_with("all events were stopped"));
        assert!(unhealthy(&stopped, now).is_none());
    }
}
