//! `precise c2c`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        c2c::{self, C2cOptions},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Printers, ViewArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct C2cArguments {
    #[command(flatten)]
    view: ViewArguments,
    #[command(flatten)]
    code: CodeArguments,
    /// Show this many cache lines
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 5)]
    limit: usize,
    /// Rank lines from so many HITM loads on
    #[arg(long, value_name = "NUMBER", default_value_t = C2cOptions::default().min_samples)]
    min_samples: u64,
}

/// Shows the lines that bounce.
pub fn run(arguments: &C2cArguments, out: &mut Output) -> Outcome {
    let options = C2cOptions { limit: Some(arguments.limit), min_samples: arguments.min_samples };
    let capture = arguments.view.capture()?;
    let view = c2c::c2c(&capture, &options, &mut arguments.code.files()).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::c2c::text::c2c_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::c2c::csv::c2c_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
