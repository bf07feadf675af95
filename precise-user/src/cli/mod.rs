//! The command line: arguments in, one call into the library, result out. clap's types end here.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use precise::error::{Class, Failure};

mod documents;
mod filter;
mod heatmap;
mod list;
mod output;
mod progress;
mod record;
mod report;
mod values;

use output::Output;

const AFTER_HELP: &str = "\
Examples:
  precise record -a --duration 5s            everything, for five seconds
  precise record -- ./program                one command, from its start to its end
  precise record -e page-faults --by ip,address -p 4711
  precise report -i precise.parquet --by function,line
  precise heatmap -i precise.parquet -o heatmap.png

Exit codes: `precise exit-codes`. Every command that prints a result takes --json.";

/// Precise samples (Intel PEBS, AMD IBS), filtered and aggregated in the kernel.
#[derive(Debug, Parser)]
#[command(name = "precise", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sample, aggregate in the kernel, and keep the result as a capture
    Record(Box<record::RecordArguments>),
    /// Show where the samples of a capture are
    Report(report::ReportArguments),
    /// Draw a capture over time
    Heatmap(heatmap::HeatmapArguments),
    /// Show the events that this machine has
    List(list::ListArguments),
    /// Show the exit codes and what they mean
    ExitCodes(documents::ExitCodesArguments),
    /// Print a completion script for a shell
    Completions(documents::CompletionsArguments),
    /// Print the manual page, or write one for each command
    Man(documents::ManArguments),
}

/// Parses, runs, and says how it went.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap knows what goes where: help to the standard output, errors to the other.
            let _closed_pipe = error.print();
            return if error.use_stderr() { code(Class::Usage) } else { ExitCode::SUCCESS };
        }
    };
    let mut output = Output::detect();
    let result = match arguments.command {
        Command::Record(arguments) => record::run(&arguments, &mut output),
        Command::Report(arguments) => report::run(&arguments, &mut output),
        Command::Heatmap(arguments) => heatmap::run(&arguments, &mut output),
        Command::List(arguments) => list::run(&arguments, &mut output),
        Command::ExitCodes(arguments) => documents::exit_codes(&arguments, &mut output),
        Command::Completions(arguments) => documents::completions(&arguments, &mut output),
        Command::Man(arguments) => documents::man(&arguments, &mut output),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure);
            code(failure.class)
        }
    }
}

fn command() -> clap::Command {
    Arguments::command()
}

fn code(class: Class) -> ExitCode {
    ExitCode::from(class.code())
}

/// What a command ends with: an exit code, or a failure that names one.
type Outcome = Result<ExitCode, Failure>;

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_are_consistent() {
        super::command().debug_assert();
    }
}
