//! `precise skid`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        gates::GateResult,
        skid::{self, SkidOptions},
    },
};

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct SkidArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Show this many functions, and ten times as many lines
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 3)]
    limit: usize,
    #[command(flatten)]
    code: CodeArguments,
}

/// Shows how far ordinary samples are off.
pub fn run(arguments: &SkidArguments, out: &mut Output) -> Outcome {
    let options = SkidOptions { limit: arguments.limit, ..SkidOptions::default() };
    let capture = arguments.view.capture()?;
    let skid = skid::skid(&capture, &options, &mut arguments.code.files()).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::skid::text::skid_text(&skid, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&skid, gates),
        csv: |separator: &str| precise::views::skid::text::skid_csv(&skid, separator),
    };
    arguments.view.print(&capture, out, printers)
}
