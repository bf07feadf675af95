//! `precise archive`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use precise::archive::{self, ArchivePlace, Label};

use super::{CommandResult, Output, form::json};

const AFTER_HELP: &str = "\
Examples:
  precise archive --label deploy-41 /var/lib/precise
  precise archive --label deploy-41 -i pair.parquet s3://bucket/profiles
  precise diff s3://bucket/profiles/deploy-41 s3://bucket/profiles/deploy-42

S3 credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the
address of the store from AWS_REGION and AWS_ENDPOINT_URL.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ArchiveArguments {
    /// Archive under this label, for example the id of a deploy
    #[arg(short, long, value_name = "LABEL", value_parser = Label::parse)]
    label: Label,
    /// Archive this capture; may be given several times
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: Vec<PathBuf>,
    /// Folder or s3://BUCKET/PREFIX to archive to
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Archives captures.
pub fn run(arguments: &ArchiveArguments, out: &mut Output) -> CommandResult {
    let kept = archive::keep(&ArchivePlace::parse(&arguments.place)?, &arguments.label, &arguments.input)?;
    let printed = if arguments.json {
        json(&kept, None)?
    } else {
        precise::text::archive_text::archive_text(&kept, &out.text)
    };
    out.print(&printed)?;
    Ok(ExitCode::SUCCESS)
}
