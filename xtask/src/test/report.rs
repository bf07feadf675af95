//! The table at the end of a run.

use std::fmt;
use std::time::Duration;

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum StepResult {
    Passed,
    /// The step failed, for this reason.
    Failed(String),
    /// The step was skipped, for this reason.
    Skipped(String),
}

/// The results of a run's steps.
#[derive(Default)]
pub struct StepsReport {
    rows: Vec<(&'static str, StepResult, Duration)>,
}

impl StepsReport {
    pub fn add(&mut self, step: &'static str, outcome: StepResult, took: Duration) {
        self.rows.push((step, outcome, took));
    }

    /// Returns whether no step failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns the steps that failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rows.iter().filter_map(|(step, outcome, _)| match outcome {
            StepResult::Failed(why) => Some((*step, why.as_str())),
            StepResult::Passed | StepResult::Skipped(_) => None,
        })
    }

    fn count(&self, is: impl Fn(&StepResult) -> bool) -> usize {
        self.rows.iter().filter(|(_, outcome, _)| is(outcome)).count()
    }
}

/// Prints the table, which ends with a machine-readable line: `N passed, N failed, N skipped`.
impl fmt::Display for StepsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12} {:<8} {:>8}", "step", "result", "seconds")?;
        for (step, outcome, took) in &self.rows {
            let (result, why) = match outcome {
                StepResult::Passed => ("passed", ""),
                StepResult::Failed(why) => ("FAILED", why.as_str()),
                StepResult::Skipped(why) => ("skipped", why.as_str()),
            };
            // The rest of a long reason is above the table.
            let why = why.lines().next().unwrap_or_default();
            writeln!(
                f,
                "{}",
                format!("{step:<12} {result:<8} {:>8.1}  {why}", took.as_secs_f64()).trim_end()
            )?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.count(|outcome| *outcome == StepResult::Passed),
            self.failures().count(),
            self.count(|outcome| matches!(outcome, StepResult::Skipped(_)))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_the_steps() {
        let mut report = StepsReport::default();
        report.add("setup", StepResult::Passed, Duration::from_millis(1250));
        report.add("lab", StepResult::Skipped("--no-lab was given".into()), Duration::ZERO);
        assert!(report.passed());
        report.add("unit", StepResult::Failed("broken\nin detail".into()), Duration::from_secs(100));
        assert!(!report.passed());
        let expected = "\
step         result    seconds
setup        passed        1.2
lab          skipped       0.0  --no-lab was given
unit         FAILED      100.0  broken
1 passed, 1 failed, 1 skipped";
        assert_eq!(report.to_string(), expected);
    }
}
