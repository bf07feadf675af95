//! `precise tlb`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        gates::GateResult,
        tlb::{self, TlbOptions},
    },
};

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, keys, no_answer},
};

#[derive(Debug, Args)]
pub struct TlbArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Whose page walks to count: function, line, process, variable, page, …; function where it is known
    #[arg(long, value_name = "KEYS")]
    by: Option<String>,
    /// Show this many groups
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
}

/// Shows page walks.
pub fn run(arguments: &TlbArguments, out: &mut Output) -> Outcome {
    let options = TlbOptions {
        by: keys(arguments.by.as_deref())?,
        limit: Some(arguments.limit),
        ..TlbOptions::default()
    };
    let capture = arguments.view.capture()?;
    let view = tlb::tlb(&capture, &options).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::tlb::text::tlb_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::views_csv::tlb_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
