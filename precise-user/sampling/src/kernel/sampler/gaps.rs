//! The gaps of an event on CPUs that come and go.

use precise_model::{CompactSort as _, CpuGap};
use rustc_hash::FxHashMap;

/// Returns the gap of an event that was enabled on a CPU `since_ns`, and for `enabled_ns` of the
/// time until `end_ns`, if the difference is too large for another cause. All times are in
/// nanoseconds.
pub(super) fn unnoticed(cpu: u32, since_ns: u64, enabled_ns: u64, end_ns: u64) -> Option<CpuGap> {
    let run_ns = end_ns.saturating_sub(since_ns);
    // CPUs are enabled one after the other, a change of the rate may disable an event for an
    // instant, and the clock of events is not adjusted as CLOCK_MONOTONIC is.
    let tolerance = (run_ns / 100).max(100_000_000);
    let is_short = run_ns.saturating_sub(enabled_ns) > tolerance;
    is_short.then(|| CpuGap { cpu, start_ns: since_ns.saturating_add(enabled_ns), end_ns })
}

/// The gaps of an event whose CPUs come and go.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The gaps that are over.
    closed: Vec<CpuGap>,
    /// The CPUs that are offline, with the start of each gap in nanoseconds.
    open: FxHashMap<u32, u64>,
}

impl Gaps {
    /// The most gaps that are kept apart. Beyond it, the last gap of a CPU grows instead.
    const MOST: usize = 1024;

    /// Starts a gap of a CPU.
    pub fn open(&mut self, cpu: u32, start_ns: u64) {
        self.open.insert(cpu, start_ns);
    }

    /// Ends the gap of a CPU, if it has one.
    pub fn close(&mut self, cpu: u32, end_ns: u64) {
        let Some(start_ns) = self.open.remove(&cpu) else { return };
        let gap = CpuGap { cpu, start_ns, end_ns };
        let many = self.closed.len() >= Self::MOST;
        match self.closed.iter_mut().rfind(|gap| gap.cpu == cpu) {
            Some(last) if many => last.end_ns = end_ns,
            _ => self.closed.push(gap),
        }
    }

    /// Returns all gaps in order of time; those that are open end at `now_ns`.
    pub fn until(&self, now_ns: u64) -> Vec<CpuGap> {
        let open = self.open.iter().map(|(cpu, start_ns)| CpuGap {
            cpu: *cpu,
            start_ns: *start_ns,
            end_ns: now_ns.max(*start_ns),
        });
        let mut gaps: Vec<CpuGap> = self.closed.iter().copied().chain(open).collect();
        gaps.compact_sort_by_key(|gap| (gap.start_ns, gap.cpu));
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_cpu_that_went_offline_is_told_from_one_that_started_late() {
        let of = |enabled_ns, end_ns| unnoticed(1, 0, enabled_ns, end_ns);
        for enabled in [10 * SECOND, 10 * SECOND - 90_000_000, 11 * SECOND] {
            assert_eq!(of(enabled, 10 * SECOND), None);
        }
        let gap = CpuGap { cpu: 1, start_ns: 3 * SECOND, end_ns: 10 * SECOND };
        assert_eq!(of(3 * SECOND, 10 * SECOND), Some(gap));
        let later = CpuGap { start_ns: 5 * SECOND, ..gap };
        assert_eq!(unnoticed(1, 2 * SECOND, 3 * SECOND, 10 * SECOND), Some(later));
        // In a run of a day, hundreds of changes of the rate add up.
        assert_eq!(of(86_390 * SECOND, 86_400 * SECOND), None);
        assert_eq!(of(0, 50_000_000), None);
    }

    #[test]
    fn gaps_are_in_order_and_never_too_many() {
        let mut gaps = Gaps::default();
        for round in 0..2000 {
            for cpu in [1, 2] {
                gaps.open(cpu, 10 * round);
                gaps.close(cpu, 10 * round + 5);
            }
        }
        gaps.close(3, 7);
        gaps.open(0, 4);
        let all = gaps.until(30_000);
        assert_eq!(all.len(), Gaps::MOST + 1);
        assert!(all.is_sorted_by_key(|gap| gap.start_ns));
        assert!(all.contains(&CpuGap { cpu: 0, start_ns: 4, end_ns: 30_000 }));
        assert_eq!(all.iter().filter(|gap| gap.cpu == 1).map(|gap| gap.end_ns).max(), Some(19_995));
    }
}
