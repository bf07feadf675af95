//! lab-fields: judges the fields of a program's samples by their addresses.

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use precise_tests::field_judge::{Printed, judge};

const USAGE: &str = "\
usage: lab-fields PRINTED PROCESS REPORT.json LEAST
PRINTED is what the program printed, PROCESS its name, and REPORT.json the output of `precise report --json --by
process,field,address`. Fails if a field is wrong, or if less than LEAST percent have one, in code that has variables.";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [printed, process, report, least] = &arguments[..] else {
        println!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let printed = Printed::of(&std::fs::read_to_string(printed).with_context(|| printed.clone())?)?;
    ensure!(printed.is_complete(), "the program did not print its objects");
    let report = std::fs::read_to_string(report).with_context(|| report.clone())?;
    let report = serde_json::from_str(&report)?;
    let judged =
        judge(&printed, Some(process), &report, |what, samples| println!("{what} ({samples} samples)"))?;
    println!("{process}: {:.1} % typed, {judged:?}", 100.0 * judged.covered());
    let enough = 100.0 * judged.covered() >= least.parse()?;
    Ok(if judged.wrong == 0 && judged.right > 0 && enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
