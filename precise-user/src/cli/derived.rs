//! `precise derived`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{derived, gates::GateResult},
};

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct DerivedArguments {
    #[command(flatten)]
    view: ViewArguments,
}

/// Shows derived events.
pub fn run(arguments: &DerivedArguments, out: &mut Output) -> Outcome {
    let capture = arguments.view.capture()?;
    let view = derived::derived(&capture, None).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::derived::text::derived_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::front_csv::derived_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
