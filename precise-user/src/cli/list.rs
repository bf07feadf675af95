//! `precise list`.

use std::process::ExitCode;

use clap::Args;
use precise::{
    machine::Root,
    pmu::{Pmus, list},
};

use super::{CommandResult, Output, form::json};

const AFTER_HELP: &str = "\
Examples:
  precise list                               presets, events and what each sample has
  precise list --json | jq '.groups[].title'";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ListArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the presets and events of this machine.
pub fn run(arguments: &ListArguments, out: &mut Output) -> CommandResult {
    let listing = list::list(&Pmus::read(&Root::default()));
    if arguments.json {
        out.print(&json(&precise::text::schema::ListDocument(&listing), None)?)?;
    } else {
        out.print(&listing.to_text(out.text.width))?;
    }
    Ok(ExitCode::SUCCESS)
}
