//! The command line: arguments in, one call into the library, result out. clap's types end here.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use precise::error::{Class, Failure};

mod aggregating;
mod annotate;
mod archive;
mod branches;
mod c2c;
mod chase;
mod check;
mod code;
mod derived;
mod diff;
mod dimensions;
mod doctor;
mod documents;
mod explain;
mod export;
mod fetch;
mod filter;
mod flamegraph;
mod form;
mod heatmap;
mod import;
mod latency;
mod list;
mod mem;
mod numa;
mod output;
mod progress;
mod record;
mod report;
mod require;
mod schema;
mod script;
mod selection;
mod serve;
mod skid;
mod tlb;
mod values;

use output::Output;

const AFTER_HELP: &str = "\
Examples:
  precise record -a --duration 5s            sample the machine for 5 seconds
  precise record -- ./program                sample one command until it ends
  precise explain                            what the capture shows, most important first
  precise report --by function,line          where the samples are
  precise heatmap -o heatmap.png             the samples over time
  precise script -e loads --min-latency 200 -- ./program
  precise import perf.data                   make a capture from a recording of perf

`precise COMMAND -h` is short, `precise COMMAND --help` complete. Exit codes:
`precise exit-codes`. Documentation: docs/README.md.";

/// Sample precisely (Intel PEBS, AMD IBS); filter and aggregate in the kernel.
#[derive(Debug, Parser)]
#[command(name = "precise", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sample, aggregate in the kernel, and write a capture
    Record(Box<record::RecordArguments>),
    /// Print samples as they are taken, one line or JSON object each
    Script(Box<script::ScriptArguments>),
    /// Serve latencies and counts by cgroup to Prometheus
    Serve(Box<serve::ServeArguments>),
    /// Make a capture from a perf.data file
    Import(import::ImportArguments),
    /// List the findings of a capture, most important first
    Explain(explain::ExplainArguments),
    /// Show where the samples of a capture are
    Report(report::ReportArguments),
    /// Show which level served loads and stores, from L1 to remote memory
    Mem(mem::MemArguments),
    /// Show the latency of accesses: histogram and percentiles
    Latency(latency::LatencyArguments),
    /// Show which accesses need page walks, and their cost
    Tlb(tlb::TlbArguments),
    /// Show which NUMA nodes access which node's memory
    Numa(numa::NumaArguments),
    /// Show cache lines that move between cores: true and false sharing
    C2c(c2c::C2cArguments),
    /// Show code that makes the front end wait
    Fetch(fetch::FetchArguments),
    /// Show which branches mispredict
    Branches(branches::BranchesArguments),
    /// Count the derived events of AMD IBS
    Derived(derived::DerivedArguments),
    /// Show source lines and instructions with their samples
    Annotate(annotate::AnnotateArguments),
    /// Show loads that wait for other loads: pointer chases
    Chase(chase::ChaseArguments),
    /// Show how far imprecise samples land from the right instruction
    Skid(skid::SkidArguments),
    /// Compare two captures and test what changed significantly
    Diff(diff::DiffArguments),
    /// Fail if a capture is significantly worse than another
    Check(check::CheckArguments),
    /// Store captures under a label, in a folder or an object store
    Archive(archive::ArchiveArguments),
    /// Draw a flame graph of the call chains (record -g)
    Flamegraph(flamegraph::FlamegraphArguments),
    /// Convert a capture to pprof, folded stacks, CSV or JSON
    Export(export::ExportArguments),
    /// Draw the samples of a capture over time
    Heatmap(heatmap::HeatmapArguments),
    /// List the presets and events of this machine
    List(list::ListArguments),
    /// Check whether this machine can sample precisely
    Doctor(doctor::DoctorArguments),
    /// List the exit codes with their meanings
    ExitCodes(documents::ExitCodesArguments),
    /// Print the JSON Schema of a --json document
    Schema(schema::SchemaArguments),
    /// Print a completion script for a shell
    Completions(documents::CompletionsArguments),
    /// Print the manual page, or write the pages of all commands
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
        Command::Script(arguments) => script::run(&arguments, &mut output),
        Command::Serve(arguments) => serve::run(&arguments, &mut output),
        Command::Import(arguments) => import::run(&arguments, &mut output),
        Command::Explain(arguments) => explain::run(&arguments, &mut output),
        Command::Report(arguments) => report::run(&arguments, &mut output),
        Command::Mem(arguments) => mem::run(&arguments, &mut output),
        Command::Latency(arguments) => latency::run(&arguments, &mut output),
        Command::Tlb(arguments) => tlb::run(&arguments, &mut output),
        Command::Numa(arguments) => numa::run(&arguments, &mut output),
        Command::C2c(arguments) => c2c::run(&arguments, &mut output),
        Command::Fetch(arguments) => fetch::run(&arguments, &mut output),
        Command::Branches(arguments) => branches::run(&arguments, &mut output),
        Command::Derived(arguments) => derived::run(&arguments, &mut output),
        Command::Annotate(arguments) => annotate::run(&arguments, &mut output),
        Command::Chase(arguments) => chase::run(&arguments, &mut output),
        Command::Skid(arguments) => skid::run(&arguments, &mut output),
        Command::Diff(arguments) => diff::run(&arguments, &mut output),
        Command::Check(arguments) => check::run(&arguments, &mut output),
        Command::Archive(arguments) => archive::run(&arguments, &mut output),
        Command::Flamegraph(arguments) => flamegraph::run(&arguments, &mut output),
        Command::Export(arguments) => export::run(&arguments, &mut output),
        Command::Heatmap(arguments) => heatmap::run(&arguments, &mut output),
        Command::List(arguments) => list::run(&arguments, &mut output),
        Command::Doctor(arguments) => doctor::run(&arguments, &mut output),
        Command::ExitCodes(arguments) => documents::exit_codes(&arguments, &mut output),
        Command::Schema(arguments) => schema::run(&arguments, &mut output),
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

    /// Whoever reads a capture can say how good it must be: a view that cannot is a view that a script cannot trust.
    #[test]
    fn every_view_takes_gates() {
        let command = super::command();
        let mut views = 0;
        for view in command.get_subcommands() {
            let has = |name: &str| view.get_arguments().any(|argument| argument.get_id() == name);
            // An archive keeps captures as they are, and an import makes one.
            let reads = has("input") || has("base") || has("baseline");
            if reads && !["archive", "import"].contains(&view.get_name()) {
                assert!(has("require"), "{} has no --require", view.get_name());
                views += 1;
            }
        }
        assert!(views >= 16, "{views}");
    }
}
