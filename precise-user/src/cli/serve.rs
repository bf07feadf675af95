//! `precise serve`.

use std::{net::SocketAddr, process::ExitCode};

use clap::Args;
use precise::error::{Class, Failure};
use precise::render::number;
use precise::run::plan::Plan;
use precise::run::{child, kill_switch};
use precise::serve::live::Progress;
use precise::serve::{Label, listen, live};

use super::{
    Outcome, Output, aggregating::AggregatingArguments, output::say, plan_failure::plan_failure, sample,
    selection::SelectionArguments, values,
};

/// Series unless asked for otherwise: with latencies, 25 lines of the page each.
const SERIES: u64 = 500;
/// A page of some 50 MB, if all of them have latencies.
const MOST_SERIES: u64 = 1 << 14;

#[derive(Debug, Args)]
#[command(after_help = after_help())]
#[command(mut_arg("epoch", |epoch| epoch.help("Read the table this often: how old the numbers of a page are at most")))]
#[command(mut_arg("duration", |duration| duration.help("End after this long; without it, when somebody ends it")))]
pub struct ServeArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    /// Where to listen. Other machines can ask only where this is an address of theirs as well; there is no password, and no
    /// TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7732")]
    listen: SocketAddr,
    /// The labels of the series, of the keys below; `none` for one series of each event
    #[arg(long, value_name = "KEYS", default_value = "cgroup")]
    by: String,
    /// At most so many series; samples of further ones are in one whose labels are `(others)`. One that has had no samples for
    /// ten minutes makes room
    #[arg(long, value_name = "NUMBER", value_parser = values::size, default_value_t = SERIES)]
    series: u64,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Say nothing but what goes wrong
    #[arg(short, long)]
    quiet: bool,
}

fn after_help() -> String {
    let names: Vec<&str> = Label::all().map(|label| label.key().name()).collect();
    format!("Keys of --by: {}.", names.join(", "))
}

/// Samples and answers until somebody ends it.
pub fn run(arguments: &ServeArguments, _out: &mut Output) -> Outcome {
    let labels = match arguments.by.as_str() {
        "none" => Vec::new(),
        list => Label::parse_list(list).map_err(|error| Failure::new(Class::Usage, error.to_string()))?,
    };
    let limit = usize::try_from(arguments.series).ok().filter(|_| arguments.series <= MOST_SERIES);
    let limit = limit.ok_or_else(|| {
        Failure::new(Class::Usage, "--series is more than 16K: a page of some 50 MB at each request")
    })?;
    let plan = plan(arguments, &labels)?;
    let quiet = arguments.quiet;
    let ended = sample(async {
        let listening = listen(arguments.listen).await?;
        let address = listening.address;
        let progress = |progress| match progress {
            Progress::Started { .. } if quiet => {}
            Progress::Started { table_bytes, ring_bytes, said } => {
                let events: Vec<_> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
                say(&format!(
                    "serving {} of {} at http://{address}/metrics",
                    events.join(", "),
                    plan.target.words()
                ));
                let [tables, rings] = [table_bytes, ring_bytes].map(|bytes| number::short(bytes as u64));
                say(&format!(
                    "the tables take {tables}B of memory, the rings {rings}B, and neither will grow"
                ));
                said.iter().for_each(|sentence| say(sentence));
            }
            Progress::Note(note) => say(&note),
        };
        live::run(&plan, &labels, limit, listening, progress).await
    })?;
    ended.notes.iter().for_each(|note| say(note));
    if let Some(why) = &ended.stopped {
        return Err(kill_switch::ended(why));
    }
    Ok(ExitCode::from(ended.command.map_or(0, child::shell_code)))
}

fn plan(arguments: &ServeArguments, labels: &[Label]) -> Result<Plan, Failure> {
    let dimensions = labels.iter().filter_map(|label| label.dimension()).collect();
    let builder = arguments.aggregating.complete(arguments.selection.plan()?);
    builder.series().dimensions(dimensions).build().map_err(plan_failure)
}
