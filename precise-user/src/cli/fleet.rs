//! `precise fleet`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::asking::now_ns;
use precise::fleet::{self, CompactOptions, FleetDay, FleetHour};
use precise::text::{fleet_text::compacted_text, schema::CompactedDocument};

use super::fleet_ask::{
    self, FleetDiffArguments, FleetLatencyArguments, FleetReportArguments, FleetTypesArguments,
};
use super::{CommandResult, Output, form::json, values::duration, values::size};

const AFTER_HELP: &str = "\
Examples:
  precise fleet compact s3://bucket/profiles              what came in the last 24 h
  precise fleet report s3://bucket/profiles               the services of the last 24 h
  precise fleet report s3://bucket/profiles --service shop/web
  precise fleet latency s3://bucket/profiles --service shop/web
  precise fleet types s3://bucket/profiles --service shop/web
  precise fleet diff s3://bucket/profiles --before 2026-11-24 --after 2026-11-25

The tables are Parquet files below PLACE/v1. docs/fleet.md describes them and has
queries for DuckDB.";

const AFTER_COMPACT_HELP: &str = "\
Examples:
  precise fleet compact s3://bucket/profiles              what came in the last 24 h
  precise fleet compact --since 2026-11-01 ./profiles     … since a day
  precise fleet compact --hour 2026-11-24T19 ./profiles   one hour, even if it is not over

Any number of these may run at the same time, and be ended at any time.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
pub struct FleetArguments {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Add the captures of a place up to tables by hour and day
    Compact(CompactArguments),
    /// Show where the samples of many machines are
    Report(FleetReportArguments),
    /// Show how long the memory accesses of many machines take
    Latency(FleetLatencyArguments),
    /// Show which types and fields the samples of many machines access
    Types(FleetTypesArguments),
    /// Show what changed on many machines from one time to another
    Diff(FleetDiffArguments),
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_COMPACT_HELP)]
struct CompactArguments {
    /// Folder or s3://BUCKET/PREFIX that captures are archived in
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Compact this hour of UTC, such as 2026-11-24T19, even if it is not over, and no day
    #[arg(long, value_name = "HOUR", value_parser = hour, conflicts_with = "since")]
    hour: Option<FleetHour>,
    /// Compact the hours of captures that were written since then: a duration, a day or an hour
    ///
    /// Hours are compacted ten minutes after their end, and days ten minutes after theirs.
    #[arg(long, value_name = "TIME", value_parser = since, default_value = "24h")]
    since: Since,
    /// Hold at most about this many bytes of rows in memory
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "256M")]
    memory: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A time, absolute or before now, in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Since {
    Time(u64),
    Ago(u64),
}

fn hour(text: &str) -> Result<FleetHour, String> {
    FleetHour::parse(text).ok_or_else(|| format!("'{text}' is not an hour, such as 2026-11-24T19"))
}

fn since(text: &str) -> Result<Since, String> {
    let hour = FleetHour::parse(text).or_else(|| FleetDay::parse(text).map(FleetDay::first));
    if let Some(hour) = hour {
        return Ok(Since::Time(hour.start_ns()));
    }
    let wrong = |_| format!("'{text}' is not a time, such as 24h, 2026-11-24 or 2026-11-24T19");
    let ago = duration(text).map_err(wrong)?;
    Ok(Since::Ago(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX)))
}

/// Runs a command of `fleet`.
pub fn run(arguments: &FleetArguments, out: &mut Output) -> CommandResult {
    match &arguments.command {
        FleetCommand::Compact(arguments) => compact(arguments, out),
        FleetCommand::Report(arguments) => fleet_ask::report(arguments, out),
        FleetCommand::Latency(arguments) => fleet_ask::latency(arguments, out),
        FleetCommand::Diff(arguments) => fleet_ask::diff(arguments, out),
        FleetCommand::Types(arguments) => fleet_ask::types(arguments, out),
    }
}

fn compact(arguments: &CompactArguments, out: &mut Output) -> CommandResult {
    let place = ArchivePlace::parse(&arguments.place)?;
    let now_ns = now_ns();
    let since_ns = match arguments.since {
        Since::Time(ns) => ns,
        Since::Ago(ns) => now_ns.saturating_sub(ns),
    };
    let options =
        CompactOptions { hour: arguments.hour, since_ns, now_ns, memory: arguments.memory.max(1 << 20) };
    let done = fleet::compact(&fleet_bucket(&place)?, &options, |_| {})?;
    let printed = if arguments.json {
        json(&CompactedDocument(&done), None)?
    } else {
        compacted_text(&done, &place.to_string(), options.memory, &out.text)
    };
    out.print(&printed)?;
    Ok(ExitCode::SUCCESS)
}
