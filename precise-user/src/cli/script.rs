//! `precise script`.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use precise::error::{ExitClass, Failure};
use precise::render::number;
use precise::run::kill_switch;
use precise::run::plan::{self, Plan, Streaming};
use precise::stream::live::Started;
use precise::stream::{NamedSample, Sink, StreamField, choose_fields, live};
use precise::text::stream_account::{account_json, account_text};
use precise::text::stream_json::stream_json;
use precise::text::stream_text::StreamText;

use super::{
    CommandResult, Output, ended,
    output::{self, say},
    plan_failure::{missing_field, plan_failure},
    sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    values,
};

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
pub struct ScriptArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// Print these fields, in this order [default: all fields that the event has]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', help_heading = OUTPUT)]
    fields: Vec<String>,
    /// Print one JSON object per sample, one per line
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Stop after N samples
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count, help_heading = LIMITS)]
    samples: Option<u64>,
    /// Set the size of the ring of each CPU and event, in pages (a power of two)
    ///
    /// A page holds 16 to 68 samples. A larger ring tolerates longer bursts.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        default_value_t = plan::RING_PAGES as u64,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    ring_pages: u64,
    /// Write the account of all samples to this file, as one line of JSON
    ///
    /// `-` prints it after the last sample.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    account: Option<PathBuf>,
    /// Print only the samples, unless some are missing
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
Examples:
  precise script -e loads --min-latency 200 -- ./program
  precise script -a --json -n 1000 > samples.jsonl
  precise script -e page-faults --fields time,comm,addr,sym -p 4711";

fn after_long_help() -> String {
    let names: Vec<&str> = StreamField::all().map(StreamField::name).collect();
    format!("{AFTER_HELP}\n\nFields: {}.", names.join(", "))
}

/// Streams samples, and prints the account of where they went.
pub fn run(arguments: &ScriptArguments, out: &mut Output) -> CommandResult {
    let (plan, fields) = plan(arguments)?;
    if !arguments.quiet {
        let events: Vec<&str> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
        say(&format!("streaming {} of {}. Press Ctrl-C to stop", events.join(", "), plan.words()));
    }
    let sink = Lines::new(&fields, arguments.json);
    let quiet = arguments.quiet;
    let finished = sample(live::run(&plan, &fields, sink, |started| announce(&started, quiet)))?;

    if !quiet || !finished.accounts.iter().all(precise::stream::Account::is_complete) {
        finished.notes.iter().for_each(|note| say(note));
        // The lines follow a prefix on standard error, so they must be narrower.
        let mut options = out.text;
        options.width = options.width.saturating_sub("precise: ".len());
        options.style = precise::render::Style::plain();
        say(&account_text(&finished.accounts, finished.cpus, &options));
    }
    if let Some(file) = &arguments.account {
        let json = account_json(&finished.accounts, finished.cpus, &finished.notes).map_err(|error| {
            Failure::new(ExitClass::Failed, format!("cannot write the account as JSON: {error}"))
        })?;
        if file == Path::new("-") {
            out.print(&json)?;
        } else {
            output::write_file(file, json.as_bytes())?;
        }
    }
    if let Some(why) = &finished.stopped {
        return Err(kill_switch::ended(why).into());
    }
    ended(finished.accounts.iter().map(|account| &account.event), finished.command)
}

fn announce(started: &Started, quiet: bool) {
    if !quiet {
        let bytes = number::short(started.ring_bytes as u64);
        say(&format!("memory for the rings: {bytes}B (fixed)"));
        started.findings.iter().for_each(|finding| say(finding));
    }
}

/// Returns the plan, and the requested fields. Without a request, these are the fields of the
/// events that cost nothing extra.
fn plan(arguments: &ScriptArguments) -> Result<(Plan, Vec<StreamField>), Failure> {
    let asked = arguments.fields.iter().map(|word| StreamField::parse(word)).collect::<Result<Vec<_>, _>>();
    let asked = asked.map_err(|error| Failure::new(ExitClass::Usage, error.to_string()))?;
    // A number that does not fit becomes one that is larger than any ring, and is rejected later.
    let ring_pages = usize::try_from(arguments.ring_pages).unwrap_or(usize::MAX);
    let streaming = Streaming { ring_pages, samples: arguments.samples, ..Streaming::default() };
    // Lines of the command would look like samples.
    let builder = arguments.selection.plan()?.stream(streaming).output_apart(true);
    let plan = builder.build().map_err(plan_failure)?;
    choose_fields(plan, &asked, arguments.json).map_err(|error| missing_field(&error))
}

/// Standard output with one line per sample.
struct Lines {
    out: io::BufWriter<io::Stdout>,
    format: LineFormat,
    begun: bool,
}

enum LineFormat {
    Text(StreamText),
    Json(Vec<StreamField>),
}

impl Lines {
    fn new(fields: &[StreamField], json: bool) -> Self {
        let format =
            if json { LineFormat::Json(fields.to_vec()) } else { LineFormat::Text(StreamText::new(fields)) };
        Self { out: io::BufWriter::with_capacity(1 << 16, io::stdout()), format, begun: false }
    }
}

impl Sink for Lines {
    fn put(&mut self, sample: &NamedSample<'_>) -> io::Result<()> {
        let line = match &mut self.format {
            LineFormat::Text(text) => {
                if !std::mem::replace(&mut self.begun, true) {
                    let header = text.header();
                    self.out.write_all(header.as_bytes())?;
                }
                text.line(sample)
            }
            LineFormat::Json(fields) => stream_json(fields, sample)?,
        };
        self.out.write_all(line.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
