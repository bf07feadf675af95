//! `precise serve`.

use std::{net::SocketAddr, process::ExitCode};

use clap::Args;
use precise::error::{Class, Failure};
use precise::render::number;
use precise::run::budget::NamesBudget;
use precise::run::plan::Plan;
use precise::run::{child, kill_switch};
use precise::serve::live::Progress;
use precise::serve::{Hosts, Label, listen, live};

use super::{
    CommandResult, Output,
    aggregating::AggregatingArguments,
    output::say,
    plan_failure::plan_failure,
    sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    values,
};

/// Default number of series. With latencies, each takes 25 lines of the page.
const SERIES: u64 = 500;
/// Maximum number of series. The page has some 50 MB if all of them have latencies.
const MOST_SERIES: u64 = 1 << 14;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
#[command(mut_arg("epoch", |arg| arg
    .help("Read the table at this interval")
    .hide_short_help(false)))]
#[command(mut_arg("duration", |arg| arg.help("Stop after this time [default: run until stopped]")))]
pub struct ServeArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// Listen on this address
    ///
    /// Other machines can reach the metrics only if the address is not a loopback address. There is
    /// no password and no TLS.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7732", help_heading = OUTPUT)]
    listen: SocketAddr,
    /// Accept requests to this host name
    ///
    /// IP addresses and `localhost` are always accepted. On a loopback address, a request to
    /// another name is refused, so that no web page can read the metrics through a browser (DNS
    /// rebinding). On other addresses, every name is accepted unless some are given.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    allow_host: Vec<String>,
    /// Label the series by these keys, or `none`
    ///
    /// `none` makes one series per event.
    #[arg(long, value_name = "KEYS", default_value = "cgroup", help_heading = OUTPUT)]
    by: String,
    /// Keep at most N series
    ///
    /// Samples of further series are added to one that is labelled `(others)`. A series without
    /// samples for ten minutes frees its place.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        default_value_t = SERIES,
        help_heading = LIMITS
    )]
    series: u64,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Print only problems
    #[arg(short, long, help_heading = OUTPUT, hide_short_help = true)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
Examples:
  precise serve -e loads                     latencies by cgroup on http://127.0.0.1:7732/metrics
  precise serve -e loads --by cgroup,node --listen 0.0.0.0:7732";

fn after_long_help() -> String {
    let names: Vec<&str> = Label::all().map(|label| label.key().name()).collect();
    format!("{AFTER_HELP}\n\nKeys of --by: {}.", names.join(", "))
}

/// Samples and answers requests until it is stopped.
pub fn run(arguments: &ServeArguments, _out: &mut Output) -> CommandResult {
    let labels = match arguments.by.as_str() {
        "none" => Vec::new(),
        list => Label::parse_list(list).map_err(|error| Failure::new(Class::Usage, error.to_string()))?,
    };
    let limit = usize::try_from(arguments.series).ok().filter(|_| arguments.series <= MOST_SERIES);
    let limit = limit.ok_or_else(|| {
        Failure::new(Class::Usage, "--series must be at most 16K, which is about 50 MB per request")
    })?;
    let hosts = Hosts::parse(&arguments.allow_host)
        .map_err(|error| Failure::new(Class::Usage, format!("--allow-host: {error}")))?;
    let plan = plan(arguments, &labels)?;
    let quiet = arguments.quiet;
    let ended = sample(async {
        let listening = listen(arguments.listen, hosts)?;
        let address = listening.address;
        let progress = |progress| match progress {
            Progress::Started { .. } if quiet => {}
            Progress::Started { table_bytes, ring_bytes, said } => {
                let events: Vec<_> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
                say(&format!(
                    "serving {} of {} at http://{address}/metrics",
                    events.join(", "),
                    plan.words()
                ));
                let [tables, rings] = [table_bytes, ring_bytes].map(|bytes| number::short(bytes as u64));
                let names = number::short(NamesBudget::of_this_machine().sum() as u64);
                say(&format!(
                    "memory: tables {tables}B, rings {rings}B (fixed); processes and names at most {names}B"
                ));
                said.iter().for_each(|sentence| say(sentence));
            }
            Progress::Note(note) => say(&note),
        };
        live::run(&plan, &labels, limit, listening, progress).await
    })?;
    ended.notes.iter().for_each(|note| say(note));
    if let Some(why) = &ended.stopped {
        return Err(kill_switch::ended(why).into());
    }
    Ok(ExitCode::from(ended.command.map_or(0, child::shell_code)))
}

fn plan(arguments: &ServeArguments, labels: &[Label]) -> Result<Plan, Failure> {
    let dimensions = labels.iter().filter_map(|label| label.dimension()).collect();
    let builder = arguments.aggregating.complete(arguments.selection.plan()?);
    builder.series().dimensions(dimensions).build().map_err(plan_failure)
}
