//! `precise annotate`.

use clap::Args;
use precise::render::TextOptions;
use precise::views::annotate;
use precise::views::annotate::AnnotateOptions;
use precise::views::annotate::text::Detail;
use precise::views::gates::GateResult;

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct AnnotateArguments {
    /// Functions, by their name or a part of it; without any, the hottest
    #[arg(value_name = "FUNCTION")]
    functions: Vec<String>,
    #[command(flatten)]
    view: ViewArguments,
    /// Show a line of source each, the hottest first, and no instructions
    #[arg(short, long)]
    lines: bool,
    /// Show every instruction, not only those near samples
    #[arg(long, conflicts_with = "lines")]
    all: bool,
    /// Show this many functions of each event
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 3)]
    limit: usize,
    #[command(flatten)]
    code: CodeArguments,
}

/// Shows code with what was sampled beside it.
pub fn run(arguments: &AnnotateArguments, out: &mut Output) -> Outcome {
    let options = AnnotateOptions {
        functions: arguments.functions.clone(),
        limit: arguments.limit,
        ..AnnotateOptions::default()
    };
    let capture = arguments.view.capture()?;
    let annotation =
        annotate::annotate(&capture, &options, &mut arguments.code.files()).map_err(no_answer)?;
    let detail = match (arguments.lines, arguments.all) {
        (true, _) => Detail::Lines,
        (false, true) => Detail::All,
        (false, false) => Detail::Hot,
    };
    let printers = Printers {
        text: |text: &TextOptions| precise::views::annotate::text::annotate_text(&annotation, detail, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&annotation, gates),
        csv: |separator: &str| {
            precise::views::annotate::csv::annotate_csv(&annotation, arguments.lines, separator)
        },
    };
    arguments.view.print(&capture, out, printers)
}
