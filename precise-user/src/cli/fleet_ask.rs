//! `precise fleet report`, `types`, `latency` and `diff`: questions to the tables of a fleet.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::asking::{
    self, CodeTypes, DiffDocument, LatencyDocument, ReportDocument, check_keys_of_diff, check_keys_of_types,
    failed, usual_keys,
};
use precise::error::Failure;
use precise::fleet::{
    FleetBucket, FleetKey, FleetQuestion, FleetSpan, FleetTier, fleet_diff, fleet_latency, fleet_report,
};
use precise::render::TextOptions;
use precise::text::fleet_answers::{diff_csv, diff_text, latency_csv, latency_text, report_csv, report_text};

use super::{CommandResult, Output, code::BinaryArguments, form::json, values};

const AFTER_REPORT_HELP: &str = "\
Examples:
  precise fleet report s3://bucket/profiles                     services of the last 24 h
  precise fleet report PLACE --service shop/web                 … its functions
  precise fleet report PLACE --service shop/web --by node -n 5  … its busiest nodes
  precise fleet report PLACE --last 7d --within 2s              from a sample of the samples

The first lines say who, where, when, and which nodes are missing.";

const AFTER_LATENCY_HELP: &str = "\
Examples:
  precise fleet latency PLACE --service shop/web              by level
  precise fleet latency PLACE --service shop/web --by function
  precise fleet latency PLACE --by none --time 2026-11-24     one line for each event";

const AFTER_TYPES_HELP: &str = "\
Examples:
  precise fleet types PLACE --service shop/web                  its types
  precise fleet types PLACE --service shop/web --by type,field  … and fields
  precise fleet types PLACE --by service,type -n 50

The tables have instructions. The types are read from the programs with their debug information:
those of this machine with the same build ids, or those of the servers in DEBUGINFOD_URLS.";

const AFTER_DIFF_HELP: &str = "\
Examples:
  precise fleet diff PLACE --service shop/web --before 2026-11-24 --after 2026-11-25
  precise fleet diff PLACE --before 2026-11-24T10 --after 2026-11-24T12..2026-11-24T14

A change is one that neither the samples nor the differences between nodes explain.";

/// What every question has.
#[derive(Debug, Args)]
struct AskArguments {
    /// Folder or s3://BUCKET/PREFIX that captures are archived in
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Only this service, as in shop/web; '' for samples without one
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Only this event, as the captures name it
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,
    /// Show N groups of each event
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count, default_value = "20")]
    limit: u64,
    /// Hold at most about this many bytes of groups in memory
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "256M")]
    memory: u64,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print values separated by SEPARATOR, for a spreadsheet: -x,
    #[arg(short = 'x', long, value_name = "SEPARATOR", conflicts_with = "json", help_heading = "Output")]
    field_separator: Option<String>,
}

/// The time of a question.
#[derive(Debug, Args)]
struct WhenArguments {
    /// Ask about the hours before this one: 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = hours, default_value = "24h")]
    last: u32,
    /// Ask about a day or an hour of UTC, or FROM..TO with both included
    #[arg(long, value_name = "SPAN", value_parser = asking::span, conflicts_with = "last")]
    time: Option<FleetSpan>,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_REPORT_HELP)]
pub struct FleetReportArguments {
    #[command(flatten)]
    ask: AskArguments,
    #[command(flatten)]
    when: WhenArguments,
    /// Group by these keys: service, function, module, level, node, cluster, hour, type, field
    /// [default: service, or of one service function,module]
    #[arg(long, value_name = "KEYS", value_parser = asking::key, value_delimiter = ',')]
    by: Vec<FleetKey>,
    /// Read a tier of days with fewer samples: one that takes this long (2s), or that is this good
    /// (0.5%: no share that is shown is less certain)
    #[arg(long, value_name = "TIME|PERCENT", value_parser = within, conflicts_with = "exact")]
    within: Option<FleetTier>,
    /// Read all samples; the default
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    binaries: BinaryArguments,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_LATENCY_HELP)]
pub struct FleetLatencyArguments {
    #[command(flatten)]
    ask: AskArguments,
    #[command(flatten)]
    when: WhenArguments,
    /// Group by these keys: level, service, function, module, cluster, hour; or none
    #[arg(long, value_name = "KEYS", value_parser = latency_keys, default_value = "level")]
    by: Keys,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_DIFF_HELP)]
pub struct FleetDiffArguments {
    #[command(flatten)]
    ask: AskArguments,
    /// The time before: a day or an hour of UTC, or FROM..TO with both included
    #[arg(long, value_name = "SPAN", value_parser = asking::span)]
    before: FleetSpan,
    /// The time after
    #[arg(long, value_name = "SPAN", value_parser = asking::span)]
    after: FleetSpan,
    /// Group by these keys: service, function, module, level, node, cluster, type, field
    /// [default: service, or of one service function,module]
    #[arg(long, value_name = "KEYS", value_parser = asking::key, value_delimiter = ',')]
    by: Vec<FleetKey>,
    #[command(flatten)]
    binaries: BinaryArguments,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_TYPES_HELP)]
pub struct FleetTypesArguments {
    #[command(flatten)]
    ask: AskArguments,
    #[command(flatten)]
    when: WhenArguments,
    /// Group by these keys: type, field, service, function, module, hour
    #[arg(long, value_name = "KEYS", value_parser = asking::key, value_delimiter = ',', default_value = "type")]
    by: Vec<FleetKey>,
    #[command(flatten)]
    binaries: BinaryArguments,
}

/// Keys; possibly none.
#[derive(Clone, Debug)]
struct Keys(Vec<FleetKey>);

fn hours(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is not a number of hours or days, such as 24h or 7d");
    let seconds = values::duration(text).map_err(|_| wrong())?.as_secs_f64();
    let hours = seconds / 3600.0;
    if (1.0..=24.0 * 366.0).contains(&hours) && hours.fract() == 0.0 {
        Ok(hours as u32)
    } else {
        Err(wrong())
    }
}

fn latency_keys(text: &str) -> Result<Keys, String> {
    asking::latency_keys(text).map(Keys)
}

fn within(text: &str) -> Result<FleetTier, String> {
    let wrong = || format!("'{text}' is neither a time, such as 2s, nor an interval, such as 0.5%");
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.parse().map_err(|_| wrong())?;
        return if (0.0..=100.0).contains(&percent) {
            Ok(FleetTier::Good(percent / 100.0))
        } else {
            Err(wrong())
        };
    }
    values::duration(text).map(FleetTier::Within).map_err(|_| wrong())
}

/// A place that was opened, and what is asked of it.
struct Asking {
    bucket: Arc<dyn FleetBucket>,
    question: FleetQuestion,
    place: String,
}

impl AskArguments {
    fn open(&self, span: FleetSpan, by: &[FleetKey]) -> Result<Asking, Failure> {
        let place = ArchivePlace::parse(&self.place)?;
        let question = FleetQuestion {
            service: self.service.clone(),
            event: self.event.clone(),
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            memory: self.memory.max(1 << 16),
            ..FleetQuestion::about(span, by.to_vec())
        };
        Ok(Asking { bucket: fleet_bucket(&place)?, question, place: place.to_string() })
    }

    /// Returns the keys that were given, or those of a service or of all services.
    fn keys(&self, by: &[FleetKey]) -> Vec<FleetKey> {
        if by.is_empty() { usual_keys(self.service.as_deref()) } else { by.to_vec() }
    }

    /// Prints an answer in the form that was asked for.
    fn print(
        &self,
        out: &mut Output,
        document: &dyn Fn() -> Result<String, Failure>,
        csv: &dyn Fn(&str) -> String,
        text: &dyn Fn(&TextOptions) -> String,
    ) -> CommandResult {
        match &self.field_separator {
            _ if self.json => out.print(&document()?)?,
            Some(separator) => out.print(&csv(separator))?,
            None => {
                let text = text(&out.text);
                out.page(&text)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl WhenArguments {
    fn span(&self) -> FleetSpan {
        self.time.unwrap_or_else(|| FleetSpan::last(self.last, asking::now_ns()))
    }
}

impl Asking {
    /// Answers with where the samples are, and prints it.
    fn report(&self, ask: &AskArguments, binaries: &BinaryArguments, out: &mut Output) -> CommandResult {
        let start = Instant::now();
        let clock = || -> Duration { start.elapsed() };
        let mut files = binaries.files()?;
        let answer = fleet_report(&self.bucket, &self.question, &mut CodeTypes(&mut files), clock);
        let answer = answer.map_err(|error| failed(&self.place, error))?;
        files.say_unread();
        ask.print(
            out,
            &|| json(&ReportDocument(&answer), None),
            &|separator| report_csv(&answer, separator),
            &|options| report_text(&answer, options),
        )
    }
}

/// Shows where the samples of a fleet are.
pub fn report(arguments: &FleetReportArguments, out: &mut Output) -> CommandResult {
    let FleetReportArguments { ask, when, by, within, exact: _, binaries } = arguments;
    let mut asking = ask.open(when.span(), &ask.keys(by))?;
    asking.question.tier = within.unwrap_or_default();
    asking.report(ask, binaries, out)
}

/// Shows how long the accesses of a fleet take.
pub fn latency(arguments: &FleetLatencyArguments, out: &mut Output) -> CommandResult {
    let FleetLatencyArguments { ask, when, by } = arguments;
    let asking = ask.open(when.span(), &by.0)?;
    let answer =
        fleet_latency(&asking.bucket, &asking.question).map_err(|error| failed(&asking.place, error))?;
    ask.print(
        out,
        &|| json(&LatencyDocument(&answer), None),
        &|separator| latency_csv(&answer, separator),
        &|options| latency_text(&answer, options),
    )
}

/// Shows what changed in a fleet.
pub fn diff(arguments: &FleetDiffArguments, out: &mut Output) -> CommandResult {
    let FleetDiffArguments { ask, before, after, by, binaries } = arguments;
    let by = ask.keys(by);
    check_keys_of_diff(&by)?;
    let asking = ask.open(*before, &by)?;
    let mut files = binaries.files()?;
    let types = &mut CodeTypes(&mut files);
    let answer = fleet_diff(&asking.bucket, &asking.question, [*before, *after], types)
        .map_err(|error| failed(&asking.place, error))?;
    files.say_unread();
    ask.print(
        out,
        &|| json(&DiffDocument(&answer), None),
        &|separator| diff_csv(&answer, separator),
        &|options| diff_text(&answer, options),
    )
}

/// Shows which types and fields the samples of a fleet access.
pub fn types(arguments: &FleetTypesArguments, out: &mut Output) -> CommandResult {
    let FleetTypesArguments { ask, when, by, binaries } = arguments;
    check_keys_of_types(by)?;
    let asking = ask.open(when.span(), by)?;
    asking.report(ask, binaries, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_tiers_are_parsed() {
        assert_eq!((hours("24h"), hours("7d"), hours("90m").is_err()), (Ok(24), Ok(168), true));
        assert!(hours("0s").is_err() && hours("1000d").is_err());
        assert_eq!(within("2s"), Ok(FleetTier::Within(Duration::from_secs(2))));
        assert_eq!(within("0.5%"), Ok(FleetTier::Good(0.005)));
        assert!(within("soon").is_err() && within("200%").is_err());
    }
}
