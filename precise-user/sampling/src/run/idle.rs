//! How long CPUs were idle, as the kernel measures it.
//!
//! A timer event on an idle CPU takes few samples: the kernel stops the CPU's tick, a hypervisor
//! delays its interrupts, and an event that is throttled waits for the next tick. So idle time is
//! measured apart, and what the timer lost of it is not a loss.

use crate::machine::Root;

/// The length of one unit of /proc/stat in nanoseconds: `USER_HZ` is 100 on every architecture that
/// this program runs on.
const UNIT_NS: u64 = 10_000_000;

/// Returns how long these CPUs have been idle since the start of the machine, in nanoseconds: the
/// sum over the CPUs. `None` if one of them is not in /proc/stat.
pub(crate) fn since_boot(root: &Root, cpus: &[u32]) -> Option<u64> {
    let stat = root.read("/proc/stat").ok()?;
    let of = |cpu: u32| stat.lines().find_map(|line| idle_of(line, cpu));
    cpus.iter().try_fold(0u64, |sum, cpu| sum.checked_add(of(*cpu)?))
}

/// Returns the idle time in a line of /proc/stat if it is the line of this CPU. Waiting for a disk
/// is idle time too.
fn idle_of(line: &str, cpu: u32) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    if words.next()?.strip_prefix("cpu")?.parse() != Ok(cpu) {
        return None;
    }
    let mut waiting = words.skip(3).map_while(|word| word.parse::<u64>().ok());
    Some((waiting.next()? + waiting.next().unwrap_or(0)).saturating_mul(UNIT_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_that_of_the_chosen_cpus() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let stat =
            "cpu  1 2 3 400 50 6\ncpu0 1 2 3 100 20 6\ncpu1 0 0 0 300\ncpu10 0 0 0 7 0\nintr 1 2 3 4 5\n";
        std::fs::write(folder.path().join("proc/stat"), stat).unwrap();
        let root = Root(folder.path().to_owned());
        assert_eq!(since_boot(&root, &[0]), Some(1_200_000_000));
        assert_eq!(since_boot(&root, &[0, 1, 10]), Some(4_270_000_000));
        assert_eq!(since_boot(&root, &[0, 2]), None);
        assert_eq!(since_boot(&Root(folder.path().join("none")), &[0]), None);
    }
}
