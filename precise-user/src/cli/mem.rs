//! `precise mem`.

use clap::Args;
use precise::error::{Class, Failure};
use precise::model::keys::Sort;
use precise::render::TextOptions;
use precise::views::gates::GateResult;
use precise::views::mem;
use precise::views::mem::MemOptions;

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, keys, no_answer},
};

#[derive(Debug, Args)]
pub struct MemArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Group by these instead of level, snoop, tlb and locked: function, line, variable, node, …
    #[arg(long, value_name = "KEYS")]
    by: Option<String>,
    /// Sort by samples, period, latency, avg, max, or one of the keys; latency where there is one
    #[arg(short, long, value_name = "WHAT")]
    sort: Option<String>,
    /// Show this many groups of each kind of access
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
}

/// Shows where loads and stores hit.
pub fn run(arguments: &MemArguments, out: &mut Output) -> Outcome {
    let sort = arguments.sort.as_deref().map(Sort::parse).transpose();
    let options = MemOptions {
        by: keys(arguments.by.as_deref())?,
        sort: sort.map_err(|error| Failure::new(Class::Usage, error.to_string()))?,
        limit: Some(arguments.limit),
        ..MemOptions::default()
    };
    let capture = arguments.view.capture()?;
    let mem = mem::mem(&capture, &options).map_err(no_answer)?;
    let printers = Printers {
        text: |text: &TextOptions| precise::views::mem::text::mem_text(&mem, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&mem, gates),
        csv: |separator: &str| precise::views::views_csv::mem_csv(&mem, separator),
    };
    arguments.view.print(&capture, out, printers)
}
