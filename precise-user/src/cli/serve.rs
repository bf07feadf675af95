//! `precise serve`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{net::SocketAddr, process::ExitCode, time::Duration};

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use precise::archive::{self, ArchivePlace, keep_rolling};
use precise::error::{ExitClass, Failure};
use precise::render::number;
use precise::run::budget::NamesBudget;
use precise::run::plan::Plan;
use precise::run::{child, kill_switch};
use precise::serve::live::{ServeProgress, Service};
use precise::serve::{
    AccessPolicy, CapturesOptions, Hosts, Painter, PushOptions, Retention, SeriesLabel, Tls, Token, Upload,
    WINDOW, listen, live,
};
use precise::top::WindowSnapshot;
use precise::views::code::NoCode;
use precise::views::html::{LiveNow, live_page};
use precise::views::idle;
use precise::views::view::Input;

use super::{
    CommandResult, Output,
    aggregating::AggregatingArguments,
    call_graph::AggregatedChainArguments,
    output::{Appearance, say},
    plan_failure::plan_failure,
    push::PushArguments,
    sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    settings, values,
};

/// Heading for who may ask.
const CLIENTS: &str = "Clients";
/// Heading for captures.
const CAPTURES: &str = "Captures";

/// Default number of series. With latencies, each takes 25 lines of the page.
const SERIES: u64 = 500;
/// Maximum number of series. The page has some 50 MB if all of them have latencies.
const MOST_SERIES: u64 = 1 << 14;
/// After how many seconds a browser loads the page again.
const REFRESH: u32 = 10;

/// What the short help leaves out here.
const RARE: [&str; 3] = ["min_latency", "precise", "cpu"];

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
#[command(mut_arg("epoch", |arg| arg.help("Read the table at this interval [default: 1s]")))]
#[command(mut_args(|arg| if RARE.contains(&arg.get_id().as_str()) { arg.hide_short_help(true) } else { arg }))]
#[command(mut_arg("duration", |arg| arg.help("Stop after this time [default: run until stopped]")))]
pub struct ServeArguments {
    /// Read settings from this TOML file
    ///
    /// Each key is the long name of a flag. A flag on the command line takes precedence over the
    /// file. --print-config shows all keys.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the settings, print what is wrong with them, and do not sample
    #[arg(long, hide_short_help = true)]
    check_config: bool,
    /// Print a file with all settings and their defaults
    #[arg(long, hide_short_help = true)]
    print_config: bool,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    clients: ClientArguments,
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
        help_heading = LIMITS,
        hide_short_help = true
    )]
    series: u64,
    #[command(flatten)]
    chains: AggregatedChainArguments,
    #[command(flatten)]
    captures: CaptureArguments,
    #[command(flatten)]
    push: PushArguments,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Print only problems
    #[arg(short, long, help_heading = OUTPUT, hide_short_help = true)]
    quiet: bool,
}

/// The flags that say who may ask, and where.
#[derive(Debug, Args)]
struct ClientArguments {
    /// Listen on this address
    ///
    /// An address that other machines can reach needs --tls-cert, --tls-key and --token-file.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7732", help_heading = OUTPUT)]
    listen: SocketAddr,
    /// Accept requests to this host name
    ///
    /// IP addresses and `localhost` are always accepted. On a loopback address, a request to
    /// another name is refused, so that no web page can read the metrics through a browser (DNS
    /// rebinding). On other addresses, every name is accepted unless some are given.
    #[arg(long, value_name = "NAME", help_heading = CLIENTS, hide_short_help = true)]
    allow_host: Vec<String>,
    /// Serve HTTPS with the certificates in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = CLIENTS, hide_short_help = true)]
    tls_cert: Option<PathBuf>,
    /// Use the key in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = CLIENTS, hide_short_help = true)]
    tls_key: Option<PathBuf>,
    /// Answer only requests with the token in this file (mode 600)
    ///
    /// Requests have it as `Authorization: Bearer TOKEN`, or as the password of a browser. /healthz
    /// and /readyz need no token.
    #[arg(long, value_name = "FILE", help_heading = CLIENTS, hide_short_help = true)]
    token_file: Option<PathBuf>,
}

/// The flags of rolling captures.
#[derive(Debug, Args)]
struct CaptureArguments {
    /// Keep the samples as captures in this folder, too
    ///
    /// The samples are then grouped as `precise record` groups them, so that every view can read
    /// the captures and the page / shows functions.
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT)]
    captures: Option<PathBuf>,
    /// Complete a capture after this time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::duration,
        default_value = "10m",
        help_heading = CAPTURES,
        hide_short_help = true
    )]
    capture_length: Duration,
    /// Remove the oldest captures if all take more than BYTES
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        default_value = "1G",
        help_heading = CAPTURES,
        hide_short_help = true
    )]
    keep_bytes: u64,
    /// Remove captures that are older than this
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::duration,
        default_value = "7d",
        help_heading = CAPTURES,
        hide_short_help = true
    )]
    keep_age: Duration,
    /// Archive each capture to this folder or s3://BUCKET/PREFIX
    ///
    /// A label is made for each host and day: LABEL-HOST-20261124. What the store does not take
    /// after some attempts stays in the folder of the captures.
    #[arg(long, value_name = "PLACE", requires = "captures", help_heading = CAPTURES, hide_short_help = true)]
    archive: Option<PathBuf>,
    /// Begin the labels in the archive with this word
    #[arg(
        long,
        value_name = "LABEL",
        value_parser = archive::Label::parse,
        default_value = "serve",
        help_heading = CAPTURES,
        hide_short_help = true
    )]
    label: archive::Label,
}

const AFTER_HELP: &str = "\
Examples:
  precise serve -e loads                     latencies by cgroup on http://127.0.0.1:7732/metrics
  precise serve --captures /var/lib/precise  captures of 10 minutes each, beside the metrics
  precise serve -g --push pyroscope=URL      profiles with callers, each minute
  precise serve --config /etc/precise/serve.toml";

fn after_long_help() -> String {
    let names: Vec<&str> = SeriesLabel::all().map(|label| label.key().name()).collect();
    format!("{AFTER_HELP}\n\nKeys of --by: {}.", names.join(", "))
}

/// Returns whether these arguments take samples.
pub fn samples(matches: &ArgMatches) -> bool {
    !matches.get_flag("check_config") && !matches.get_flag("print_config")
}

/// Samples and answers requests until it is stopped.
pub fn run(arguments: &ServeArguments, out: &mut Output) -> CommandResult {
    if arguments.print_config {
        out.print(&settings::template(&command()))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &arguments.config {
        Some(file) => {
            let words: Vec<OsString> = std::env::args_os().skip(2).collect();
            let matches = settings::parse(&command(), &words, file)?;
            let arguments = ServeArguments::from_arg_matches(&matches);
            checked(&arguments.map_err(|error| super::view::usage(&error))?, out)
        }
        None => checked(arguments, out),
    }
}

/// Returns the command with its flags.
fn command() -> Command {
    Appearance::add(ServeArguments::augment_args(Command::new("serve")))
}

fn checked(arguments: &ServeArguments, out: &mut Output) -> CommandResult {
    let ready = Ready::of(arguments)?;
    if arguments.check_config {
        let file = arguments.config.as_deref().unwrap_or(Path::new("the command line")).display();
        out.print(&format!("{file}: no problem was found"))?;
        return Ok(ExitCode::SUCCESS);
    }
    serve(arguments, ready)
}

/// What is made of the arguments before anything is opened.
struct Ready {
    plan: Plan,
    labels: Vec<SeriesLabel>,
    series: usize,
    hosts: Hosts,
    access: AccessPolicy,
    captures: Option<CapturesOptions>,
    push: Option<PushOptions>,
}

impl Ready {
    fn of(arguments: &ServeArguments) -> Result<Self, Failure> {
        let usage = |what: String| Failure::new(ExitClass::Usage, what);
        let labels = match arguments.by.as_str() {
            "none" => Vec::new(),
            list => SeriesLabel::parse_list(list).map_err(|error| usage(error.to_string()))?,
        };
        let series = usize::try_from(arguments.series).ok().filter(|_| arguments.series <= MOST_SERIES);
        let series = series.ok_or_else(|| {
            usage("--series must be at most 16K, which is about 50 MB per request".to_owned())
        })?;
        let clients = &arguments.clients;
        let hosts =
            Hosts::parse(&clients.allow_host).map_err(|error| usage(format!("--allow-host: {error}")))?;
        let access = clients.access()?;
        access.allows(clients.listen)?;
        let plan = plan(arguments, &labels)?;
        let captures = arguments.captures.options()?;
        let push = arguments.push.options()?;
        Ok(Self { plan, labels, series, hosts, access, captures, push })
    }
}

impl ClientArguments {
    fn access(&self) -> Result<AccessPolicy, Failure> {
        let tls = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let tls = tls.map(|(certificate, key)| Tls::read(certificate, key)).transpose()?;
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        Ok(AccessPolicy { tls, token })
    }
}

impl CaptureArguments {
    fn options(&self) -> Result<Option<CapturesOptions>, Failure> {
        let Some(folder) = &self.captures else { return Ok(None) };
        let place = self.archive.as_deref().map(ArchivePlace::parse).transpose()?;
        let retention = Retention { bytes: self.keep_bytes, age: self.keep_age };
        let upload = place.map(|place| upload(place, self.label.clone()));
        Ok(Some(CapturesOptions { folder: folder.clone(), length: self.capture_length, retention, upload }))
    }
}

/// Returns what archives each capture. A place that fails is said once, and again after it has
/// worked.
fn upload(place: ArchivePlace, prefix: archive::Label) -> Upload {
    let mut works = true;
    Upload::new(move |file, again| {
        let archived = keep_rolling(&place, &prefix, file, again);
        match &archived {
            Err(failure) if works => say(&format!("the archive {place} does not take captures: {failure}")),
            Ok(_) if !works => say(&format!("the archive {place} takes captures again")),
            _ => {}
        }
        works = archived.is_ok();
        archived.map(drop).map_err(|failure| failure.to_string())
    })
}

/// Makes the page for people.
fn paint(snapshot: WindowSnapshot) -> Result<String, String> {
    let now = LiveNow {
        elapsed: snapshot.elapsed,
        cost: snapshot.cost.sampling,
        budget: snapshot.cost.budget,
        refresh: REFRESH,
    };
    let mut capture = snapshot.capture;
    idle::leave_out(&mut capture, false);
    live_page(&mut Input::of(&capture, &mut NoCode), &now).map_err(|error| error.text)
}

fn serve(arguments: &ServeArguments, ready: Ready) -> CommandResult {
    let Ready { plan, labels, series, hosts, access, captures, push } = ready;
    let pushed = push.as_ref().map(PushArguments::words).unwrap_or_default();
    let quiet = arguments.quiet;
    let ended = sample(async {
        let listening = listen(arguments.clients.listen, hosts, access)?;
        let url = listening.url();
        let folder = arguments.captures.captures.as_deref();
        let progress = |progress| match progress {
            ServeProgress::Started { .. } if quiet => {}
            ServeProgress::Started { table_bytes, ring_bytes, said } => {
                let events: Vec<_> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
                say(&format!("serving {} of {} at {url}/metrics", events.join(", "), plan.words()));
                folder.iter().for_each(|folder| say(&format!("captures go to {}", folder.display())));
                pushed.iter().for_each(|sentence| say(sentence));
                let [tables, rings] = [table_bytes, ring_bytes].map(|bytes| number::short(bytes as u64));
                let names = number::short(NamesBudget::of_this_machine().sum() as u64);
                say(&format!(
                    "memory: tables {tables}B, rings {rings}B (fixed); processes and names at most {names}B"
                ));
                said.iter().for_each(|sentence| say(sentence));
            }
            ServeProgress::Note(note) => say(&note),
        };
        let painter = Painter::new(paint);
        let service = Service { labels, series, listening, painter, window: WINDOW, captures, push };
        live::run(&plan, service, progress).await
    })?;
    ended.notes.iter().for_each(|note| say(note));
    if let Some(why) = &ended.stopped {
        return Err(kill_switch::ended(why).into());
    }
    Ok(ExitCode::from(ended.command.map_or(0, child::shell_code)))
}

fn plan(arguments: &ServeArguments, labels: &[SeriesLabel]) -> Result<Plan, Failure> {
    let dimensions = labels.iter().filter_map(|label| label.dimension()).collect();
    let builder = arguments.aggregating.complete(arguments.selection.plan()?);
    let builder = arguments.chains.complete(builder);
    // Profiles have functions, as captures do. With call chains, `GET /capture` has both.
    let captures = arguments.captures.captures.is_some()
        || arguments.push.is_asked_for()
        || arguments.chains.are_wanted();
    builder.series().captures(captures).dimensions(dimensions).build().map_err(plan_failure)
}
