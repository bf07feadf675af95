//! `precise report`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use precise::error::{Class, Failure};
use precise::model::Capture;
use precise::model::keys::{Key, Sort};
use precise::render::TextOptions;
use precise::views::call_graph::CallGraphOptions;
use precise::views::explain::ExplainOptions;
use precise::views::gates::GateResult;
use precise::views::report::ReportOptions;
use precise::views::{call_graph, page, report, summary};

use super::{
    Outcome, Output,
    code::CodeArguments,
    explain::named,
    form::{Form, Printers, by_help, keys, no_answer, read},
    output::{say, write_file},
    require,
};

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The capture; `-` is the standard input
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: PathBuf,
    #[arg(long, value_name = "KEYS", help = by_help("Group by these", ""))]
    by: Option<String>,
    /// Show who called it: functions with what they called, and the callers and callees of this one, or of the hottest
    #[arg(
        short = 'g',
        long = "call-graph",
        value_name = "FUNCTION",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["by", "sort"]
    )]
    call_graph: Option<String>,
    /// Write everything into one page that a browser shows without a network: findings, verdict, tables, hot lines, heatmap
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["by", "call_graph", "sort", "limit", "json", "field_separator"]
    )]
    html: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
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
    #[command(flatten)]
    form: Form,
}

/// Shows a capture.
pub fn run(arguments: &ReportArguments, out: &mut Output) -> Outcome {
    let by = keys(arguments.by.as_deref())?;
    arguments.shape.check()?;
    let capture = read(&arguments.input)?;
    let gates = match (&arguments.html, &arguments.call_graph) {
        (Some(html), _) => arguments.write_page(&capture, html)?,
        (None, Some(function)) => arguments.shape.print_calls(&capture, function, out)?,
        (None, None) => arguments.shape.print(&capture, by, out)?,
    };
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

impl ReportArguments {
    /// Writes the page.
    fn write_page(&self, capture: &Capture, html: &Path) -> Result<Option<Vec<GateResult>>, Failure> {
        let options = ExplainOptions { file: named(&self.input), ..ExplainOptions::default() };
        let page = page::page(capture, &options, &mut self.code.files()).map_err(no_answer)?;
        let text = precise::views::html::page_html(&page)
            .map_err(|error| Failure::new(Class::Failed, format!("the page cannot be made: {error}")))?;
        write_file(html, text.as_bytes())?;
        if html != Path::new("-") {
            say(&format!("wrote {}", html.display()));
        }
        Ok(self.shape.gates(capture))
    }
}

impl Shape {
    /// Checks what needs no capture, before a run is started.
    pub fn check(&self) -> Result<(), Failure> {
        self.options().map(drop)
    }

    /// What became of the gates, where nothing is printed.
    pub fn gates(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        self.form.gates(capture)
    }

    fn options(&self) -> Result<ReportOptions, Failure> {
        let sort = Sort::parse(&self.sort).map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
        Ok(ReportOptions { sort, limit: Some(self.limit), ..ReportOptions::default() })
    }

    /// Prints who called what: the function with this name and its neighbours, or without a name the hottest.
    fn print_calls(
        &self,
        capture: &Capture,
        function: &str,
        out: &mut Output,
    ) -> Result<Option<Vec<GateResult>>, Failure> {
        let function = (!function.is_empty()).then(|| function.to_owned());
        let options = CallGraphOptions { function, limit: Some(self.limit), ..CallGraphOptions::default() };
        let gates = self.form.gates(capture);
        let graph = call_graph::call_graph(capture, &options).map_err(no_answer)?;
        let printers = Printers {
            text: |text: &TextOptions| precise::views::call_graph::text::call_graph_text(&graph, text),
            json: |gates: Option<&[GateResult]>| precise::views::document::document(&graph, gates),
            csv: |separator: &str| precise::views::call_graph::text::call_graph_csv(&graph, separator),
        };
        self.form.print(gates.as_deref(), out, printers)?;
        Ok(gates)
    }

    /// Prints the report of a capture in the form that was asked for: grouped by `by`, or the summary. Returns what
    /// became of the gates: whoever prints more does so before it fails by them.
    pub fn print(
        &self,
        capture: &Capture,
        by: Option<Vec<Key>>,
        out: &mut Output,
    ) -> Result<Option<Vec<GateResult>>, Failure> {
        let options = self.options()?;
        let gates = self.form.gates(capture);
        if by.is_none() && !self.form.is_csv() {
            let summary = summary::summary(capture, &options).map_err(no_answer)?;
            let printers = Printers {
                text: |text: &TextOptions| precise::views::report::text::summary_text(&summary, text),
                json: |gates: Option<&[GateResult]>| precise::views::document::document(&summary, gates),
                // Asked for above.
                csv: |_: &str| String::new(),
            };
            self.form.print(gates.as_deref(), out, printers)?;
            return Ok(gates);
        }
        let by = by.unwrap_or_else(|| options.by.clone());
        let report = report::report(capture, &ReportOptions { by, ..options }).map_err(no_answer)?;
        let printers = Printers {
            text: |text: &TextOptions| precise::views::report::text::report_text(&report, text),
            json: |gates: Option<&[GateResult]>| precise::views::document::document(&report, gates),
            csv: |separator: &str| precise::views::report::csv::report_csv(&report, separator),
        };
        self.form.print(gates.as_deref(), out, printers)?;
        Ok(gates)
    }
}
