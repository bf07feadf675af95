//! The CPU time that naming may take: other programs decide how much there is to name, and none of
//! them may make a run cost more than its budget.
//!
//! Naming that is ahead of its allowance waits. What waits for it is bounded in bytes, and dropped
//! and counted beyond that. A run that ends waits no longer.

use std::time::Duration;

use precise_model::Reason;
use precise_model::digits::counted;

/// CPU time in nanoseconds that naming may take at once: what it takes to read the running
/// processes and the symbols of a few large programs. It is saved up again while there is little
/// to name.
const AT_ONCE: f64 = 3e9;

/// How long an epoch waits for names that are not known yet. While naming is further behind, it
/// uses the names that it knows and looks up no others. Otherwise a run whose names take longer
/// than they may would fall behind until the memory for what waits is used up, and its captures
/// with it.
const MOST_BEHIND: Duration = Duration::from_secs(30);

/// Decides when naming must wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allowance {
    /// CPU time per time.
    share: f64,
    /// CPU time that is left, in nanoseconds; below 0 if more was taken.
    left: f64,
    /// [`MOST_BEHIND`], but for tests.
    most_behind: Duration,
}

impl Allowance {
    /// Creates an allowance of `budget`, a share of each CPU's time, on `cpus` CPUs.
    pub fn new(budget: f64, cpus: usize) -> Self {
        Self { share: budget * cpus.max(1) as f64, left: AT_ONCE, most_behind: MOST_BEHIND }
    }

    /// Creates an allowance of which nothing is left.
    #[cfg(test)]
    pub fn used_up(share: f64) -> Self {
        Self { share, left: 0.0, most_behind: MOST_BEHIND }
    }

    /// Sets how long an epoch waits for names.
    #[cfg(test)]
    pub fn behind_by(self, most_behind: Duration) -> Self {
        Self { most_behind, ..self }
    }

    /// Returns whether names are looked up for an epoch that has waited for this time.
    pub fn waits_for_names(&self, behind: Duration) -> bool {
        behind <= self.most_behind
    }

    /// Takes off the CPU time that was `taken` in `elapsed`, both in nanoseconds. Returns how long
    /// to wait until some is left again.
    pub fn take(&mut self, elapsed: u64, taken: u64) -> Duration {
        self.left = (self.left + elapsed as f64 * self.share).min(AT_ONCE) - taken as f64;
        // A float that is too large becomes the largest integer.
        Duration::from_nanos((-self.left / self.share).max(0.0) as u64)
    }
}

/// Returns a note about samples that have no names because naming was behind; `None` if there are
/// none.
pub(crate) fn behind_note(samples: u64) -> Option<String> {
    (samples > 0).then(|| {
        format!(
            "{} not named, because looking up names was more than {} s behind: kept with the reason `{}`",
            counted(samples, "sample"),
            MOST_BEHIND.as_secs(),
            Reason::NotInTime.as_str()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Allowance};
    use std::time::Duration;

    /// However much there is to name, and in whatever parts, naming takes no more than its share
    /// and what it may take at once.
    #[test]
    fn naming_keeps_to_its_share() {
        for (budget, cpus, each) in [(0.01, 2, 1_000_000), (0.001, 64, 400_000_000), (0.5, 1, 50_000)] {
            let share = budget * cpus as f64;
            let mut allowance = Allowance::new(budget, cpus);
            let (mut now, mut taken) = (0_u64, 0_u64);
            for _ in 0..100_000 {
                let wait = allowance.take(each, each).as_nanos() as u64;
                let idle = if wait == 0 { 0 } else { wait + 1 };
                assert_eq!(allowance.take(idle, 0), Duration::ZERO);
                (now, taken) = (now + each + idle, taken + each);
                let most = AT_ONCE + now as f64 * share + each as f64;
                assert!(taken as f64 <= most, "{taken} in {now}, {budget} of {cpus}");
            }
            assert!(taken as f64 >= now as f64 * share, "{taken} in {now}, {budget} of {cpus}");
        }
    }

    #[test]
    fn what_is_saved_up_is_bounded() {
        let mut allowance = Allowance::new(0.01, 2);
        assert_eq!(allowance.take(3_600_000_000_000, 0), Duration::ZERO);
        assert_eq!(allowance.take(0, 3_000_000_000), Duration::ZERO);
        assert_eq!(allowance.take(0, 2_000_000), Duration::from_millis(100));
    }
}
