//! The lab's tests: shell scripts in tests/lab/tests, each with a header that says where it runs.
//!
//! ```text
//! # pmu: intel            any of amd, intel, zen3, …, spr; default: all
//! # kernel: 6.12          default: all
//! # timeout: 90           seconds in the guest; default: 60
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::pmu::Pmu;

/// A test.
#[derive(Debug, PartialEq)]
pub struct Test {
    /// The name of its file, without `.sh`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Seconds that it may take in the guest.
    pub timeout: u64,
    pmus: Vec<String>,
    kernels: Vec<String>,
}

impl Test {
    /// Every test of a folder.
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

    /// The test in a file.
    pub fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, path, &text)
    }

    fn parse(name: String, path: PathBuf, text: &str) -> Result<Self> {
        let mut test = Self { name, path, timeout: 60, pmus: Vec::new(), kernels: Vec::new() };
        // The header is the comment at the top.
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let words = || value.split_whitespace().map(str::to_owned).collect();
            match key.trim() {
                "pmu" => test.pmus = words(),
                "kernel" => test.kernels = words(),
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
        Ok(test)
    }

    /// Whether it wants to run there.
    pub fn runs_on(&self, pmu: Pmu, kernel: &str) -> bool {
        let here = |list: &[String], names: &[&str]| {
            list.is_empty() || list.iter().any(|l| names.contains(&l.as_str()))
        };
        here(&self.pmus, &[pmu.name(), pmu.vendor().folder()]) && here(&self.kernels, &[kernel])
    }
}

fn is_pmu_word(word: &str) -> bool {
    use clap::ValueEnum;
    Pmu::value_variants().iter().any(|pmu| word == pmu.name() || word == pmu.vendor().folder())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Test> {
        Test::parse("t".into(), PathBuf::from("t.sh"), text)
    }

    #[test]
    fn the_header_says_where_a_test_runs() {
        let test = parse(
            "#!/bin/bash\n# What it shows: much.\n# pmu: intel zen5\n# kernel: 6.12\n# timeout: 7\n\n# pmu: amd\n",
        );
        let Ok(test) = test else { unreachable!("{test:?}") };
        assert_eq!(test.timeout, 7);
        assert!(test.runs_on(Pmu::Spr, "6.12"));
        assert!(test.runs_on(Pmu::Zen5, "6.12"));
        assert!(!test.runs_on(Pmu::Zen4, "6.12"));
        assert!(!test.runs_on(Pmu::Spr, "6.1"));
    }

    #[test]
    fn a_misspelt_pmu_is_an_error_not_a_test_that_never_runs() {
        assert!(parse("# pmu: zen9\n").is_err());
    }
}
