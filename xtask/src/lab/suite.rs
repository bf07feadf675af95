//! The lab's tests: shell scripts in tests/lab/tests, each with a header that says where it runs.
//!
//! ```text
//! # pmu: intel zen4@6.12  any of amd, intel, zen3, …, spr, also on one kernel only; default: all. adl, guest-pebs, nopebs, none by name only
//! # kernel: 6.12          any of 6.1, 6.12, newest; default: all that have the PMU
//! # timeout: 90           seconds in the guest; default: 60
//! # generations: every    also where few tests run unless asked for: zen3, zen5, icl
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::kernel::SERIES;
use super::pmu::GuestPmu;

/// A test of the lab.
#[derive(Debug, PartialEq)]
pub struct LabTest {
    /// The name of its file, without `.sh`.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The time limit in the guest, in seconds.
    pub timeout: u64,
    /// Whether it is one of the few tests that run on every generation of a PMU.
    pub every_generation: bool,
    pmus: Vec<String>,
    kernels: Vec<String>,
}

impl LabTest {
    /// Reads all tests in a folder.
    pub fn all(dir: &Path) -> Result<Vec<Self>> {
        let mut tests = Vec::new();
        for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "sh") {
                tests.push(Self::read(path)?);
            }
        }
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tests)
    }

    /// Reads the test in a file.
    pub fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, path, &text)
    }

    fn parse(name: String, path: PathBuf, text: &str) -> Result<Self> {
        let mut test =
            Self { name, path, timeout: 60, every_generation: false, pmus: Vec::new(), kernels: Vec::new() };
        // The header is the comment at the top.
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let words = || value.split_whitespace().map(str::to_owned).collect();
            match key.trim() {
                "pmu" => test.pmus = words(),
                "kernel" => test.kernels = words(),
                "generations" => test.every_generation = value.trim() == "every",
                "timeout" => {
                    test.timeout =
                        value.trim().parse().with_context(|| format!("timeout of {}", test.name))?;
                }
                _ => {}
            }
        }
        if let Some(unknown) = test.pmus.iter().find(|name| !is_pmu_word(name)) {
            bail!("{}: no PMU is called {unknown}", test.name);
        }
        if let Some(unknown) = test.kernels.iter().find(|name| !is_kernel(name)) {
            bail!("{}: no kernel is called {unknown}", test.name);
        }
        Ok(test)
    }

    /// Returns whether the test should run on this PMU and kernel.
    pub fn runs_on(&self, pmu: GuestPmu, kernel: &str) -> bool {
        let named = |names: &[&str]| {
            self.pmus.iter().any(|word| {
                let (name, on) = word.split_once('@').unwrap_or((word, kernel));
                names.contains(&name) && on == kernel
            })
        };
        let pmu_wanted = if pmu.is_special() {
            named(&[pmu.name()])
        } else {
            self.pmus.is_empty() || named(&[pmu.name(), pmu.vendor_name()])
        };
        pmu_wanted && (self.kernels.is_empty() || self.kernels.iter().any(|name| name == kernel))
    }
}

fn is_pmu_word(word: &str) -> bool {
    use clap::ValueEnum;
    let name = match word.split_once('@') {
        Some((_, kernel)) if !is_kernel(kernel) => return false,
        Some((name, _)) => name,
        None => word,
    };
    GuestPmu::value_variants().iter().any(|pmu| name == pmu.name() || name == pmu.vendor_name())
}

fn is_kernel(name: &str) -> bool {
    SERIES.iter().any(|series| series.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LabTest> {
        LabTest::parse("t".into(), PathBuf::from("t.sh"), text)
    }

    #[test]
    fn the_header_says_where_a_test_runs() {
        let test = parse(
            "#!/bin/bash\n# What it shows: much.\n# pmu: intel zen5\n# kernel: 6.12\n# timeout: 7\n\n# pmu: amd\n",
        );
        let Ok(test) = test else { unreachable!("{test:?}") };
        assert_eq!((test.timeout, test.every_generation), (7, false));
        assert!(parse("# generations: every\n").is_ok_and(|test| test.every_generation));
        assert!(test.runs_on(GuestPmu::Spr, "6.12"));
        assert!(test.runs_on(GuestPmu::Zen5, "6.12"));
        assert!(!test.runs_on(GuestPmu::Zen4, "6.12"));
        assert!(!test.runs_on(GuestPmu::Spr, "6.1"));
    }

    #[test]
    fn a_pmu_can_be_meant_on_one_kernel_only() {
        let test = parse("# pmu: skl@6.12 zen4\n");
        let Ok(test) = test else { unreachable!("{test:?}") };
        assert!(test.runs_on(GuestPmu::Skl, "6.12") && !test.runs_on(GuestPmu::Skl, "6.1"));
        assert!(test.runs_on(GuestPmu::Zen4, "6.1") && test.runs_on(GuestPmu::Zen4, "6.12"));
    }

    #[test]
    fn a_special_pmu_is_meant_by_name_only() {
        for (header, wanted) in
            [("", false), ("# pmu: intel\n", false), ("# pmu: guest-pebs none@newest\n", true)]
        {
            let test = parse(header);
            let Ok(test) = test else { unreachable!("{test:?}") };
            assert_eq!(test.runs_on(GuestPmu::GuestPebs, "6.12"), wanted, "{header}");
            assert_eq!(test.runs_on(GuestPmu::Software, "newest"), wanted, "{header}");
            assert!(!test.runs_on(GuestPmu::Software, "6.12"), "{header}");
        }
    }

    #[test]
    fn a_misspelt_pmu_or_kernel_is_an_error_not_a_test_that_never_runs() {
        for header in
            ["# pmu: zen9\n", "# pmu: zen9@6.12\n", "# pmu: zen4@6.2\n", "# pmu: zen4@\n", "# kernel: 7.2\n"]
        {
            assert!(parse(header).is_err(), "{header}");
        }
    }
}
