//! The command line: parses the arguments, makes one call into the library, and prints the result.
//! clap's types are not used outside of `cli`.

use std::process::{ExitCode, ExitStatus};

use clap::{ArgMatches, Args, Command, CommandFactory as _, FromArgMatches, Parser};
use precise::error::{ExitClass, Failure};
use precise::model::EventInfo;
use precise::model::digits::counted;
use precise::rights;
use precise::run::child;
use precise::views::registry::VIEWS;
use precise::views::view::{AnyView, Command as Shown};
use precise_common::ledger::{Counter, Fate};

mod aggregating;
mod archive;
mod call_graph;
mod code;
mod dimensions;
mod doctor;
mod documents;
mod export;
mod filter;
mod flamegraph;
mod fleet;
mod fleet_ask;
mod form;
mod idle;
mod import;
mod list;
mod mcp;
mod narrow;
mod output;
mod pager;
mod plan_failure;
mod progress;
mod push;
mod record;
mod remedy;
mod report;
mod require;
mod schema;
mod script;
mod selection;
mod serve;
mod settings;
mod top;
mod types_thread;
mod values;
mod version;
mod view;

use output::{Appearance, Output};

const AFTER_HELP: &str = "\
Examples:
  precise record -a --duration 5s            sample the machine for 5 seconds
  precise record -- ./program                sample one command until it ends
  precise top                                what the CPUs do, live
  precise explain                            what the capture shows, most important first
  precise report --by function,line          where the samples are
  precise heatmap -o heatmap.png             the samples over time
  precise script -e loads --min-latency 200 -- ./program
  precise import perf.data                   make a capture from a recording of perf

`precise COMMAND -h` is short, `precise COMMAND --help` complete. Exit codes:
`precise exit-codes`. Documentation: docs/README.md.";

/// The command `precise`; [`entries`] has its subcommands.
#[derive(Debug, Parser)]
#[command(
    name = "precise",
    about = "Sample precisely (Intel PEBS, AMD IBS); filter and aggregate in the kernel",
    version,
    after_help = AFTER_HELP,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Arguments {}

/// Runs a subcommand with its arguments.
type RunCommand = Box<dyn Fn(&ArgMatches, &mut Output) -> CommandResult>;

/// A subcommand, and the function that runs it.
struct Subcommand {
    command: Command,
    run: RunCommand,
    /// Returns whether the subcommand takes samples with these arguments, and therefore needs the
    /// file capabilities of the program.
    samples: fn(&ArgMatches) -> bool,
}

impl Subcommand {
    /// Marks a subcommand that always takes samples.
    fn live(self) -> Self {
        Self { samples: |_| true, ..self }
    }
}

/// Returns the entry of a command that defines its own arguments.
fn own<A: Args + FromArgMatches + 'static>(
    name: &'static str,
    about: &'static str,
    run: fn(&A, &mut Output) -> CommandResult,
) -> Subcommand {
    let run = move |matches: &ArgMatches, out: &mut Output| {
        let arguments = A::from_arg_matches(matches).map_err(|error| view::usage(&error))?;
        run(&arguments, out)
    };
    Subcommand {
        command: A::augment_args(Command::new(name)).about(about),
        run: Box::new(run),
        samples: |_| false,
    }
}

/// Returns the entry of a command that defines its own arguments but shows a view. Its help is that
/// of the view.
fn own_view<A: Args + FromArgMatches + 'static>(
    about: &dyn AnyView,
    run: fn(&A, &mut Output) -> CommandResult,
) -> Subcommand {
    let about = about.description();
    let entry = own(about.name, about.about, run);
    Subcommand { command: view::with_help(entry.command, &about), ..entry }
}

/// Returns the entry of a command whose arguments come from a view.
fn of_view(view: &'static dyn AnyView) -> Subcommand {
    Subcommand {
        command: view::command(view),
        run: Box::new(move |matches, out| view::run(view, matches, out)),
        samples: |_| false,
    }
}

/// Returns all subcommands, in the order of the help.
fn entries() -> Vec<Subcommand> {
    let mut entries = vec![
        own("record", "Sample, aggregate in the kernel, and write a capture", record::run).live(),
        own("script", "Print samples as they are taken, one line or JSON object each", script::run).live(),
        own("top", "Show the samples live, on a screen", top::run).live(),
        Subcommand {
            samples: serve::samples,
            ..own("serve", "Serve latencies and counts by cgroup to Prometheus", serve::run)
        },
        own("import", "Make a capture from a perf.data file", import::run),
    ];
    for view in VIEWS {
        match view.description().name {
            "report" => entries.push(own_view(*view, report::run)),
            "flamegraph" => entries.push(own_view(*view, flamegraph::run)),
            _ if view.description().command == Shown::Own => entries.push(of_view(*view)),
            // Views that `report` shows have no command of their own.
            _ => {}
        }
    }
    entries.extend([
        own("archive", "Store captures under a label, in a folder or an object store", archive::run),
        own("fleet", "Make tables of the captures of many machines, and ask them", fleet::run),
        own("export", "Convert a capture to pprof, folded stacks, CSV or JSON", export::run),
        own("mcp", "Answer the questions of agents about captures (Model Context Protocol)", mcp::run),
        own("list", "List the presets and events of this machine", list::run),
        Subcommand {
            samples: doctor::samples,
            ..own("doctor", "Check whether this machine can sample precisely", doctor::run)
        },
        own("exit-codes", "List the exit codes with their meanings", documents::exit_codes),
        own("schema", "Print the JSON Schema of a --json document", schema::run),
        own("completions", "Print a completion script for a shell", documents::completions),
        own("man", "Print the manual page, or write the pages of all commands", documents::man),
    ]);
    entries
}

/// Raises the file capabilities that sampling needs, or drops all of them. A command that does not
/// sample must open the files that its arguments name with the rights of its caller only.
fn settle_rights(samples: bool) -> Result<(), Failure> {
    if !samples {
        return Ok(rights::drop_file_capabilities()?);
    }
    // SAFETY: no thread has been started yet.
    unsafe { rights::forget_environment() };
    Ok(rights::raise_for_sampling()?)
}

/// Parses the arguments, runs the command, and returns its exit code.
pub fn main() -> ExitCode {
    // This comes before anything that the caller controls is read.
    let started_with = match rights::lower_at_start() {
        Ok(rights) => rights,
        Err(error) => return fail(&error.into()),
    };
    let matches = match command().long_version(version::LONG.as_str()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // clap prints help to standard output and errors to standard error.
            let _closed_pipe = error.print();
            return if error.use_stderr() { code(ExitClass::Usage) } else { ExitCode::SUCCESS };
        }
    };
    let chosen = matches.subcommand().and_then(|(name, matches)| {
        let entry = entries().into_iter().find(|entry| entry.command.get_name() == name)?;
        Some((entry, matches))
    });
    let samples = chosen.as_ref().is_some_and(|(entry, matches)| (entry.samples)(matches));
    if let Err(failure) = settle_rights(samples) {
        return fail(&failure);
    }
    let appearance = matches.subcommand().map(|(_, matches)| Appearance::of(matches)).unwrap_or_default();
    let mut output = Output::detect(&appearance);
    output.started_with = started_with;
    if !samples {
        output.allow_pager(&appearance);
    }
    let result = match chosen {
        Some((entry, matches)) => (entry.run)(matches, &mut output),
        None => Err(Failure::new(ExitClass::Usage, "no command was given")),
    };
    match result {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    output::complain(failure);
    code(failure.class)
}

/// Runs a sampling future to its end, then drops the file capabilities, so that the code that shows
/// the result has only the caller's rights.
fn sample<T, E: Into<Failure>>(run: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(ExitClass::Failed, format!("cannot start the run loop: {error}")))?;
    let sampled = runtime.block_on(run);
    rights::drop_file_capabilities()?;
    sampled.map_err(Into::into)
}

/// Returns the exit code of a finished run of these events: that of the sampled command, if there
/// was one. No samples are a failure, unless the command failed, which explains itself.
fn ended<'a>(events: impl IntoIterator<Item = &'a EventInfo>, command: Option<ExitStatus>) -> CommandResult {
    let (mut seen, mut filtered, mut kept) = (0, 0, 0);
    for EventInfo { ledger, .. } in events {
        seen += ledger.counter(Counter::Seen);
        filtered += ledger.filtered_total();
        kept += ledger.total(|fate| fate == Fate::Kept || fate == Fate::Streamed);
    }
    let code = command.map_or(0, child::shell_code);
    if kept == 0 && filtered > 0 && code == 0 {
        let text = format!("no samples were kept: the filter rejected {}", counted(filtered, "sample"));
        return Err(Failure::new(ExitClass::NoSamples, text).advise(
            "Use a filter that keeps more, or a longer run. The ledger counts what each clause rejected.",
        ));
    }
    if seen == 0 && code == 0 {
        return Err(Failure::new(
            ExitClass::NoSamples,
            "no samples arrived: the event did not occur, or this machine cannot sample it",
        )
        .advise("Use a shorter period (-c), a longer run, or another event (`precise list`)."));
    }
    Ok(ExitCode::from(code))
}

fn command() -> Command {
    Arguments::command().subcommands(entries().into_iter().map(|entry| Appearance::add(entry.command)))
}

fn code(class: ExitClass) -> ExitCode {
    ExitCode::from(class.code())
}

/// The outcome of a command: an exit code, or a failure with an exit code.
type CommandResult = Result<ExitCode, Failure>;

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_samples_keeps_the_files_capabilities() {
        let samples = |line: &str| {
            let words = ["precise"].into_iter().chain(line.split_ascii_whitespace());
            let matches = super::command().try_get_matches_from(words).unwrap();
            let (name, matches) = matches.subcommand().unwrap();
            let entry = super::entries().into_iter().find(|e| e.command.get_name() == name).unwrap();
            (entry.samples)(matches)
        };
        for line in ["record", "script", "top", "serve", "doctor --self-test"] {
            assert!(samples(line), "{line}");
        }
        for line in [
            "doctor",
            "doctor --worker {}",
            "serve --check-config",
            "serve --print-config",
            "annotate",
            "report",
            "explain",
            "import",
            "list",
            "man",
            "exit-codes",
        ] {
            assert!(!samples(line), "{line}");
        }
        // Every run accepts a file that stops it.
        for command in super::command().get_subcommands() {
            if command.get_arguments().any(|argument| argument.get_id() == "stop_file") {
                assert!(samples(command.get_name()), "{} samples", command.get_name());
            }
        }
    }

    /// Returns the short help of all commands, as a terminal of 100 columns shows it.
    fn short_helps() -> impl Iterator<Item = (String, String)> {
        let mut command = super::command().term_width(100);
        command.build();
        let commands: Vec<_> = command.get_subcommands().cloned().collect();
        commands.into_iter().filter(|command| command.get_name() != "help").map(|mut command| {
            let help = command.render_help().to_string();
            (command.get_name().to_owned(), help)
        })
    }

    #[test]
    fn the_short_help_fits_a_screen_and_has_examples() {
        let mut commands = 0;
        for (name, help) in short_helps() {
            let lines = help.lines().count();
            assert!(lines <= 40, "{name}: {lines} lines\n{help}");
            let examples = help.split_once("Examples:\n").map_or("", |(_, examples)| examples);
            assert!(examples.contains("precise "), "{name}:\n{help}");
            commands += 1;
        }
        assert!(commands >= 28, "{commands}");
    }

    #[test]
    fn the_arguments_are_consistent() {
        super::command().debug_assert();
    }

    /// Every command that reads a capture accepts `--require`, so that scripts can rely on its
    /// quality.
    #[test]
    fn every_view_takes_gates() {
        let command = super::command();
        let mut views = 0;
        for view in command.get_subcommands() {
            let has = |name: &str| view.get_arguments().any(|argument| argument.get_id() == name);
            // Except for `archive`, which stores captures unchanged, and `import`, which makes one.
            let reads = has("input") || has("base") || has("baseline");
            if reads && !["archive", "import"].contains(&view.get_name()) {
                assert!(has("require"), "{} has no --require", view.get_name());
                views += 1;
            }
        }
        assert!(views >= 16, "{views}");
    }
}
