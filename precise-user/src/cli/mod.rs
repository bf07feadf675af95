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
mod plan_failure;
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
  precise record -a --duration 5s            everything, for five seconds
  precise record -- ./program                one command, from its start to its end
  precise record -e page-faults --by ip,address -p 4711
  precise script -e loads --min-latency 200 -- ./program
  precise import perf.data                   a capture of what perf recorded
  precise explain precise.parquet
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
    /// Stream the samples that pass, one line or one JSON object each
    Script(Box<script::ScriptArguments>),
    /// Serve latencies and counts by cgroup to Prometheus, for as long as it runs
    Serve(Box<serve::ServeArguments>),
    /// Make a capture of what `perf record` wrote
    Import(import::ImportArguments),
    /// Say what stands out in a capture, most important first
    Explain(explain::ExplainArguments),
    /// Show where the samples of a capture are
    Report(report::ReportArguments),
    /// Show where loads and stores hit: L1 to remote memory
    Mem(mem::MemArguments),
    /// Show how slow accesses are, and for whom: histogram and percentiles
    Latency(latency::LatencyArguments),
    /// Show which accesses need page walks, and what those cost
    Tlb(tlb::TlbArguments),
    /// Show which node's CPUs read which node's memory
    Numa(numa::NumaArguments),
    /// Show which cache lines cores take from each other, and whether it is false sharing
    C2c(c2c::C2cArguments),
    /// Show whether the front end is starved, and by which code
    Fetch(fetch::FetchArguments),
    /// Show which branches mispredict
    Branches(branches::BranchesArguments),
    /// Count the events that AMD's CodeAnalyst derives from IBS
    Derived(derived::DerivedArguments),
    /// Show source lines and instructions with what was sampled at each
    Annotate(annotate::AnnotateArguments),
    /// Show what loads wait for: whether it is a pointer chase
    Chase(chase::ChaseArguments),
    /// Show how far ordinary samples are from where they belong
    Skid(skid::SkidArguments),
    /// Compare two captures: what changed, and what is only chance
    Diff(diff::DiffArguments),
    /// Fail where a capture is worse than another, for certain, by more than is allowed
    Check(check::CheckArguments),
    /// Keep captures under a label, in a folder or an object store
    Archive(archive::ArchiveArguments),
    /// Draw the call chains of a capture (record -g)
    Flamegraph(flamegraph::FlamegraphArguments),
    /// Write a capture for other tools: pprof, folded stacks, CSV, JSON
    Export(export::ExportArguments),
    /// Draw a capture over time
    Heatmap(heatmap::HeatmapArguments),
    /// Show the events that this machine has
    List(list::ListArguments),
    /// Say whether this machine can sample precisely, or prove it (--self-test)
    Doctor(doctor::DoctorArguments),
    /// Show the exit codes and what they mean
    ExitCodes(documents::ExitCodesArguments),
    /// Print the JSON Schema of what --json prints
    Schema(schema::SchemaArguments),
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
