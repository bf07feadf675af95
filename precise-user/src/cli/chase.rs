//! `precise chase`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        chase::{self, ChaseOptions},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct ChaseArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Show this many loads of each event
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    code: CodeArguments,
}

/// Shows what loads wait for.
pub fn run(arguments: &ChaseArguments, out: &mut Output) -> Outcome {
    let options = ChaseOptions { limit: arguments.limit, ..ChaseOptions::default() };
    let capture = arguments.view.capture()?;
    let chase = chase::chase(&capture, &options, &mut arguments.code.files()).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::chase::text::chase_text(&chase, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&chase, gates),
        csv: |separator: &str| precise::views::chase::text::chase_csv(&chase, separator),
    };
    arguments.view.print(&capture, out, printers)
}
