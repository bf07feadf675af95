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
use precise::text::stream_chain::{chain_text, perf_line};
use precise::text::stream_json::stream_json;
use precise::text::stream_text::StreamText;

use super::{
    CommandResult, Output,
    call_graph::ChainArguments,
    ended,
    output::{self, say},
    plan_failure::{missing_field, plan_failure},
    sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    values,
};

/// The text of `-g`.
const CHAINS: &str = "\
Print the call chain of each sample

Without --fields, samples are printed as `perf script` prints them, for programs that read that. \
Stacks are copied with each sample and unwound here; with --call-graph fp, the kernel follows frame \
pointers and no stack is copied.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
#[command(mut_arg("chains", |arg| arg.help("Print the call chain of each sample").long_help(CHAINS)))]
pub struct ScriptArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// Print these fields, in this order [default: all fields that the event has]
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', help_heading = OUTPUT)]
    fields: Vec<String>,
    /// Print one JSON object per sample, one per line
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[command(flatten)]
    chains: ChainArguments,
    /// Copy at most BYTES of each stack [default: 16K]
    ///
    /// A chain whose frames lie above the copy ends there.
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    stack_copy: Option<u64>,
    /// Stop after N samples
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count, help_heading = LIMITS)]
    samples: Option<u64>,
    /// Set the size of the ring of each CPU and event, in pages (a power of two) [default: 128]
    ///
    /// A page holds 16 to 68 samples. A larger ring tolerates longer bursts. With -g the default is
    /// 1024: a sample takes four pages.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    ring_pages: Option<u64>,
    /// Write the account of all samples to this file, as one line of JSON
    ///
    /// `-` prints it after the last sample.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    account: Option<PathBuf>,
    /// Print only the samples, unless some are missing
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

impl ScriptArguments {
    /// Returns whether samples are printed as `perf script` prints them.
    fn as_perf(&self) -> bool {
        self.chains.are_wanted() && self.fields.is_empty() && !self.json
    }
}

/// What `perf script` prints of a sample with a call chain.
const PERF_FIELDS: [StreamField; 9] = [
    StreamField::Comm,
    StreamField::Thread,
    StreamField::Tid,
    StreamField::Cpu,
    StreamField::Time,
    StreamField::Period,
    StreamField::Event,
    StreamField::Ip,
    StreamField::Symbol,
];

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
    let sink = Lines::new(&fields, arguments.json, arguments.as_perf());
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
    let mut asked = asked.map_err(|error| Failure::new(ExitClass::Usage, error.to_string()))?;
    if arguments.as_perf() {
        asked.extend(PERF_FIELDS);
    }
    // A number that does not fit becomes one that is larger than any ring, and is rejected later.
    let chains = arguments.chains.are_wanted();
    let ring_pages = match arguments.ring_pages {
        Some(pages) => usize::try_from(pages).unwrap_or(usize::MAX),
        None if chains => plan::RING_PAGES_OF_CHAINS,
        None => plan::RING_PAGES,
    };
    let stack_copy =
        arguments.stack_copy.map_or(plan::STACK_COPY, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let streaming =
        Streaming { ring_pages, samples: arguments.samples, chains, stack_copy, ..Streaming::default() };
    // Lines of the command would look like samples.
    let builder = arguments.selection.plan()?.stream(streaming).output_apart(true);
    let plan = arguments.chains.method(builder).build().map_err(plan_failure)?;
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
    /// As `perf script` prints samples with call chains.
    Perf,
    Json(Vec<StreamField>),
}

impl Lines {
    fn new(fields: &[StreamField], json: bool, perf: bool) -> Self {
        let format = match (json, perf) {
            (true, _) => LineFormat::Json(fields.to_vec()),
            (false, true) => LineFormat::Perf,
            (false, false) => LineFormat::Text(StreamText::new(fields)),
        };
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
                text.line(sample) + &chain_text(sample)
            }
            LineFormat::Perf => perf_line(sample) + &chain_text(sample),
            LineFormat::Json(fields) => stream_json(fields, sample)?,
        };
        self.out.write_all(line.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
