//! Restores perf's limits after a test run. The kernel lowers them if samples take long, as on a
//! loaded machine, and never raises them again.

use std::fs;
use std::path::{Path, PathBuf};

/// The limit on CPU time for samples, in percent. At 0 and at 100 the kernel refuses writes to the
/// sample rate.
const PERCENT: &str = "kernel/perf_cpu_time_max_percent";
const RATE: &str = "kernel/perf_event_max_sample_rate";
/// A percentage at which the kernel allows writes to the sample rate: its default.
const WRITABLE_PERCENT: &str = "25";

/// The limits before the test run.
pub struct SavedSysctls {
    root: PathBuf,
    percent: Option<String>,
    rate: Option<String>,
}

impl SavedSysctls {
    pub fn save() -> Self {
        Self::save_from(Path::new("/proc/sys"))
    }

    fn save_from(root: &Path) -> Self {
        Self { root: root.to_owned(), percent: read(root, PERCENT), rate: read(root, RATE) }
    }

    /// Restores the limits that have changed. Returns a line about each.
    pub fn restore(self) -> Vec<String> {
        let (percent, rate) = (read(&self.root, PERCENT), read(&self.root, RATE));
        let mut said = Vec::new();
        let rate_changed = rate != self.rate;
        if rate_changed && let Some(then) = &self.rate {
            self.write(PERCENT, WRITABLE_PERCENT);
            said.push(self.report(RATE, then, rate.as_deref()));
        }
        if (rate_changed || percent != self.percent)
            && let Some(then) = &self.percent
        {
            let line = self.report(PERCENT, then, percent.as_deref());
            if percent != self.percent {
                said.push(line);
            }
        }
        said
    }

    fn report(&self, name: &str, then: &str, now: Option<&str>) -> String {
        let dotted = name.replace('/', ".");
        let now = now.unwrap_or("unreadable");
        if self.write(name, then) {
            format!("{dotted} was {now} after the tests, and is {then} again")
        } else {
            format!(
                "{dotted} is {now}, was {then} before the tests, and cannot be written: `sysctl {dotted}={then}` as root"
            )
        }
    }

    fn write(&self, name: &str, value: &str) -> bool {
        fs::write(self.root.join(name), value).is_ok()
    }
}

fn read(root: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(root.join(name)).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(percent: &str, rate: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("kernel")).unwrap();
        fs::write(root.path().join(PERCENT), percent).unwrap();
        fs::write(root.path().join(RATE), rate).unwrap();
        root
    }

    #[test]
    fn a_lowered_rate_is_raised_and_the_percentage_survives_it() {
        let machine = machine("0\n", "100000\n");
        let saved = SavedSysctls::save_from(machine.path());
        fs::write(machine.path().join(RATE), "11000\n").unwrap();
        let said = saved.restore();
        assert_eq!(
            said,
            ["kernel.perf_event_max_sample_rate was 11000 after the tests, and is 100000 again"]
        );
        assert_eq!(read(machine.path(), RATE).as_deref(), Some("100000"));
        assert_eq!(read(machine.path(), PERCENT).as_deref(), Some("0"));
    }

    #[test]
    fn what_did_not_change_is_not_written() {
        let machine = machine("25\n", "100000\n");
        assert!(SavedSysctls::save_from(machine.path()).restore().is_empty());
        assert_eq!(fs::read_to_string(machine.path().join(RATE)).unwrap(), "100000\n");
        assert!(SavedSysctls::save_from(&machine.path().join("absent")).restore().is_empty());
    }
}
