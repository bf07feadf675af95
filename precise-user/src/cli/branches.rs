//! `precise branches`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        branches::{self, BranchOptions},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct BranchesArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Show this many branches
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    code: CodeArguments,
}

/// Shows branches.
pub fn run(arguments: &BranchesArguments, out: &mut Output) -> Outcome {
    let options = BranchOptions { limit: arguments.limit, ..BranchOptions::default() };
    let capture = arguments.view.capture()?;
    let mut code = arguments.code.files();
    let view = branches::branches(&capture, &options, &mut code).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::branches::text::branches_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::front_csv::branches_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
