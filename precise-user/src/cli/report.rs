//! `precise report`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use precise::error::{ExitClass, Failure};
use precise::model::{Capture, Meta, Projection};
use precise::views::call_graph::CallGraphView;
use precise::views::gates::GateResult;
use precise::views::html;
use precise::views::report::ReportView;
use precise::views::summary::SummaryView;
use precise::views::typing;
use precise::views::view::{AnyView, Input, OptionValues};

use super::{
    CommandResult, Output,
    code::{CodeArguments, LocalFiles},
    form::{FormArguments, by_help, say_few},
    idle::say_left_out,
    narrow::NarrowArguments,
    output::{say, write_file},
    require,
    view::{CaptureArguments, named, no_answer},
};

/// Help of `--by`.
const BY: &str = "Group by these keys: function, line, module, cgroup, cpu, level, latency, …";

#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    capture: CaptureArguments,
    #[command(flatten)]
    narrow: NarrowArguments,
    #[arg(long, value_name = "KEYS", help_heading = "Selection", help = BY, long_help = by_help(BY, ""))]
    by: Option<String>,
    /// Show the callers and callees of FUNCTION [default: of the hottest]
    #[arg(
        short = 'g',
        long = "call-graph",
        value_name = "FUNCTION",
        help_heading = "Selection",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["by", "sort"]
    )]
    call_graph: Option<String>,
    /// Write one HTML page with all findings, tables and pictures
    ///
    /// It needs no network.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output",
        conflicts_with_all = ["by", "call_graph", "sort", "limit", "json", "field_separator"]
    )]
    html: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    shape: ReportShape,
}

/// The flags for the size and form of a report; `record` has the same flags.
#[derive(Debug, Args)]
pub struct ReportShape {
    /// Sort by samples, period, latency, avg, max, or a key
    #[arg(short, long, value_name = "WHAT", default_value = "samples", help_heading = "Selection")]
    sort: String,
    /// Show N groups of each event
    #[arg(
        short = 'n',
        long,
        short_alias = 'E',
        visible_alias = "entries",
        value_name = "N",
        default_value_t = 20,
        help_heading = "Limits"
    )]
    limit: usize,
    #[command(flatten)]
    form: FormArguments,
}

/// Prints the report of a capture.
pub fn run(arguments: &ReportArguments, out: &mut Output) -> CommandResult {
    arguments.shape.check(arguments.by.as_deref())?;
    arguments.check_function()?;
    let values = arguments.shape.values(arguments.by.as_deref());
    let wanted = |meta: &Meta| arguments.reads(&values, meta);
    let keys = ReportView.keys(&values).map_err(no_answer)?;
    let mut capture = arguments.narrow.read_keys(&arguments.capture.path(), &wanted, &keys)?;
    let mut files = arguments.code.files()?;
    typing::look_up(&mut capture, &keys, &mut files);
    files.say_unread();
    let gates = match (&arguments.html, &arguments.call_graph) {
        (Some(html), _) => arguments.write_page(&capture, html)?,
        (None, Some(function)) => {
            let values = OptionValues::default().with("function", function);
            arguments.shape.show(&CallGraphView, values, &capture, out)?
        }
        (None, None) => arguments.shape.print(&capture, arguments.by.as_deref(), out)?,
    };
    if arguments.html.is_none() && !arguments.shape.is_data() {
        say_left_out(&capture);
    }
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

impl ReportArguments {
    /// Returns the parts of rows that the output is made of.
    fn reads(&self, values: &OptionValues, meta: &Meta) -> Projection {
        let view: &dyn AnyView = match (&self.html, &self.call_graph) {
            // All views are on the page.
            (Some(_), _) => return Projection::EVERYTHING,
            (None, Some(_)) => &CallGraphView,
            (None, None) => self.shape.view(self.by.as_deref()),
        };
        self.shape.reads(view, values, meta)
    }

    /// Refuses a file in the place of the function of `-g`, which is optional: `report -g FILE`.
    fn check_function(&self) -> Result<(), Failure> {
        match &self.call_graph {
            Some(function) if !self.capture.is_named() && Path::new(function).is_file() => {
                let why = format!("-g takes {function} as the name of a function, and it is a file");
                Err(Failure::new(ExitClass::Usage, why)
                    .advise(format!("Write the file first: precise report {function} -g")))
            }
            _ => Ok(()),
        }
    }

    /// Writes the HTML page.
    fn write_page(&self, capture: &Capture, html: &Path) -> Result<Option<Vec<GateResult>>, Failure> {
        let mut files = self.code.files()?;
        let mut input = Input { file: named(&self.capture.path()), ..Input::of(capture, &mut files) };
        let text = html::page(&mut input).map_err(no_answer)?;
        write_file(html, text.as_bytes())?;
        if html != Path::new("-") {
            say(&format!("wrote {}", html.display()));
        }
        files.say_unread();
        Ok(self.shape.gates(capture))
    }
}

impl ReportShape {
    /// Checks the options that can be checked without a capture, before a run starts.
    pub fn check(&self, by: Option<&str>) -> Result<(), Failure> {
        ReportView.check(&self.values(by)).map_err(no_answer)
    }

    /// Returns whether the report is for a program: JSON or CSV.
    pub fn is_data(&self) -> bool {
        !self.form.form().is_text()
    }

    /// Returns whether there are gates.
    pub fn has_gates(&self) -> bool {
        self.form.has_gates()
    }

    /// Returns the parts of rows that what [`Self::print`] prints without `by` is made of.
    pub fn reads_printed(&self, meta: &Meta) -> Projection {
        self.reads(self.view(None), &self.values(None), meta)
    }

    /// Returns the parts of rows that a view and the gates are made of.
    fn reads(&self, view: &dyn AnyView, values: &OptionValues, meta: &Meta) -> Projection {
        view.reads(values, meta).map_or(Projection::EVERYTHING, |all| all.and(self.form.reads()))
    }

    /// Evaluates the gates for a report that is not printed.
    pub fn gates(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        self.form.gates(capture)
    }

    /// Returns the options of the report.
    fn values(&self, by: Option<&str>) -> OptionValues {
        let values = OptionValues::default().with("sort", &self.sort).with("limit", &self.limit.to_string());
        match by {
            Some(by) => values.with("by", by),
            None => values,
        }
    }

    /// Returns the view that is printed: the report, if it is grouped by `by`, or the summary.
    fn view(&self, by: Option<&str>) -> &'static dyn AnyView {
        // CSV is always a single table, because further tables would have other columns.
        if by.is_none() && !self.form.form().is_csv() { &SummaryView } else { &ReportView }
    }

    /// Prints a view and returns the results of the gates. The caller fails on unmet gates after it
    /// has printed everything else.
    fn show(
        &self,
        view: &dyn AnyView,
        values: OptionValues,
        capture: &Capture,
        out: &mut Output,
    ) -> Result<Option<Vec<GateResult>>, Failure> {
        let values = values.with("limit", &self.limit.to_string());
        let mut code = LocalFiles::here();
        let answer = view.answer(&mut Input::of(capture, &mut code), &values).map_err(no_answer)?;
        let gates = self.form.gates(capture);
        let form = self.form.form();
        form.print_answer(gates.as_deref(), out, &*answer, capture.meta.selection.as_ref())?;
        if form.is_csv() {
            say_few(capture);
        }
        Ok(gates)
    }

    /// Prints the report of a capture in the requested form: grouped by `by`, or else the summary.
    /// Returns the results of the gates.
    pub fn print(
        &self,
        capture: &Capture,
        by: Option<&str>,
        out: &mut Output,
    ) -> Result<Option<Vec<GateResult>>, Failure> {
        self.show(self.view(by), self.values(by), capture, out)
    }
}
