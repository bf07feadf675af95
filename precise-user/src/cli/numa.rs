//! `precise numa`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{gates::GateResult, numa},
};

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct NumaArguments {
    #[command(flatten)]
    view: ViewArguments,
}

/// Shows who reads from which node.
pub fn run(arguments: &NumaArguments, out: &mut Output) -> Outcome {
    let capture = arguments.view.capture()?;
    let view = numa::numa(&capture, None).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::numa::text::numa_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::views_csv::numa_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
