//! `precise report`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use precise::{
    capture::Capture,
    error::{Class, Failure},
    render,
    views::{
        keys::{Key, Sort},
        report::{self, ReportOptions},
        summary,
    },
};

use super::{Outcome, Output};

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The capture; `-` is the standard input
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: PathBuf,
    /// Group by these: function, line, module, cgroup, process, cpu, level, snoop, tlb, latency, address, variable, …
    #[arg(long, value_name = "KEYS")]
    by: Option<String>,
    #[command(flatten)]
    shape: Shape,
}

/// How a report is cut and printed; `record` takes the same.
#[derive(Debug, Args)]
pub struct Shape {
    /// Sort by samples, period, latency, avg, max, or one of the keys
    #[arg(short, long, value_name = "WHAT", default_value = "samples")]
    sort: String,
    /// Show this many groups of each event
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print values separated by this, for a spreadsheet: -x,
    #[arg(short = 'x', long, value_name = "SEPARATOR", conflicts_with = "json")]
    field_separator: Option<String>,
    /// Print text; the default
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Shows a capture.
pub fn run(arguments: &ReportArguments, out: &mut Output) -> Outcome {
    let by = keys(arguments.by.as_deref())?;
    arguments.shape.check()?;
    arguments.shape.print(&read(&arguments.input)?, by, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a capture.
pub fn read(path: &Path) -> Result<Capture, Failure> {
    Capture::read(path).map_err(|error| Failure::new(Class::BadFile, error.to_string()))
}

fn keys(by: Option<&str>) -> Result<Option<Vec<Key>>, Failure> {
    by.map(Key::parse_list).transpose().map_err(|error| Failure::new(Class::Usage, error.to_string()))
}

impl Shape {
    /// Checks what needs no capture, before a run is started.
    pub fn check(&self) -> Result<(), Failure> {
        self.options().map(drop)
    }

    fn options(&self) -> Result<ReportOptions, Failure> {
        let sort = Sort::parse(&self.sort).map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
        Ok(ReportOptions { sort, limit: Some(self.limit), ..ReportOptions::default() })
    }

    /// Prints the report of a capture in the form that was asked for: grouped by `by`, or the summary.
    pub fn print(&self, capture: &Capture, by: Option<Vec<Key>>, out: &mut Output) -> Result<(), Failure> {
        let options = self.options()?;
        let json = |result: Result<String, serde_json::Error>| {
            result.map_err(|error| {
                Failure::new(Class::Failed, format!("the result cannot be written as JSON: {error}"))
            })
        };
        if by.is_none() && self.field_separator.is_none() {
            let summary = summary::summary(capture, &options)
                .map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
            return out.print(&if self.json {
                json(render::summary_json(&summary))?
            } else {
                render::summary_text(&summary, &out.text)
            });
        }
        let by = by.unwrap_or_else(|| options.by.clone());
        let report = report::report(capture, &ReportOptions { by, ..options })
            .map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
        out.print(&match &self.field_separator {
            Some(separator) => render::report_csv(&report, separator),
            None if self.json => json(render::report_json(&report))?,
            None => render::report_text(&report, &out.text),
        })
    }
}
