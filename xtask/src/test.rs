//! `cargo xtask test`: runs all checks, one after the other, and prints a table of the results.

mod failures;
mod report;
mod steps;
mod sysctl;

use std::env;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};

use report::{StepResult, StepsReport};
use steps::{STEPS, Step};
use sysctl::SavedSysctls;

/// Run all checks, after installing what they need
#[derive(clap::Args)]
pub struct TestArgs {
    /// Run only tests whose name contains this; checks without tests are left out
    filter: Option<String>,

    /// Run only these steps, by name [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    step: Vec<String>,

    /// Do not boot guests
    #[arg(long)]
    no_lab: bool,
}

/// The strictness of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TestMode {
    /// A step that cannot run here is skipped, with a reason.
    Developer,
    /// A required step that is skipped is a failure.
    Ci,
}

/// The settings that the steps of a run share.
struct Run {
    filter: Option<String>,
    no_lab: bool,
    /// The eBPF object to test, if it is not the embedded one.
    object: Option<PathBuf>,
}

/// Runs the task. Returns false if a step failed; the report has already shown which one.
pub fn run(args: &TestArgs) -> Result<bool> {
    let ci = env::var_os("CI").is_some_and(|value| value == "true");
    run_steps(args, if ci { TestMode::Ci } else { TestMode::Developer })
}

/// Runs all steps, for `ci`.
pub fn run_all(mode: TestMode) -> Result<bool> {
    run_steps(&TestArgs { filter: None, step: Vec::new(), no_lab: false }, mode)
}

fn run_steps(args: &TestArgs, mode: TestMode) -> Result<bool> {
    let chosen = choose(STEPS, args)?;
    let sysctls = SavedSysctls::save();
    let mut run = Run { filter: args.filter.clone(), no_lab: args.no_lab, object: None };
    let mut report = StepsReport::default();
    let begin = Instant::now();
    for step in chosen {
        // A run that CI ends has no table, which says what each step took.
        println!("\n==> {}, {} s after the start: {}", step.name, begin.elapsed().as_secs(), step.about);
        let start = Instant::now();
        let outcome = judge((step.run)(&mut run), step.required, mode);
        if let StepResult::Failed(why) = &outcome {
            println!("{} FAILED: {}", step.name, why.lines().next().unwrap_or_default());
        }
        report.add(step.name, outcome, start.elapsed());
    }
    for change in sysctls.restore() {
        println!("{change}");
    }
    // After all that the steps have written: nobody finds it between them.
    for (step, why) in report.failures() {
        println!("\n{step}: {why}");
    }
    println!("\n{report}");
    Ok(report.passed())
}

fn judge(result: Result<StepResult>, required: bool, mode: TestMode) -> StepResult {
    match result {
        Ok(StepResult::Skipped(why)) if required && mode == TestMode::Ci => {
            StepResult::Failed(format!("CI may not skip this step: {why}"))
        }
        Ok(outcome) => outcome,
        Err(error) => StepResult::Failed(format!("{error:#}")),
    }
}

fn choose<'a>(steps: &'a [Step], args: &TestArgs) -> Result<Vec<&'a Step>> {
    if let Some(unknown) = args.step.iter().find(|name| !steps.iter().any(|step| step.name == **name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("no step is called {unknown}; there are: {}", known.join(", "));
    }
    Ok(steps
        .iter()
        .filter(|step| args.step.is_empty() || args.step.iter().any(|name| name == step.name))
        .filter(|step| args.filter.is_none() || step.filtered)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(filter: Option<&str>, step: &[&str]) -> TestArgs {
        TestArgs {
            filter: filter.map(str::to_owned),
            step: step.iter().map(|s| (*s).to_owned()).collect(),
            no_lab: false,
        }
    }

    fn names(args: &TestArgs) -> Vec<&'static str> {
        choose(STEPS, args).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn a_filter_leaves_only_steps_with_tests() {
        assert_eq!(names(&args(None, &[])).len(), STEPS.len());
        let filtered = names(&args(Some("x"), &[]));
        assert!(filtered.contains(&"unit") && filtered.contains(&"setup") && !filtered.contains(&"clippy"));
        assert_eq!(names(&args(None, &["fmt", "setup"])), ["setup", "fmt"]);
        let error = choose(STEPS, &args(None, &["nothing"])).err().unwrap().to_string();
        assert!(error.contains("no step is called nothing") && error.contains("clippy"), "{error}");
    }

    #[test]
    fn ci_may_skip_only_what_is_not_required() {
        let skipped = || Ok(StepResult::Skipped("no hardware".into()));
        assert!(matches!(judge(skipped(), true, TestMode::Developer), StepResult::Skipped(_)));
        assert!(matches!(judge(skipped(), false, TestMode::Ci), StepResult::Skipped(_)));
        assert!(
            matches!(judge(skipped(), true, TestMode::Ci), StepResult::Failed(why) if why.ends_with("no hardware"))
        );
        assert!(matches!(
            judge(Err(anyhow::anyhow!("x")), false, TestMode::Developer),
            StepResult::Failed(_)
        ));
    }
}
