//! `precise archive`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use precise::archive::{self, Label, Place};

use super::{Outcome, Output, form::json};

const AFTER_HELP: &str = "\
A pair of captures, with precision and without, and where they may lie:
  precise record -e skid -o pair.parquet -- ./program
  precise archive --label deploy-41 -i pair.parquet s3://bucket/profiles
  precise diff s3://bucket/profiles/deploy-41 s3://bucket/profiles/deploy-42

Credentials are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY;
AWS_REGION and AWS_ENDPOINT_URL say where the store is.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ArchiveArguments {
    /// What they are kept under, such as a deploy's id
    #[arg(short, long, value_name = "LABEL", value_parser = Label::parse)]
    label: Label,
    /// A capture; several may be given
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: Vec<PathBuf>,
    /// A folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Keeps captures.
pub fn run(arguments: &ArchiveArguments, out: &mut Output) -> Outcome {
    let kept = archive::keep(&Place::parse(&arguments.place)?, &arguments.label, &arguments.input)?;
    let printed = if arguments.json {
        json(&kept, None)?
    } else {
        precise::text::archive_text::archive_text(&kept, &out.text)
    };
    out.print(&printed)?;
    Ok(ExitCode::SUCCESS)
}
