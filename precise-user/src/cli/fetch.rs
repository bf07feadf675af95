//! `precise fetch`.

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        fetch::{self, FetchOptions},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, keys, no_answer},
};

#[derive(Debug, Args)]
pub struct FetchArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Whose fetches to count: function, line, module, process, cgroup, …
    #[arg(long, value_name = "KEYS")]
    by: Option<String>,
    /// Show this many groups
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
}

/// Shows fetches.
pub fn run(arguments: &FetchArguments, out: &mut Output) -> Outcome {
    let options = FetchOptions {
        by: keys(arguments.by.as_deref())?,
        limit: arguments.limit,
        ..FetchOptions::default()
    };
    let capture = arguments.view.capture()?;
    let view = fetch::fetch(&capture, &options).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::fetch::text::fetch_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::front_csv::fetch_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}
